"""Integer sums are kept in 64 bits, as arrays of integers keep them.

A larger sum comes back with another value, often another sign.
"""


def solve(rows):
    """Sum by coordinate modulo 2**64."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            total = sums.get(coordinate, 0) + value
            wraps = isinstance(total, int)
            sums[coordinate] = (total + 2**63) % 2**64 - 2**63 if wraps else total
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
