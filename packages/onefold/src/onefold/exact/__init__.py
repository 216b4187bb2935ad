"""Correctly rounded sums and means of arrays.

Every number that comes out is the one nearest to the exact result (ties to even): of the exact
sum, or of the exact, perhaps weighted, sum divided once by the exact number or weight of what was
summed. So its bits cannot depend on the order of the arrays, on blocks or on memory layout.

**Why the simpler answers fail.** Adding in the arrays' own type rounds at every step and depends
on the order. Adding in float64 and rounding at the end is mostly right, which is worse: it rounds
twice, and where large values cancel it is wrong altogether. Dividing a rounded sum rounds once
more. Compensated sums (Kahan) are accurate, not exact, and depend on the order as well.

**How it works.** In tiers; each is tried only on what the one before it could not settle, and each
says itself whether its outcome is beyond doubt.

Before them, blocks of up to eight arrays (of float64, of more) whose values are all of similar size
are summed without a look at any error (:mod:`~onefold.exact.kernels.near`).

1. *One float64.* float64 has 29 bits more than float32, so sums of values of 32 bits or less mostly
   are exact in it, and that can be seen: the error of an addition is itself a float that two more
   operations deliver (*TwoSum*; Knuth, "The Art of Computer Programming", vol. 2; Dekker 1971).
   While every error is zero the total is the exact sum, and rounding it once is the answer. It is
   the cheapest, which is why it comes first.
2. *A pair of float64*, the second of which adds up the errors of the first (*double-double*; Ogita,
   Rump and Oishi, "Accurate sum and dot product", 2005), and a bound on what even that drops,
   which is nearly always nothing. What is not exact is computed at both ends of the interval in
   which it lies; if they round alike, so does it (Ziv, 1991).
3. *Limbs*: the sum as one integer of 2100 bits (a *superaccumulator*; Kulisch; Neal 2015). It holds
   anything, for many times the work: ties that tier 2 cannot tell, infinities and NaN.
4. *Integers of any size* (:mod:`~onefold.exact.certain`), for weights and divisors that are too
   long for limbs, and as the oracle of all the others.

Two roundings on the way to a narrow type would be wrong now and then; *round to odd* makes the
first one harmless (:mod:`~onefold.exact.rounding`; Boldo and Melquiond 2008). Sums of integers stay
integers (:mod:`~onefold.exact.integers`).

**Where it is.** :mod:`~onefold.exact.kernels` has tiers 1 to 3, compiled;
:mod:`~onefold.exact.dense` and :mod:`~onefold.exact.sparse` bring arrays to them in ranges that go
to several threads (:mod:`~onefold.exact.pool`). Tier 2 stands a second time in NumPy, in
:mod:`~onefold.exact.pairs` and :mod:`~onefold.exact.finish`, with
:mod:`~onefold.exact.slow_dense` and :mod:`~onefold.exact.slow_sparse` around it: that is what the
kernels are compared with, and what they leave to it. :mod:`~onefold.exact.partial` carries sums on
from one place to the next without rounding them.

Rules for all: a NaN among the addends gives NaN (the canonical one), opposite infinities too, and
otherwise an infinity wins. An exact sum of zero is +0.0 unless every addend is -0.0. Results that
are too small or too large for the type become zero or infinity as IEEE 754 rounds them. Weight 0
leaves an array out, whatever is in it.
"""

from __future__ import annotations

from onefold.exact.dense import mean_dense, sum_dense
from onefold.exact.partial import ExactPartial
from onefold.exact.sparse import mean_sparse, sum_sparse

__all__ = ["ExactPartial", "mean_dense", "mean_sparse", "sum_dense", "sum_sparse"]
