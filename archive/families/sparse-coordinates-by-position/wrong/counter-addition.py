"""`Counter` adds by key, which is just what is needed.

Its `+` keeps positive counts only: zero and negative sums are dropped on the way.
"""

from collections import Counter


def solve(rows):
    """Add one counter for each pair."""
    sums = Counter()
    for _, entries in rows:
        for coordinate, value in entries:
            sums = sums + Counter({coordinate: value})
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
