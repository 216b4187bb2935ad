"""A list equal to one that was seen before is taken for a retransmission.

Two workers that honestly send the same are then counted as one.
"""


def solve(rows):
    """Sum the distinct lists by coordinate."""
    sums = {}
    for entries in dict.fromkeys(tuple(map(tuple, entries)) for _, entries in rows):
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
