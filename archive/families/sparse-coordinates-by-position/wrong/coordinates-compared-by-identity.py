"""Coordinates are looked up with `is`, which works for the small ints that CPython keeps once.

Coordinates beyond 256 are separate objects, and each of them gets an entry of its own.
"""


def solve(rows):
    """Sum by the coordinate object."""
    sums = []
    for _, entries in rows:
        for coordinate, value in entries:
            for pair in sums:
                if pair[0] is coordinate:
                    pair[1] += value
                    break
            else:
                sums.append([coordinate, value])
    return sorted(sums, key=lambda pair: pair[0])
