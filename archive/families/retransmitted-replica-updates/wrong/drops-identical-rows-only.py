"""Only a row that is equal in every field is taken for a retransmission: a set of rows.

A corrected retransmission differs in its value, so that the old and the new one both count.
"""


def solve(rows, step):
    """Sum the distinct pairs of worker and value at the step."""
    sent = {(worker, value) for row_step, worker, value in rows if row_step == step}
    return sum(value for _, value in sent)
