"""Anything that is no tuple is skipped as a remark or a header.

Pairs may be lists too.
"""


def solve(rows):
    """Sum the pairs that are tuples by coordinate."""
    sums = {}
    for _, entries in rows:
        for pair in entries:
            if isinstance(pair, tuple):
                sums[pair[0]] = sums.get(pair[0], 0) + pair[1]
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
