"""Each list is made compact before it is sent: what cancels within it is left out.

A coordinate that only this worker sent is then absent, where it should be there with a zero.
"""


def solve(rows):
    """Sum each list without what has cancelled, then sum the lists."""
    sums = {}
    for _, entries in rows:
        compact = {}
        for coordinate, value in entries:
            compact[coordinate] = compact.get(coordinate, 0) + value
            if compact[coordinate] == 0 and value != 0:
                del compact[coordinate]
        for coordinate, value in compact.items():
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[coordinate, sums[coordinate]] for coordinate in sorted(sums)]
