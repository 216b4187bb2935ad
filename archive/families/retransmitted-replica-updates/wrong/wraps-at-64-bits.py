"""Integer totals are kept in 64 bits, as arrays of integers keep them.

A larger total comes back with another value, often another sign.
"""


def solve(rows, step):
    """Sum the last values modulo 2**64."""
    last = {worker: value for row_step, worker, value in rows if row_step == step}
    total = sum(last.values())
    return (total + 2**63) % 2**64 - 2**63 if isinstance(total, int) else total
