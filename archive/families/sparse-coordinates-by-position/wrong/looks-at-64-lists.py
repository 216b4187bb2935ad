"""The lists are read in one batch of 64, and there were never more replicas than that.

Lists after the first 64 are lost.
"""


def solve(rows):
    """Sum the first 64 lists by coordinate."""
    sums = {}
    for _, entries in rows[:64]:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
