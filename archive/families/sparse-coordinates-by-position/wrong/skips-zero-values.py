"""A zero adds nothing, so it is skipped with `if value`.

A coordinate for which only zeros were sent is then absent, and a float zero loses its type.
"""


def solve(rows):
    """Sum the values that are not zero by coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            if value:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
