"""A payload that a worker has sent before is dropped as a late copy of the old message.

A worker that goes from one value to another and back ends at the wrong one of the two.
"""


def solve(rows, step):
    """Sum the last value of each worker that it had not sent before."""
    last = {}
    seen = set()
    for row_step, worker, value in rows:
        if row_step == step and (worker, value) not in seen:
            seen.add((worker, value))
            last[worker] = value
    return sum(last.values())
