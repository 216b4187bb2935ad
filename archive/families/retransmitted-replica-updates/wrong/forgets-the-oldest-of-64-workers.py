"""A cache of the 64 workers heard of last, which is ample for the clusters at hand.

A worker that comes again after 64 others is taken for a new one.
"""

from collections import OrderedDict


def solve(rows, step):
    """Correct a total as long as the worker is in the cache."""
    total, last = 0, OrderedDict()
    for row_step, worker, value in rows:
        if row_step == step:
            total += value - last.pop(worker, 0)
            last[worker] = value
            if len(last) > 64:
                last.popitem(last=False)
    return total if any(isinstance(value, float) for value in last.values()) else int(total)
