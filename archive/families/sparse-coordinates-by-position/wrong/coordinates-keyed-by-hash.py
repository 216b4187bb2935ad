"""The hash of the coordinate serves as the key, as in a hand-made hash table.

Different coordinates may share a hash: -1 and -2 do, and so do 0 and 2**61 - 1.
"""


def solve(rows):
    """Sum by the hash of the coordinate."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            pair = sums.setdefault(hash(coordinate), [coordinate, 0])
            pair[1] += value
    return sorted(sums.values(), key=lambda pair: pair[0])
