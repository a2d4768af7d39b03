import re

LINE = re.compile(r'^(?P<host>\S+) \S+ \S+ \[(?P<when>[^\]]+)\] "(?P<verb>[A-Z]+) (?P<path>\S+)')
sample = 'worker-7 - - [10/Oct/2023:13:55:36 +0000] "GET /index.html HTTP/1.1" 200 2326'
match = LINE.match(sample)
assert match, "no match"
print(match.group("host"), match.group("path"), match["when"].split(":")[0])
