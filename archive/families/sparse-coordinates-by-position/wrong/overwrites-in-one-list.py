"""Each worker's list becomes a dict before the dicts are added.

`dict` keeps the last of several pairs with one coordinate, so the others of that list are lost.
"""


def solve(rows):
    """Sum over the workers the last value of each at every coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in dict(entries).items():
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
