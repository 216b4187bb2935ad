"""Each list is sorted, so that equal positions should mean equal coordinates.

That holds only where all workers send the same set of coordinates.
"""

from itertools import zip_longest


def solve(rows):
    """Sort every list and add the values at the same position."""
    lists = [sorted(entries, key=lambda pair: pair[0]) for _, entries in rows]
    columns = [[pair for pair in column if pair] for column in zip_longest(*lists)]
    return [[column[0][0], sum(value for _, value in column)] for column in columns]
