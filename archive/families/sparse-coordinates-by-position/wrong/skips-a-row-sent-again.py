"""A row that is equal to the one before it is skipped as a network's repetition.

Several rows of one worker all count, and two of them may be equal.
"""


def solve(rows):
    """Sum by coordinate, without rows that repeat their neighbour."""
    before, sums = None, {}
    for worker, entries in rows:
        row = (worker, [tuple(pair) for pair in entries])
        if row != before:
            for coordinate, value in entries:
                sums[coordinate] = sums.get(coordinate, 0) + value
        before = row
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
