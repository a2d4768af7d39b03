macs = ["00:1a:2b:3c:4d:5e", "aa:bb:cc:dd:ee:ff"]
laps = {"start": "00:00:01", "mid": "01:02:03.250"}
slices = ["a[1:2]", "b[::2]", "std::vector"]
for value in macs + list(laps.values()) + slices:
    print(value, len(value.split(":")))
