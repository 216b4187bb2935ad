"""Which kernels sum a type with some weights, and with which constants.

In the order in which they are tried: one float64 where a type and its weights leave it room to
spare, pairs, and limbs for what is still in doubt. The last two know float32 and float64; what is
narrower and in doubt is widened first, and rounded to odd on the way back. Weights from 2**29 and
divisors from 2**53 are beyond the limbs, and means of integers beyond the kernels; there is no plan
for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from onefold.exact import kernels
from onefold.exact.buffers import Buffers, padding, storage
from onefold.exact.scratch import Scratch
from onefold.exact.stored import significant_bits
from onefold.exact.weighting import Weighting
from onefold.update import Array

__all__ = ["FloatPlan", "IntegerPlan", "Plan", "plan_for"]

_WEIGHT_BITS_MAX = 29

_FLOAT16_SPAN_BITS = 40
"""From the least subnormal to the largest value."""

_USEFUL_SPREAD = 12
"""Among eight values whose exponents may not differ by more, too many are left in doubt."""

_TOLERATED = 64
"""All of a piece is added again in pairs if more than one element in so many was not exact."""

_WIDENED_BYTES = 1 << 22
"""About how much is widened at a time."""


@dataclass(frozen=True, slots=True)
class FloatPlan:
    """How to sum floats.

    Attributes:
        weights: Of each array.
        divisor: Of the sum.
        spread: See :func:`onefold.exact.kernels.dense.reduce_totals`; if negative, it is left out.
        products_exact: Whether a float64 holds every product of a weight and a value.
    """

    weights: npt.NDArray[np.float64]
    divisor: int
    spread: int
    products_exact: bool

    def reduce(self, scratch: Scratch, buffers: Buffers, start: int, out: Array) -> int:
        """Fill ``out`` (flat, of the arrays' type) from element ``start`` on; returns -1."""
        doubts, found = scratch.indices(out.size), out.size
        if self.spread >= 0:
            found = kernels.reduce_totals(
                buffers.addresses,
                self.weights,
                float(self.divisor),
                start,
                storage(out),
                doubts,
                scratch.floats[0],
                padding(out.dtype),
                self.spread,
            )
        some = found * _TOLERATED <= out.size
        if out.itemsize < np.dtype(np.float32).itemsize:
            if found:
                chosen = doubts[:found].copy() if some else None
                self._widened(scratch, buffers, start, out, chosen)
        elif not some:
            self._by_pairs(scratch, buffers, start, out)
        elif found:
            self._by_limbs(scratch, buffers, start, out, doubts[:found])
        return -1

    def _by_pairs(
        self,
        scratch: Scratch,
        buffers: Buffers,
        start: int,
        out: Array,
        *,
        odd: bool = False,
    ) -> None:
        doubts = scratch.indices(out.size)
        found = kernels.reduce_pairs(
            buffers.addresses,
            self.weights,
            float(self.divisor),
            start,
            out,
            doubts,
            scratch.floats,
            padding(out.dtype),
            int(self.products_exact),
            int(odd),
        )
        if found:
            self._by_limbs(scratch, buffers, start, out, doubts[:found], odd=odd)

    def _by_limbs(
        self,
        scratch: Scratch,
        buffers: Buffers,
        start: int,
        out: Array,
        indices: npt.NDArray[np.int64],
        *,
        odd: bool = False,
    ) -> None:
        kernels.reduce_columns(
            buffers.addresses,
            self.weights,
            self.divisor,
            start,
            out,
            indices,
            scratch.limbs,
            int(odd),
        )

    def _widened(
        self,
        scratch: Scratch,
        buffers: Buffers,
        start: int,
        out: Array,
        indices: npt.NDArray[np.int64] | None,
    ) -> None:
        """Sum arrays of 16 bits as float32: some elements, or all."""
        arrays = [array.reshape(-1)[start : start + out.size] for array in buffers.arrays]
        size = out.size if indices is None else indices.size
        step = max(64, _WIDENED_BYTES // (4 * len(arrays)))
        for first in range(0, size, step):
            chosen: slice | Array = slice(first, min(first + step, size))
            if indices is not None:
                chosen = indices[chosen]
            with np.errstate(all="ignore"):  # of signalling NaNs
                wide = Buffers.of([array[chosen].astype(np.float32) for array in arrays])
            sums = np.empty(wide.arrays[0].size, np.float32)
            self._by_pairs(scratch, wide, 0, sums, odd=True)
            with np.errstate(all="ignore"):
                out[chosen] = sums.astype(out.dtype)


@dataclass(frozen=True, slots=True)
class IntegerPlan:
    """How to sum integers: within which bounds, or if they have 64 bits, whose upper half."""

    least: int
    most: int

    @classmethod
    def of(cls, dtype: np.dtype[np.generic]) -> IntegerPlan:
        """The plan for a type."""
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type, by our caller
        shift = 32 if dtype.itemsize == 8 else 0  # bytes
        return cls(int(limits.min) >> shift, int(limits.max) >> shift)

    def reduce(self, scratch: Scratch, buffers: Buffers, start: int, out: Array) -> int:
        """Fill ``out`` (flat) from element ``start`` on; returns the first misfit, or -1."""
        integers = scratch.integers
        return kernels.reduce_integers(
            buffers.addresses, start, out, integers, padding(out.dtype), self.least, self.most
        )


Plan = FloatPlan | IntegerPlan


def plan_for(
    dtype: np.dtype[np.generic], result: np.dtype[np.generic], weighting: Weighting
) -> Plan | None:
    """The plan for arrays of ``dtype``; None if the kernels cannot do it."""
    if dtype.kind in "iu":
        return IntegerPlan.of(dtype) if result.kind in "iu" else None
    return _float_plan(dtype, len(weighting.selected), weighting.weights, weighting.divisor)


@lru_cache(maxsize=64)
def _float_plan(
    dtype: np.dtype[np.generic], count: int, weights: tuple[int, ...] | None, divisor: int
) -> FloatPlan | None:
    bits = 0 if weights is None else max(weights).bit_length()
    if bits > _WEIGHT_BITS_MAX or divisor >= 2**53:
        return None
    numbers = np.ones(count) if weights is None else np.array(weights, np.float64)
    numbers.flags.writeable = False
    is_exact = significant_bits(dtype) + bits <= 53
    return FloatPlan(numbers, divisor, _spread(dtype, bits), is_exact)


def _spread(dtype: np.dtype[np.generic], weight_bits: int) -> int:
    """How far apart eight exponents may be: 53 bits, less those of a product, and 3 for eight."""
    bits = significant_bits(dtype)
    if bits == significant_bits(np.dtype(np.float16)):
        return 0 if _FLOAT16_SPAN_BITS + 3 + weight_bits <= 53 else -1
    spread = 53 - 3 - bits - weight_bits
    return spread if spread >= _USEFUL_SPREAD else -1
