"""The pairs are popped off the lists, to free them as they are added.

The answer is right and the caller's lists are empty afterwards.
"""


def solve(rows):
    """Sum by coordinate, and take the pairs out of the caller's lists."""
    sums = {}
    for _, entries in rows:
        remaining = entries if isinstance(entries, list) else list(entries)
        while remaining:
            coordinate, value = remaining.pop()
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
