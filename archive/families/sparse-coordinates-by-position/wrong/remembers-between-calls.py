"""The table is a default argument, which is made once and shared by all calls.

What one call has added is still there in the next.
"""


def solve(rows, sums={}):  # noqa: B006
    """Sum by coordinate, this call's values and those of earlier calls."""
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
