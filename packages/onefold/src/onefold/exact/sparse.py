"""Sums and means of sparse parts: entries with equal coordinates are added.

Entries are dealt out to buckets by coordinate (:mod:`onefold.exact.buckets`), which go to several
threads. What happens to a bucket is in :mod:`onefold.exact.kernels.sparse` and, where values are
rows, in :mod:`onefold.exact.kernels.rows`; what the kernels leave out goes to
:mod:`onefold.exact.slow_sparse`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn, cast

import numpy as np
import numpy.typing as npt

from onefold.errors import InvalidUpdate, Mismatch, NoContributions
from onefold.exact.buckets import Buckets, in_buckets
from onefold.exact.buffers import Buffers, plain, storage
from onefold.exact.integers import sum_overflow
from onefold.exact.plan import FloatPlan, IntegerPlan, Plan, plan_for
from onefold.exact.pool import thread_count
from onefold.exact.slow_sparse import reduce_slowly
from onefold.exact.weighting import Weighting, listed
from onefold.update import Array, Sparse

__all__ = ["mean_sparse", "sum_sparse"]


def sum_sparse(parts: Iterable[Sparse], *, threads: int | None = None) -> Sparse:
    """The correctly rounded sums by coordinate.

    Args:
        parts: Of one dtype, row shape and declared shape. They are not changed.
        threads: As for :func:`onefold.sum_dense`.

    Returns:
        Ascending coordinates, each that occurs once, also where it cancels to zero, with the sum
        of all values at it.

    Raises:
        NoContributions: There are no parts.
        InvalidUpdate: Something is no Sparse.
        Mismatch: dtypes, row shapes or declared shapes differ.
        InvalidInput: ``parts`` cannot be iterated over.
        SumOverflow: A sum of integers does not fit their type.
        FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
    """
    checked = _check_parts(parts)
    weighting = Weighting.sum(len(checked))
    dtype = checked[0].values.dtype
    return _reduce(checked, weighting, dtype, thread_count(threads))


def mean_sparse(
    parts: Iterable[Sparse],
    weights: Iterable[object] | None = None,
    *,
    threads: int | None = None,
) -> Sparse:
    """The correctly rounded means by coordinate: each sum divided by what a dense mean divides by.

    A part without an entry at a coordinate counts as a zero there, so that the sparse mean is the
    dense mean without its zeros.

    Args:
        parts: As for :func:`sum_sparse`.
        weights: An integer from 0 to 2**53 for each part; the divisor is their sum. A part of
            weight 0 is left out, its coordinates too. Without weights each part counts once.
        threads: As for :func:`onefold.sum_dense`.

    Returns:
        As :func:`sum_sparse`; float64 for integers.

    Raises:
        NoContributions: There are no parts.
        InvalidUpdate: Something is no Sparse, or a weight is no such integer.
        Mismatch: dtypes, row shapes or declared shapes differ.
        InvalidInput: There are not as many weights as parts.
        ZeroWeight: All weights are 0.
        FlushToZero: This thread's arithmetic takes subnormal numbers for zero.
    """
    checked = _check_parts(parts)
    weighting = Weighting.mean(len(checked), weights)
    dtype = checked[0].values.dtype
    dtype = np.dtype(np.float64) if dtype.kind in "iu" else dtype
    selected = [checked[index] for index in weighting.selected]
    return _reduce(selected, weighting, dtype, thread_count(threads))


def _reduce(
    parts: list[Sparse], weighting: Weighting, dtype: np.dtype[np.generic], threads: int
) -> Sparse:
    plan = plan_for(parts[0].values.dtype, dtype, weighting)
    if plan is None or not any(len(part) for part in parts):
        return reduce_slowly(parts, weighting, dtype)
    payload = _payload(parts[0], plan)
    if payload is None:
        coordinates, values = _reduce_rows(parts, dtype, plan, threads)
    else:
        coordinates, values = _reduce_numbers(parts, dtype, plan, payload, threads)
    return Sparse(coordinates, values, parts[0].shape)


def _payload(part: Sparse, plan: Plan) -> np.dtype[np.generic] | None:
    """The type in which numbers travel to their buckets, weights applied; None for rows.

    Some numbers are treated as rows of one: the products of float64 and weights do not fit any
    type, nor does uint64.
    """
    if part.row:
        return None
    if isinstance(plan, IntegerPlan):
        return None if part.values.dtype == np.uint64 else np.dtype(np.int64)
    if not plan.products_exact:
        return None
    unweighted = bool((plan.weights == 1).all())
    is_single = part.values.dtype == np.float32 and unweighted
    return np.dtype(np.float32 if is_single else np.float64)


def _reduce_numbers(
    parts: list[Sparse],
    dtype: np.dtype[np.generic],
    plan: Plan,
    payload: np.dtype[np.generic],
    threads: int,
) -> tuple[Array, Array]:
    from onefold.exact import kernels  # noqa: PLC0415  # Numba is loaded when it is needed

    divisor = plan.divisor if isinstance(plan, FloatPlan) else 1

    def values_of(number: int, chosen: slice) -> Array:
        values = parts[number].values[chosen].astype(payload)
        if isinstance(plan, FloatPlan) and plan.weights[number] != 1:
            np.multiply(values, plan.weights[number], out=values)
        return values

    wide = None if payload == np.float32 else np.dtype(np.uint64)
    coordinates = [part.coordinates for part in parts]
    buckets = in_buckets(coordinates, values_of, payload, threads, key=wide)
    results = _result_type(dtype, payload)
    seen = buckets.values.view(results)
    counts, misfits = np.empty((2, buckets.count), np.int64)

    def add_up(first: int, last: int) -> None:
        kernels.sum_buckets(
            buckets.keys,
            buckets.values,
            buckets.starts,
            first,
            last,
            divisor,
            seen,
            counts,
            misfits,
        )

    buckets.for_each(add_up, threads)
    if (misfits >= 0).any() and dtype.kind in "iu":
        bucket = int(np.argmax(misfits >= 0))
        key = int(buckets.keys[buckets.starts[bucket] + misfits[bucket]])
        _raise_overflow(parts, buckets.base + key)
    found, sums = _brought_together(buckets, seen, counts, threads)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type
        sums64 = cast("npt.NDArray[np.int64]", sums)
        misfit = (sums64 < limits.min) | (sums64 > limits.max)
        if misfit.any():
            _raise_overflow(parts, int(found[np.argmax(misfit)]))
    elif results == np.uint32:
        sums = sums.view(np.float32)
    with np.errstate(over="ignore"):
        return found, sums.astype(dtype, copy=False)


def _result_type(
    dtype: np.dtype[np.generic], payload: np.dtype[np.generic]
) -> np.dtype[np.generic]:
    """The type of the kernels' results, of which there are few, since each is compiled."""
    if payload == np.int64:
        return payload
    return np.dtype(np.uint32) if dtype.itemsize == 2 else dtype


def _brought_together(
    buckets: Buckets, results: Array, counts: npt.NDArray[np.int64], threads: int
) -> tuple[Array, Array]:
    """The coordinates and results of all buckets, end to end."""
    from onefold.exact import kernels  # noqa: PLC0415

    places = np.append(0, np.cumsum(counts))
    coordinates, sums = np.empty(places[-1], np.int64), np.empty(places[-1], results.dtype)
    bits = np.dtype(f"u{results.itemsize}")
    ratio = buckets.values.itemsize // results.itemsize
    source, target = results.view(bits), sums.view(bits)

    def emit(first: int, last: int) -> None:
        kernels.emit(
            buckets.keys,
            source,
            buckets.starts,
            places,
            first,
            last,
            buckets.base,
            ratio,
            coordinates,
            target,
        )

    buckets.for_each(emit, threads)
    return coordinates, sums


def _reduce_rows(
    parts: list[Sparse], dtype: np.dtype[np.generic], plan: Plan, threads: int
) -> tuple[Array, Array]:
    from onefold.exact import kernels  # noqa: PLC0415

    rows = [plain(part.values) for part in parts]

    def numbers_of(number: int, chosen: slice) -> Array:
        numbers: Array = np.arange(chosen.start, chosen.stop) | number << kernels.ROW_BITS
        return numbers

    buckets = in_buckets(
        [part.coordinates for part in parts],
        numbers_of,
        np.dtype(np.int64),
        threads,
        key=np.dtype(np.uint64),
    )
    counts = np.empty(buckets.count, np.int64)

    def sort(first: int, last: int) -> None:
        kernels.sort_buckets(buckets.keys, buckets.values, buckets.starts, first, last, counts)

    buckets.for_each(sort, threads)
    result = np.empty((int(counts.sum()), *parts[0].row), dtype)
    misfits: list[int] = []
    coordinates = _summed_rows(
        buckets, counts, Buffers.starts(rows), plan, result, misfits, threads
    )
    if misfits:
        _raise_overflow(parts, min(misfits))
    return coordinates, result


def _summed_rows(  # noqa: PLR0913, PLR0917  # all that a kernel needs
    buckets: Buckets,
    counts: npt.NDArray[np.int64],
    rows: Buffers,
    plan: Plan,
    result: Array,
    misfits: list[int],
    threads: int,
) -> npt.NDArray[np.int64]:
    """Fill ``result`` from sorted entries, and return the coordinates of its rows."""
    from onefold.exact import kernels  # noqa: PLC0415

    places = np.append(0, np.cumsum(counts))
    coordinates = np.empty(places[-1], np.int64)
    out = storage(result).reshape(int(places[-1]), math.prod(result.shape[1:]))

    def reduce(first: int, last: int) -> None:
        bounds = (buckets.starts[first], buckets.starts[last], places[first])
        entries = (buckets.keys, buckets.values, bounds, buckets.base, rows.addresses)
        if isinstance(plan, FloatPlan):
            kernels.reduce_rows(
                *entries,
                plan.weights,
                plan.divisor,
                plan.spread >= 0,
                plan.products_exact,
                coordinates,
                out,
            )
        elif (misfit := kernels.integer_rows(*entries, coordinates, out)) >= 0:
            misfits.append(int(coordinates[misfit]))

    buckets.for_each(reduce, threads)
    return coordinates


def _raise_overflow(parts: list[Sparse], coordinate: int) -> NoReturn:
    """Say what does not fit: the sum of the first element of the row that does not."""
    dtype = parts[0].values.dtype
    totals = sum(
        part.values[part.coordinates == coordinate].astype(object).sum(axis=0, initial=0)
        for part in parts
    )
    limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type, by our caller
    flat = np.asarray(totals, object).reshape(-1).tolist()
    misfit = next(total for total in flat if not limits.min <= total <= limits.max)
    raise sum_overflow(misfit, coordinate, dtype)


def _check_parts(parts: Iterable[Sparse]) -> list[Sparse]:
    checked = [_check_part(index, part) for index, part in enumerate(listed(parts, "parts"))]
    if not checked:
        raise NoContributions("expected at least one part; there is no sum of nothing")
    for index, part in enumerate(checked):
        if _facts(part) != _facts(checked[0]):
            raise Mismatch(
                f"part {index} has {_facts(part)}, but part 0 has {_facts(checked[0])}; "
                f"nothing broadcasts"
            )
    return checked


def _check_part(index: int, part: object) -> Sparse:
    if not isinstance(part, Sparse):
        raise InvalidUpdate(f"part {index} must be a Sparse, not {type(part).__name__}")
    return part


def _facts(part: Sparse) -> str:
    """What must agree, in words."""
    return f"dtype {part.values.dtype.name}, rows of shape {part.row} and shape {part.shape}"
