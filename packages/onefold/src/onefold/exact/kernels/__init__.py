"""The compiled kernels, each beside a slow oracle in :mod:`onefold.exact`.

Python calls those named here, through :mod:`~onefold.exact.kernels.loading`; the modules that
define them need Numba, so nothing but the compiler imports them. Kernels are plain functions over
arrays and addresses, with more parameters than other functions have. In the order of dependency:

============  =====================================================================
``address``   where an array's data lie
``loading``   how Python calls kernels, and the cache of compiled code
``compiled``  how kernels are compiled
``sizes``     what kernels and those who call them agree on
``unsafe``    pointers and what else is not Python, and why it is safe here
``numbers``   error-free additions, quotients and roundings of single numbers
``near``      before the tiers: blocks of values that are close together
``dense``     tier 1, element by element over arrays of floats: one float64
``pairs``     tier 2: two float64 and a bound on what they dropped
``limbs``     tier 3: long integers
``integers``  sums of integers
``sorting``   sparse entries brought together by coordinate
``sparse``    their sums, where values are numbers
``rows``      their sums, where values are rows
============  =====================================================================

The slow oracles: :mod:`~onefold.exact.slow_dense`, :mod:`~onefold.exact.slow_sparse`,
:mod:`~onefold.exact.integers` and :mod:`~onefold.exact.certain`.
"""

from __future__ import annotations

from onefold.exact.kernels.loading import Kernel

__all__ = [
    "classify",
    "condense",
    "emit",
    "integer_rows",
    "reduce_columns",
    "reduce_integers",
    "reduce_pairs",
    "reduce_rows",
    "reduce_totals",
    "scatter",
    "settle_runs",
    "sort_buckets",
    "sum_buckets",
]

reduce_totals = Kernel("dense", "reduce_totals")
reduce_pairs = Kernel("pairs", "reduce_pairs")
reduce_columns = Kernel("limbs", "reduce_columns")
reduce_integers = Kernel("integers", "reduce_integers")
classify = Kernel("sorting", "classify")
scatter = Kernel("sorting", "scatter")
sort_buckets = Kernel("sorting", "sort_buckets")
sum_buckets = Kernel("sparse", "sum_buckets")
settle_runs = Kernel("sparse", "settle_runs")
condense = Kernel("sparse", "condense")
emit = Kernel("sparse", "emit")
reduce_rows = Kernel("rows", "reduce_rows")
integer_rows = Kernel("rows", "integer_rows")
