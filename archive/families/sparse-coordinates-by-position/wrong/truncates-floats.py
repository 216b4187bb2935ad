"""`int` is applied to the values so that sums of whole numbers print without a point.

Fractions of a value are lost, and a sum that should be a float is an int.
"""


def solve(rows):
    """Sum the whole parts of the values by coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + int(value)
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
