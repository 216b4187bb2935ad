"""The step closes when as many rows have come as there are workers.

Messages are not workers: a retransmission fills the place of a worker that is still to come.
"""


def solve(rows, step):
    """Sum the last value of each worker among as many rows as there are workers."""
    current = [row for row in rows if row[0] == step]
    workers = {worker for _, worker, _ in current}
    return sum({worker: value for _, worker, value in current[: len(workers)]}.values())
