"""A row without a worker is skipped, and the test for it is `if worker`.

Rank 0 and the empty name are false too, so their lists are lost.
"""


def solve(rows):
    """Sum the lists of workers that are true by coordinate."""
    sums = {}
    for worker, entries in rows:
        if worker:
            for coordinate, value in entries:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
