"""Sums and means of sparse parts: entries with equal coordinates are added.

Numbers are the business of :mod:`onefold.exact.sparse_numbers`, rows of numbers that of
:mod:`onefold.exact.sparse_rows`; what their kernels leave out goes to
:mod:`onefold.exact.slow_sparse`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NoReturn

import numpy as np

from onefold.errors import InvalidUpdate, Mismatch, NoContributions
from onefold.exact.integers import sum_overflow
from onefold.exact.plan import IntegerPlan, plan_for
from onefold.exact.pool import thread_count
from onefold.exact.slow_sparse import reduce_slowly
from onefold.exact.sparse_numbers import Misfit, Travel, reduce_numbers
from onefold.exact.sparse_rows import reduce_rows
from onefold.exact.subnormals import check_subnormals
from onefold.exact.weighting import Weighting, listed
from onefold.update import Sparse

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
        FlushToZero: This thread's arithmetic takes subnormal numbers for zero, which only sums
            of integers bear.
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
    if not isinstance(plan, IntegerPlan):
        check_subnormals()
    if plan is None or not any(len(part) for part in parts):
        return reduce_slowly(parts, weighting, dtype)
    travel = None if parts[0].row else Travel.of(parts[0].values.dtype, plan)
    reduce = reduce_rows if travel is None else partial(reduce_numbers, travel)
    try:
        coordinates, values = reduce(parts, dtype, plan, threads)
    except Misfit as misfit:
        _raise_overflow(parts, misfit.coordinate)
    return Sparse(coordinates, values, parts[0].shape)


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
    first = checked[0]
    facts = (first.values.dtype, first.row, first.shape)
    for index, part in enumerate(checked):
        if (part.values.dtype, part.row, part.shape) != facts:
            raise Mismatch(
                f"part {index} has {_facts(part)}, but part 0 has {_facts(first)}; "
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
