"""Each list is sorted in place before the merge.

The answer is right, but the caller's lists have changed their order.
"""

from heapq import merge
from itertools import groupby


def solve(rows):
    """Sort the caller's lists, merge them and add neighbours."""
    for _, entries in rows:
        if isinstance(entries, list):
            entries.sort(key=lambda pair: pair[0])
    ordered = (sorted(entries, key=lambda pair: pair[0]) for _, entries in rows)
    stream = merge(*ordered, key=lambda pair: pair[0])
    runs = groupby(stream, key=lambda pair: pair[0])
    return [[coordinate, sum(value for _, value in run)] for coordinate, run in runs]
