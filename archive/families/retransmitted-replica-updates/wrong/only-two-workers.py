"""Written for a pair of replicas: the first one seen, and the other.

Every further worker writes into the slot of the second.
"""


def solve(rows, step):
    """Sum the last value of the first worker and the last value of the other."""
    current = [row for row in rows if row[0] == step]
    slots = {}
    for _, worker, value in current:
        slots[worker == current[0][1]] = value
    return sum(slots.values())
