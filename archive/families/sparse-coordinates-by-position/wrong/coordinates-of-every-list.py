"""Only coordinates that all workers sent are kept, as an inner join does.

A coordinate that one of them did not touch is lost.
"""


def solve(rows):
    """Sum by coordinate, for the coordinates that every list has."""
    sums, lists_with = {}, {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
        for coordinate in {pair[0] for pair in entries}:
            lists_with[coordinate] = lists_with.get(coordinate, 0) + 1
    return [[each, sums[each]] for each in sorted(sums) if lists_with[each] == len(rows)]
