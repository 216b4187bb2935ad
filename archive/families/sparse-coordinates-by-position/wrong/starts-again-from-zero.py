"""A coordinate is added to if its sum is there, and the test for that is the sum itself.

A sum that is 0.0 for the moment is false and is replaced, so that its type is lost.
"""


def solve(rows):
    """Sum by coordinate, starting anew wherever the sum is zero."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            if sums.get(coordinate):
                sums[coordinate] += value
            else:
                sums[coordinate] = value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
