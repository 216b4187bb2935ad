"""A sum without a fraction is handed back as int, because it prints more nicely.

The type of the sum then depends on its value, and 2.0 comes back as 2.
"""


def solve(rows):
    """Sum by coordinate, with whole sums as ints."""
    sums = {}
    for _, entries in rows:
        for coordinate, value in entries:
            sums[coordinate] = sums.get(coordinate, 0) + value
    return [[each, int(sums[each]) if sums[each] % 1 == 0 else sums[each]] for each in sorted(sums)]
