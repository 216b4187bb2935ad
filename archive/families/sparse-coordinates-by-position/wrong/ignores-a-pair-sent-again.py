"""A pair that the worker has sent before, in another row, is taken for a retransmission.

Rows carry no delivery number. Every row counts, and equal values are no sign of a resend.
"""


def solve(rows):
    """Sum by coordinate the pairs that the worker did not send in an earlier row."""
    seen, sums = set(), {}
    for worker, entries in rows:
        sent = {(worker, coordinate, value) for coordinate, value in entries}
        for coordinate, value in entries:
            if (worker, coordinate, value) not in seen:
                sums[coordinate] = sums.get(coordinate, 0) + value
        seen |= sent
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
