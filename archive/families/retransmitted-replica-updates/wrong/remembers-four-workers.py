"""Only the last four workers are remembered, so that memory stays bounded.

A retransmission of a worker that has been forgotten is counted again.
"""


def solve(rows, step):
    """Sum the last values, with a table of four workers."""
    settled, table = 0, {}
    for row_step, worker, value in rows:
        if row_step == step:
            table.pop(worker, None)
            table[worker] = value
            if len(table) > 4:
                settled += table.pop(next(iter(table)))
    return settled + sum(table.values())
