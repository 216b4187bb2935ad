"""Sums are made in `Decimal`, which is known to be exact.

It holds every value exactly, but rounds each sum to the 28 digits of its context.
"""

from decimal import Decimal


def solve(rows):
    """Sum by coordinate in decimals, and turn each sum back into its kind of number."""
    sums, floats = {}, set()
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, Decimal(0)) + Decimal(value)
            if isinstance(value, float):
                floats.add(coordinate)
    return [[each, (float if each in floats else int)(sums[each])] for each in sorted(sums)]
