import sys


def dump(data, width=16):
    for at in range(0, len(data), width):
        row = data[at : at + width]
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        print(f"{at:08x}  {' '.join(f'{b:02x}' for b in row):<{width * 3}}|{text}|")


dump(sys.argv[0].encode() or b"\xde\xad\xbe\xef" b"dead::beef")
