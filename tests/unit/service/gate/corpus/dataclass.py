from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(order=True)
class Version:
    """A dotted version such as 3.11.2."""

    parts: tuple[int, ...] = field(default=())

    @classmethod
    def parse(cls, text: str) -> "Version":
        return cls(tuple(int(p) for p in text.split(".")))


print(max(map(Version.parse, ["1.2.10", "1.10.0", "1.9.9"])))
