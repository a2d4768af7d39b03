def sieve(n):
    """Return all primes below n.

    >>> sieve(10)
    [2, 3, 5, 7]
    """
    marks = bytearray(b"\x01") * n
    marks[:2] = b"\x00\x00"
    for i in range(2, int(n ** 0.5) + 1):
        if marks[i]:
            marks[i * i :: i] = bytes(len(marks[i * i :: i]))
    return [i for i, prime in enumerate(marks) if prime]


print(sieve(50)[::-1])
