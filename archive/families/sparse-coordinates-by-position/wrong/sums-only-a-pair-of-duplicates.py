"""Everything is sorted by coordinate and each entry is added to the next if they agree.

The walk goes on after the pair, so a third addend starts an entry of its own.
"""


def solve(rows):
    """Sort all pairs and join two and two."""
    pairs = sorted((pair for _, entries in rows for pair in entries), key=lambda pair: pair[0])
    result, place = [], 0
    while place < len(pairs):
        coordinate, value = pairs[place]
        place += 1
        if place < len(pairs) and pairs[place][0] == coordinate:
            value += pairs[place][1]
            place += 1
        result.append([coordinate, value])
    return result
