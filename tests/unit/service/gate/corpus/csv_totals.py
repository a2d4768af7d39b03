import csv
import io
from collections import defaultdict

DATA = """name,region,amount
anna,north,12.50
ben,south,3.75
anna,south,8.00
"""

totals = defaultdict(float)
for row in csv.DictReader(io.StringIO(DATA)):
    totals[row["name"]] += float(row["amount"])
for name, total in sorted(totals.items()):
    print(f"{name:<10} {total:>8.2f}")
