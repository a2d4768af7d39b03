import re

pattern = re.compile(r"^[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+\.[A-Za-z0-9.-]+$")
for address in ["ann@example.com", "no-at.example.org", "x@y"]:
    print(address, bool(pattern.match(address)))
