import re

AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/91.0.4472.124 Safari/537.36",
    "curl/7.88.1",
    "app/1.2.3.4 (build 77)",
]
for agent in AGENTS:
    name, version = re.match(r"(\w+)/([\d.]+)", agent).groups()
    print(name, version.split(".")[0])
