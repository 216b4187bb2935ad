"""Correctly rounded sums and means of arrays.

Every number that comes out is the one nearest to the exact result (ties to even): of the exact
sum, or of the exact, perhaps weighted, sum divided once by the exact number or weight of what was
summed. So its bits cannot depend on the order of the arrays, on blocks or on memory layout.

**Why the simpler answers fail.** Adding in the arrays' own type rounds at every step and depends
on the order. Adding in float64 and rounding at the end is mostly right, which is worse: it rounds
twice, and where large values cancel it is wrong altogether. Dividing a rounded sum rounds once
more. Compensated sums (Kahan) are accurate, not exact, and depend on the order as well.

**How it works.** Each sum is kept as two float64 and a bound on what those two dropped
(:mod:`~onefold.exact.pairs`), which is nearly always zero. The pair is divided and rounded once
(:mod:`~onefold.exact.finish`, :mod:`~onefold.exact.rounding`), with a check that tells where the
outcome is beyond doubt. What is in doubt is computed again in integers of any size
(:mod:`~onefold.exact.certain`): slow, rare and right. Sums of integers stay integers
(:mod:`~onefold.exact.integers`). :mod:`~onefold.exact.dense` and :mod:`~onefold.exact.sparse` bring
arrays to this machinery in blocks, so that memory does not grow with the number of arrays. All of
this needs a processor that has not been told to be less exact (:mod:`~onefold.exact.subnormals`).

Rules for all: a NaN among the addends gives NaN (the canonical one), opposite infinities too, and
otherwise an infinity wins. An exact sum of zero is +0.0 unless every addend is -0.0. Results that
are too small or too large for the type become zero or infinity as IEEE 754 rounds them. Weight 0
leaves an array out, whatever is in it.
"""

from __future__ import annotations

from onefold.exact.dense import mean_dense, sum_dense
from onefold.exact.sparse import mean_sparse, sum_sparse

__all__ = ["mean_dense", "mean_sparse", "sum_dense", "sum_sparse"]
