"""The table of sums has a fixed number of places, as a hash table on a device has.

When it is full, further coordinates are dropped without a word.
"""


def solve(rows):
    """Sum by coordinate, for the first 32 coordinates."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            if coordinate in sums or len(sums) < 32:
                sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
