"""A list of pairs is told from a single pair by being a list.

A tuple of pairs is then skipped; rows may hold either.
"""


def solve(rows):
    """Sum the pairs that stand in lists by coordinate."""
    sums = {}
    for _, entries in rows:
        if isinstance(entries, list):
            for coordinate, value in entries:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
