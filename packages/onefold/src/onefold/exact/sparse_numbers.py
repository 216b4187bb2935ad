"""Sums of sparse entries whose values are numbers, by the kernels.

Entries are dealt out to buckets (:mod:`onefold.exact.buckets`), heavy buckets are condensed, each
bucket is added up where it stands, and what is then left of each is copied to the result. What
happens to a bucket is told in :mod:`onefold.exact.kernels.sparse`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact import kernels
from onefold.exact.buckets import Buckets, in_buckets, in_one_bucket
from onefold.exact.kernels import sizes
from onefold.exact.plan import FloatPlan, IntegerPlan, Plan
from onefold.exact.pool import in_pieces
from onefold.exact.scratch import Room, Scratch, with_scratch
from onefold.update import Array, Sparse

__all__ = ["Misfit", "Travel", "reduce_numbers"]

_TABLE_BITS = 15
_HEAVY_MIN = 1 << 17
"""Buckets of fewer entries are not worth sharing."""
_HEAVY_SHARE = 16
"""A bucket is heavy if a thread has fewer than so many like it."""
_CONDENSED_MIN = 1 << 14
_CONDENSED_PIECE = 1 << 18


class Misfit(Exception):
    """A sum of integers does not fit its type."""

    def __init__(self, coordinate: int) -> None:
        super().__init__(coordinate)
        self.coordinate = coordinate


_FEW_ENTRIES = 1 << 15
"""So few are one bucket: what calls cost outweighs their work."""
_THREAD_ENTRIES = 1 << 16
"""And what threads cost, unless each has so many."""


@dataclass(frozen=True, slots=True)
class Travel:
    """How numbers travel to their buckets, weights applied, and in which form results come."""

    dtype: np.dtype[np.generic]
    kind: int
    narrow: int
    """See :func:`onefold.exact.kernels.sparse.sum_buckets`."""
    result: np.dtype[np.generic]

    @classmethod
    def of(cls, dtype: np.dtype[np.generic], plan: Plan) -> Travel | None:
        """For values of ``dtype``; None if no type holds every product of a value and a weight."""
        if isinstance(plan, IntegerPlan):
            is_unsigned = dtype == np.uint64
            kind = sizes.UNSIGNED if is_unsigned else sizes.SIGNED
            wide = np.dtype(np.uint64 if is_unsigned else np.int64)
            return cls(wide, kind, 0, wide)
        if not plan.products_exact:
            return None
        narrow = {8: 0, 4: 1, 2: 2}[dtype.itemsize]
        single, double = np.dtype(np.float32), np.dtype(np.float64)
        result = single if narrow else double
        if narrow and bool((plan.weights == 1).all()):
            return cls(single, sizes.SINGLE, narrow, result)
        return cls(double, sizes.PAIR, narrow, result)

    @property
    def words(self) -> int:
        """Of a number on its way."""
        return self.dtype.itemsize // 4


def reduce_numbers(
    travel: Travel, parts: list[Sparse], dtype: np.dtype[np.generic], plan: Plan, threads: int
) -> tuple[Array, Array]:
    """The coordinates and the sums or means at them.

    Raises:
        Misfit: ``dtype``, an integer type, does not hold a sum; that of the least coordinate.
    """

    def values_of(number: int, chosen: slice) -> Array:
        with np.errstate(all="ignore"):  # of signalling NaNs
            values = parts[number].values[chosen].astype(travel.dtype, order="C", copy=False)
            if isinstance(plan, FloatPlan) and plan.weights[number] != 1:
                values = values * plan.weights[number]
        return np.ascontiguousarray(values).view(np.uint32).reshape(-1, travel.words)

    keys = [part.coordinates for part in parts]
    entries = sum(each.size for each in keys)
    threads = max(1, min(threads, entries // _THREAD_ENTRIES))
    if entries <= _FEW_ENTRIES:
        values = [values_of(number, slice(None)) for number in range(len(parts))]
        buckets = in_one_bucket(np.concatenate(keys), np.concatenate(values))
    else:
        range_bits = _TABLE_BITS if travel.words == 1 else 0
        buckets = in_buckets(keys, values_of, travel.words, threads, range_bits=range_bits)
    stops = _condensed(buckets, travel.kind, threads)
    divisor = plan.divisor if isinstance(plan, FloatPlan) else 1
    counts = _add_up(buckets, stops, travel, divisor, threads)
    coordinates, sums = _brought_together(buckets, counts, travel.result, threads)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type
        misfits = np.less(sums, limits.min) | np.greater(sums, limits.max)
        if misfits.any():
            raise Misfit(int(coordinates[np.argmax(misfits)]))
    with np.errstate(all="ignore"):
        return coordinates, sums.astype(dtype, copy=False)


def _condensed(buckets: Buckets, kind: int, threads: int) -> npt.NDArray[np.int64]:
    """Condense heavy buckets on all threads; returns where each bucket then ends."""
    stops = buckets.starts[1:].copy()
    if stops[-1] <= _HEAVY_MIN:
        return stops
    heavy_entries = max(_HEAVY_MIN, int(stops[-1]) // (_HEAVY_SHARE * threads))
    heavy = np.flatnonzero(stops - buckets.starts[:-1] > heavy_entries).tolist()
    pieces = [
        (bucket, start, min(start + _CONDENSED_PIECE, int(stops[bucket])))
        for bucket in heavy
        for start in range(int(buckets.starts[bucket]), int(stops[bucket]), _CONDENSED_PIECE)
    ]
    ends = [0] * len(pieces)

    @with_scratch
    def condense(scratch: Scratch, number: int) -> None:
        _, start, stop = pieces[number]
        room = scratch.room(_CONDENSED_MIN)
        ends[number] = kernels.condense(
            buckets.words,
            buckets.key_words,
            buckets.width,
            kind,
            start,
            stop,
            _CONDENSED_MIN,
            room.entries,
            room.ranges,
            room.places,
        )

    in_pieces(condense, len(pieces), threads)
    entries = buckets.words.reshape(-1, buckets.width)
    stops[heavy] = buckets.starts[heavy]
    for (bucket, start, _), end in zip(pieces, ends, strict=True):
        target = int(stops[bucket])
        stops[bucket] += end - start
        entries[target : stops[bucket]] = entries[start:end]
    return stops


def _add_up(
    buckets: Buckets, stops: npt.NDArray[np.int64], travel: Travel, divisor: int, threads: int
) -> npt.NDArray[np.int64]:
    """Add up every bucket where it stands; returns how many results each has."""
    counts = np.empty(buckets.count, np.int64)
    starts = buckets.starts[:-1]
    misfits: list[int] = []

    @with_scratch
    def add_up(scratch: Scratch, first: int, last: int) -> None:
        room = scratch.room(int((stops[first:last] - starts[first:last]).max()))
        while first < last:
            stopped = kernels.sum_buckets(
                buckets.words,
                buckets.key_words,
                buckets.width,
                travel.kind,
                starts,
                stops,
                first,
                last,
                divisor,
                travel.narrow,
                counts,
                room.table,
                room.entries,
                room.ranges,
                room.places,
                room.doubts,
            )
            if stopped < last and travel.result.kind == "f":
                _settle(buckets, int(starts[stopped]), room, scratch.limbs, travel, divisor)
            elif stopped < last:
                misfits.append(buckets.base + int(room.entries[2, room.doubts[1, 0]]))
            first = stopped + 1

    buckets.for_each(add_up, threads)
    if misfits:
        raise Misfit(min(misfits))
    return counts


def _settle(
    buckets: Buckets,
    start: int,
    room: Room,
    limbs: npt.NDArray[np.int64],
    travel: Travel,
    divisor: int,
) -> None:
    """Put the sums of one bucket that are in doubt right."""
    doubts = room.doubts[: 1 + room.doubts[0, 0]]
    kernels.settle_runs(
        room.entries.view(np.float64)[3],
        doubts,
        divisor,
        travel.narrow,
        limbs,
        buckets.words,
        buckets.key_words,
        buckets.width,
        start,
    )


def _brought_together(
    buckets: Buckets,
    counts: npt.NDArray[np.int64],
    dtype: np.dtype[np.generic],
    threads: int,
) -> tuple[Array, Array]:
    """The coordinates and results of all buckets, end to end."""
    places = np.append(0, np.cumsum(counts))
    coordinates, sums = np.empty(places[-1], np.int64), np.empty(places[-1], dtype)
    words = sums.view(np.uint32).reshape(-1, dtype.itemsize // 4)

    def emit(first: int, last: int) -> None:
        kernels.emit(
            buckets.words,
            buckets.key_words,
            buckets.width,
            buckets.starts,
            places,
            first,
            last,
            buckets.base,
            coordinates,
            words,
        )

    buckets.for_each(emit, threads)
    return coordinates, sums
