for y in range(-10, 11):
    print("".join(" .:-=+*#%@"[min(9, n)] for n in (
        next((i for i, z in enumerate(iter(lambda s=[0j], c=complex(x / 20 - 0.5, y / 8): s.__setitem__(0, s[0] ** 2 + c) or s[0], None)) if abs(z) > 2 or i > 8), 9)
        for x in range(-30, 30))))
