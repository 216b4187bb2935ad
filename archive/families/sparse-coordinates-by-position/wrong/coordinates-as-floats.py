"""Coordinates were read as floats, as tables with gaps are, and are turned back in the end.

From 2**53 on a float no longer holds every integer, and neighbours become one.
"""


def solve(rows):
    """Sum by coordinate, each as the nearest float."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[float(coordinate)] = sums.get(float(coordinate), 0) + value
    return [[int(coordinate), sums[coordinate]] for coordinate in sorted(sums)]
