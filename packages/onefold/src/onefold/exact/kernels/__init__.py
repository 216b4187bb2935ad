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
=============  =====================================================================
"""

from onefold.exact.kernels.dense import reduce_dense
from onefold.exact.kernels.integers import sum_integers
from onefold.exact.kernels.limbs import columns

__all__ = ["columns", "reduce_dense", "sum_integers"]
