"""Add every row of the step, as if each row were a contribution of its own."""


def solve(rows, step):
    """Sum the values of all rows at the step, retransmissions too."""
    return sum(value for row_step, _, value in rows if row_step == step)
