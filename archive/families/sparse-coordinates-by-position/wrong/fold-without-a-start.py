"""The lists are folded with `reduce` and no value to start from.

Without any row there is nothing to fold, and it raises instead of giving an empty list.
"""

from functools import reduce


def _joined(first, second):
    return [*first, *second]


def solve(rows):
    """Fold the lists together and sum by coordinate."""
    sums = {}
    for coordinate, value in reduce(_joined, (entries for _, entries in rows)):
        sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
