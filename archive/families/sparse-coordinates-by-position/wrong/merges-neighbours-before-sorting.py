"""Neighbours with one coordinate are added first, and the result sorted afterwards.

`groupby` needs sorted input: a coordinate that comes back later has a second entry.
"""

from itertools import groupby


def solve(rows):
    """Add runs of one coordinate and sort the runs."""
    pairs = [pair for _, entries in rows for pair in entries]
    runs = groupby(pairs, key=lambda pair: pair[0])
    sums = [[coordinate, sum(value for _, value in run)] for coordinate, run in runs]
    return sorted(sums, key=lambda pair: pair[0])
