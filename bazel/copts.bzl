"""Compiler and linker options: the one place where they are chosen."""

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wformat=2",
    "-Wvla",
    "-Wimplicit-fallthrough",
]

# Bazel's toolchain defines NDEBUG and _FORTIFY_SOURCE=1 in opt. Assertions stay on in every mode:
# what is tested is what ships.
_BASE = [
    "-std=gnu17",
    "-D_GNU_SOURCE",
    "-UNDEBUG",
    "-fPIE",
    "-fstack-protector-strong",
    "-fstack-clash-protection",
]

_CONTROL_FLOW = select({
    "@airlock//bazel:x86_64": ["-fcf-protection"],
    "@airlock//bazel:aarch64": ["-mbranch-protection=standard"],
    "//conditions:default": [],
})

# _FORTIFY_SOURCE needs optimisation and blinds the sanitizers, which all build with -c dbg.
_FORTIFY = select({
    "@airlock//bazel:opt": [
        "-U_FORTIFY_SOURCE",
        "-D_FORTIFY_SOURCE=2",
    ],
    "//conditions:default": [],
})

_HARDENING = _CONTROL_FLOW + _FORTIFY

# For our own code.
AL_COPTS = _BASE + _WARNINGS + _HARDENING

# For generated code, whose warnings are not ours to fix.
AL_GENERATED_COPTS = _BASE + ["-w"] + _HARDENING

AL_LINKOPTS = [
    "-pie",
    "-Wl,--as-needed",
    "-Wl,-z,relro,-z,now",
    "-Wl,-z,noexecstack",
]
