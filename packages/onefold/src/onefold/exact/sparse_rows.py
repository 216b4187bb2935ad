"""Sums of sparse entries whose values are rows of numbers, by the kernels.

Short rows are moved to their buckets and added up there; of longer ones only their numbers are
moved, and rows are read where they are. See :mod:`onefold.exact.kernels.rows`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact import kernels
from onefold.exact.buckets import Buckets, in_buckets
from onefold.exact.buffers import Buffers, plain
from onefold.exact.kernels import sizes
from onefold.exact.plan import FloatPlan, IntegerPlan, Plan
from onefold.exact.scratch import Scratch, with_scratch
from onefold.exact.sparse_numbers import Misfit
from onefold.update import Array, Sparse

__all__ = ["reduce_rows"]

_MOVED_BYTES_MAX = 64
"""Rows of a line of memory or less are moved: reading one line costs as much as moving it."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Sorted entries and where their rows are."""

    buckets: Buckets
    keys: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.uint64]
    places: npt.NDArray[np.int64]
    buffers: Buffers
    bits: int
    row_bytes: int
    weights: npt.NDArray[np.float64]

    def of_buckets(self, first: int, last: int) -> tuple[Array | int, ...]:
        """What kernels are told of the entries of some buckets."""
        return (
            self.keys,
            self.numbers,
            int(self.buckets.starts[first]),
            int(self.buckets.starts[last]),
            int(self.places[first]),
            self.buckets.base,
            self.buffers.addresses,
            self.bits,
            self.row_bytes,
        )


def reduce_rows(
    parts: list[Sparse], dtype: np.dtype[np.generic], plan: Plan, threads: int
) -> tuple[Array, Array]:
    """The coordinates and the sums or means at them.

    Raises:
        Misfit: ``dtype``, an integer type, does not hold a sum; that of the least coordinate.
    """
    values = [_wide(plain(part.values)) for part in parts]
    flat: list[Array] = [each.reshape(len(each), math.prod(parts[0].row)) for each in values]
    weights = plan.weights if isinstance(plan, FloatPlan) else np.ones(len(parts))
    coordinates = [part.coordinates for part in parts]
    rows = _sorted(coordinates, flat, weights, threads)
    result = np.empty((int(rows.places[-1]), *parts[0].row), values[0].dtype)
    found = _summed(rows, plan, result, threads, is_odd=values[0].dtype != parts[0].values.dtype)
    return found, _narrowed(found, result, dtype)


def _wide(values: Array) -> Array:
    """In a type of which there are few, since each is compiled."""
    if values.dtype.kind in "iu":
        return values if values.dtype.itemsize == 8 else values.astype(np.int64)
    with np.errstate(all="ignore"):  # of signalling NaNs
        return values if values.dtype.itemsize >= 4 else values.astype(np.float32)


def _narrowed(found: Array, result: Array, dtype: np.dtype[np.generic]) -> Array:
    if result.dtype == dtype:
        return result
    if result.dtype.kind == "f":  # rounded to odd
        with np.errstate(all="ignore"):
            return result.astype(dtype)
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type
    elements = np.less(result, limits.min) | np.greater(result, limits.max)
    misfits = elements.reshape(found.size, -1).any(axis=1)
    if misfits.any():
        raise Misfit(int(found[np.argmax(misfits)]))
    return result.astype(dtype)


def _sorted(
    coordinates: list[Array], flat: list[Array], weights: npt.NDArray[np.float64], threads: int
) -> _Rows:
    """Entries sorted by coordinate, with their rows or the numbers of these."""
    row_bytes = flat[0].shape[1] * flat[0].itemsize
    if 0 < row_bytes <= _MOVED_BYTES_MAX and row_bytes % 4 == 0 and (weights == 1).all():

        def rows_of(number: int, chosen: slice) -> Array:
            return flat[number][chosen].view(np.uint32)

        buckets = in_buckets(coordinates, rows_of, row_bytes // 4, threads)
        first = buckets.words[buckets.key_words :]
        buffers, bits = Buffers.starts([first]), 62
        stride, kind, weights = 4 * buckets.width, sizes.ROW, np.ones(1)
    else:
        bits = max(len(each) for each in flat).bit_length()
        number_type = np.uint32 if bits + len(flat).bit_length() <= 32 else np.uint64

        def numbers_of(number: int, chosen: slice) -> Array:
            numbers = np.arange(chosen.start, chosen.stop, dtype=number_type)
            numbers |= number_type(number << bits)
            return numbers.view(np.uint32).reshape(numbers.size, -1)

        buckets = in_buckets(coordinates, numbers_of, np.dtype(number_type).itemsize // 4, threads)
        buffers, stride, kind = Buffers.starts(flat), row_bytes, sizes.SIGNED
    keys, numbers = np.empty((2, int(buckets.starts[-1])), np.uint64)
    counts = np.empty(buckets.count, np.int64)

    @with_scratch
    def sort(scratch: Scratch, first: int, last: int) -> None:
        room = scratch.room(_largest(buckets, first, last))
        kernels.sort_buckets(
            buckets.words,
            buckets.key_words,
            buckets.width,
            kind,
            buckets.starts,
            first,
            last,
            room.entries,
            room.ranges,
            room.places,
            keys,
            numbers,
            counts,
        )

    buckets.for_each(sort, threads)
    places = np.append(0, np.cumsum(counts))
    return _Rows(buckets, keys, numbers, places, buffers, bits, stride, weights)


def _largest(buckets: Buckets, first: int, last: int) -> int:
    return int(np.diff(buckets.starts[first : last + 1]).max())


def _summed(
    rows: _Rows, plan: Plan, result: Array, threads: int, *, is_odd: bool
) -> npt.NDArray[np.int64]:
    """Fill ``result`` and return the coordinates of its rows; round to odd if so it ``is_odd``."""
    coordinates = np.empty(len(result), np.int64)
    out, width = result.reshape(-1), math.prod(result.shape[1:])
    misfits: list[int] = []

    @with_scratch
    def reduce(scratch: Scratch, first: int, last: int) -> None:
        entries = rows.of_buckets(first, last)
        row_addresses = np.empty(_largest(rows.buckets, first, last), np.int64)
        if isinstance(plan, FloatPlan):
            kernels.reduce_rows(
                *entries,
                rows.weights,
                plan.divisor,
                int(plan.spread >= 0 and not is_odd),
                int(plan.products_exact),
                int(is_odd),
                coordinates,
                width,
                out,
                scratch.floats,
                scratch.indices(sizes.BLOCK),
                scratch.limbs,
                row_addresses,
                np.empty(row_addresses.size),
            )
            return
        limits = IntegerPlan.of(result.dtype)
        misfit = kernels.integer_rows(
            *entries,
            coordinates,
            width,
            out,
            scratch.integers,
            limits.least,
            limits.most,
            row_addresses,
        )
        if misfit >= 0:
            misfits.append(int(coordinates[misfit]))

    rows.buckets.for_each(reduce, threads)
    if misfits:
        raise Misfit(min(misfits))
    return coordinates
