"""The first value that comes for a coordinate decides the type of its sum.

An int that is followed by a float cuts the fraction off.
"""


def solve(rows):
    """Sum by coordinate, in the type of the first value."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            total = sums.get(coordinate, value)
            sums[coordinate] = type(total)(total + value) if coordinate in sums else value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
