"""The first pair of a coordinate becomes its entry in the result, and the others are added to it.

Where that pair is a list it is the caller's own, whose value is then the sum.
"""


def solve(rows):
    """Sum by coordinate, into the first pair of each."""
    sums = {}
    for _, entries in rows:
        for pair in entries:
            if pair[0] in sums:
                sums[pair[0]][1] += pair[1]
            else:
                sums[pair[0]] = pair if isinstance(pair, list) else list(pair)
    return [sums[coordinate] for coordinate in sorted(sums)]
