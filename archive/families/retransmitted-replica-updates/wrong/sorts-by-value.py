"""Rows are sorted whole before the last of each worker is taken.

Among rows of one step and worker the sort goes on to the value, so arrival order is lost and the
largest value wins. (Text keys are there because workers of two types do not compare.)
"""


def solve(rows, step):
    """Sum the last value of each worker, after sorting."""
    last = {}
    for row_step, worker, value in sorted(rows, key=lambda row: (row[0], str(row[1]), row[2])):
        if row_step == step:
            last[worker] = value
    return sum(last.values())
