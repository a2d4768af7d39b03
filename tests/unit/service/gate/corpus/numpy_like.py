# Matrix product in plain Python; see https://docs.python.org/3/ for zip(*rows).
import math
import random

random.seed(7)
a = [[random.random() for _ in range(3)] for _ in range(3)]
b = [list(row) for row in zip(*a)]
c = [[math.fsum(x * y for x, y in zip(r, col)) for col in zip(*b)] for r in a]
for row in c:
    print(" ".join("{:8.4f}".format(v) for v in row))
