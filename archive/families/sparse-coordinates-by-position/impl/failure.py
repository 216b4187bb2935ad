"""Add the values by their position in the lists, and keep the coordinates of the first list."""


def solve(rows):
    """Add each worker's values to those at the same position of the lists before."""
    merged = []
    for _, entries in rows:
        for position, (coordinate, value) in enumerate(entries):
            if position == len(merged):
                merged.append([coordinate, 0])
            merged[position][1] += value
    return sorted(merged, key=lambda pair: pair[0])
