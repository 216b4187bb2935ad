"""The pairs come out from the largest coordinate down, as they were popped from a stack.

The result is to begin with the smallest.
"""


def solve(rows):
    """Sum by coordinate, the largest first."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums, reverse=True)]
