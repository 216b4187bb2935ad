"""Coordinates are sorted as unsigned 64-bit integers, as the index column declares them.

Negative coordinates come last.
"""


def solve(rows):
    """Sum by coordinate, negative ones last."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    ordered = sorted(sums, key=lambda coordinate: (coordinate < 0, coordinate))
    return [[coordinate, sums[coordinate]] for coordinate in ordered]
