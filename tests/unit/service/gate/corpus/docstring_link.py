"""Luhn check digits.

The algorithm is described at https://en.wikipedia.org/wiki/Luhn_algorithm
"""


def luhn(number: str) -> bool:
    digits = [int(d) for d in reversed(number)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])) % 10 == 0


print(luhn("79927398713"))
