"""The compiled kernels. Importing this package imports Numba, so nothing imports it too early.

Kernels are plain functions over arrays and addresses, with more parameters than other functions
have. Each stands beside a slow oracle in :mod:`onefold.exact`: :mod:`~onefold.exact.slow_dense`,
:mod:`~onefold.exact.slow_sparse`, :mod:`~onefold.exact.integers` and
:mod:`~onefold.exact.certain`. In the order of dependency:

=============  =====================================================================
``compiled``   how kernels are compiled, and the cache of compiled code
``unsafe``     pointers and what else is not Python, and why it is safe here
``numbers``    error-free additions, quotients and roundings of single numbers
``limbs``      the certain tier: sums as long integers
``dense``      element by element over arrays of floats
``integers``   the same for integers
``sorting``    sparse entries brought together by coordinate
``sparse``     their sums, where values are numbers
``rows``       their sums, where values are rows
=============  =====================================================================
"""

from onefold.exact.kernels.dense import reduce_dense
from onefold.exact.kernels.integers import sum_integers
from onefold.exact.kernels.limbs import LIMBS, columns
from onefold.exact.kernels.rows import BLOCK, integer_rows, reduce_rows
from onefold.exact.kernels.sorting import (
    FEW,
    PAIR,
    PLACES,
    ROW,
    SIGNED,
    SINGLE,
    UNSIGNED,
    classify,
    scatter,
    sort_buckets,
)
from onefold.exact.kernels.sparse import (
    TABLE,
    condense,
    emit,
    settle_runs,
    sum_buckets,
)

__all__ = [
    "BLOCK",
    "FEW",
    "LIMBS",
    "PAIR",
    "PLACES",
    "ROW",
    "SIGNED",
    "SINGLE",
    "TABLE",
    "UNSIGNED",
    "classify",
    "columns",
    "condense",
    "emit",
    "integer_rows",
    "reduce_dense",
    "reduce_rows",
    "scatter",
    "settle_runs",
    "sort_buckets",
    "sum_buckets",
    "sum_integers",
]
