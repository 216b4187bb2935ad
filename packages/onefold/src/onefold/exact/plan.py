"""Which kernel sums a type with some weights, and with which constants.

In the order in which they are tried: one float64 where a type and its weights leave it room to
spare, pairs, and limbs for what is still in doubt; all three are compiled. Weights from 2**29 and
divisors from 2**53 are beyond the limbs, and means of integers beyond the kernels; there is no plan
for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact.buffers import Buffers
from onefold.exact.stored import significant_bits
from onefold.exact.weighting import Weighting
from onefold.update import Array

__all__ = ["FloatPlan", "IntegerPlan", "Plan", "plan_for"]

_WEIGHT_BITS_MAX = 29
_FLOAT16_SPAN_BITS = 40
"""From the least subnormal to the largest value."""
_USEFUL_SPREAD = 12
"""Among eight values whose exponents may not differ by more, too many are left in doubt."""


@dataclass(frozen=True, slots=True)
class FloatPlan:
    """How to sum floats. See :func:`onefold.exact.kernels.dense.reduce_dense`."""

    weights: npt.NDArray[np.float64]
    divisor: int
    spread: int
    products_exact: bool

    def reduce(self, buffers: Buffers, start: int, out: Array) -> int:
        """Fill ``out`` (flat, in its storage type) from element ``start`` on; returns -1."""
        from onefold.exact import kernels  # noqa: PLC0415  # Numba is loaded when it is needed

        doubts = np.empty(out.size, np.int64)  # memory that is not written to is not there yet
        found = kernels.reduce_dense(
            buffers.addresses,
            self.weights,
            self.divisor,
            start,
            out,
            doubts,
            self.spread,
            self.products_exact,
        )
        if found:
            kernels.columns(
                buffers.addresses, self.weights, self.divisor, start, out, doubts[:found]
            )
        return -1


@dataclass(frozen=True, slots=True)
class IntegerPlan:
    """How to sum integers."""

    def reduce(self, buffers: Buffers, start: int, out: Array) -> int:
        """Fill ``out`` (flat) from element ``start`` on; returns the first misfit, or -1."""
        from onefold.exact import kernels  # noqa: PLC0415

        return int(kernels.sum_integers(buffers.addresses, start, out))


Plan = FloatPlan | IntegerPlan


def plan_for(
    dtype: np.dtype[np.generic], result: np.dtype[np.generic], weighting: Weighting
) -> Plan | None:
    """The plan for arrays of ``dtype``; None if the kernels cannot do it."""
    if dtype.kind in "iu":
        return IntegerPlan() if result.kind in "iu" else None
    weights = weighting.weights
    bits = 0 if weights is None else max(weights).bit_length()
    if bits > _WEIGHT_BITS_MAX or weighting.divisor >= 2**53:
        return None
    count = len(weighting.selected)
    return FloatPlan(
        np.ones(count) if weights is None else np.array(weights, np.float64),
        weighting.divisor,
        _spread(dtype, bits),
        significant_bits(dtype) + bits <= 53,
    )


def _spread(dtype: np.dtype[np.generic], weight_bits: int) -> int:
    """How far apart eight exponents may be: 53 bits, less those of a product, and 3 for eight."""
    if dtype.name == "float16":
        return 0 if _FLOAT16_SPAN_BITS + 3 + weight_bits <= 53 else -1
    spread = 53 - 3 - significant_bits(dtype) - weight_bits
    return spread if spread >= _USEFUL_SPREAD else -1
