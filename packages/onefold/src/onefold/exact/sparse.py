"""Sums and means of sparse parts: entries with equal coordinates are added.

The entries of all parts are sorted by coordinate once and then read in pieces of bounded size:
some whole groups of equal coordinates, or a piece of one large group, and of rows that are very
long only some columns at a time. The scratch is thus the parts' entries put together, their
sorting, and a few blocks of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from onefold.errors import InvalidUpdate, Mismatch, NoContributions
from onefold.exact.blocks import BLOCK_ELEMENTS
from onefold.exact.certain import Addends, exact_quotients
from onefold.exact.entries import Entries, Span
from onefold.exact.finish import finish
from onefold.exact.groups import reduce_pairs
from onefold.exact.integers import WideSum, sum_overflow
from onefold.exact.pairs import IndexArray, Pair, merge
from onefold.exact.stored import add_stored, terms
from onefold.exact.subnormals import check_subnormals
from onefold.exact.weighting import Weighting, listed
from onefold.update import Array, Sparse

__all__ = ["mean_sparse", "sum_sparse"]

_Fill: TypeAlias = Callable[[Entries, int, Array], None]
"""From entries and a divisor to the rows of the result, one for each group."""


def sum_sparse(parts: Iterable[Sparse]) -> Sparse:
    """The correctly rounded sums by coordinate.

    Args:
        parts: Of one dtype, row shape and declared shape. They are not changed.

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
    fill = _fill_integers if dtype.kind in "iu" else _fill_quotients
    return _reduce(checked, weighting, dtype, fill)


def mean_sparse(parts: Iterable[Sparse], weights: Iterable[object] | None = None) -> Sparse:
    """The correctly rounded means by coordinate: each sum divided by what a dense mean divides by.

    A part without an entry at a coordinate counts as a zero there, so that the sparse mean is the
    dense mean without its zeros.

    Args:
        parts: As for :func:`sum_sparse`.
        weights: An integer from 0 to 2**53 for each part; the divisor is their sum. A part of
            weight 0 is left out, its coordinates too. Without weights each part counts once.

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
    return _reduce(selected, weighting, dtype, _fill_quotients)


def _reduce(
    parts: list[Sparse], weighting: Weighting, dtype: np.dtype[np.generic], fill: _Fill
) -> Sparse:
    row = parts[0].row
    entries = Entries.of(parts, weighting.weights, BLOCK_ELEMENTS)
    coordinates = entries.groups.coordinates
    result = np.empty((coordinates.size, math.prod(row)), dtype)
    with np.errstate(all="ignore"):
        fill(entries, weighting.divisor, result)
    return Sparse(coordinates, result.reshape(coordinates.size, *row), parts[0].shape)


def _fill_quotients(entries: Entries, divisor: int, result: Array) -> None:
    """Float sums and all means."""
    check_subnormals()
    for span in entries.spans():
        values, doubt = finish(_pair(entries, span), divisor, result.dtype)
        if doubt.size:
            gather = partial(_gather, entries, span)
            values.flat[doubt] = exact_quotients(doubt, gather, divisor, result.dtype)
        result[span.groups, span.columns] = values


def _pair(entries: Entries, span: Span) -> Pair:
    total: Pair | None = None
    for values, weights, starts in entries.pieces(span):
        pair = Pair.zeros(values.shape)
        add_stored(pair, values, weights)
        pair = reduce_pairs(pair, starts)
        total = pair if total is None else merge(total, pair)
    assert total is not None, "a span has entries"
    return total


def _gather(entries: Entries, span: Span, indices: IndexArray) -> Iterator[Addends]:
    for owner, values, weights in entries.elements(span, indices):
        for term in terms(values):
            yield Addends(owner, term, 1 if weights is None else weights.astype(np.object_))


def _fill_integers(entries: Entries, divisor: int, result: Array) -> None:
    """Integer sums."""
    assert divisor == 1, "integer sums are not divided"
    overflows: list[tuple[int, int]] = []
    for span in entries.spans():
        total = _wide_sum(entries, span)
        values, misfits = total.narrowed(result.dtype)
        if misfits.size:  # spans of other columns may have an overflow at an earlier coordinate
            group = span.groups.start + int(misfits[0]) // values.shape[1]
            overflows.append((int(entries.groups.coordinates[group]), total.total(int(misfits[0]))))
        result[span.groups, span.columns] = values
    if overflows:
        coordinate, exact = min(overflows, key=itemgetter(0))
        raise sum_overflow(exact, coordinate, result.dtype)


def _wide_sum(entries: Entries, span: Span) -> WideSum:
    total: WideSum | None = None
    for values, _, starts in entries.pieces(span):
        part = WideSum.of(values).grouped(starts)
        part.carry()
        if total is not None:
            part.add(total)
        total = part
    assert total is not None, "a span has entries"
    return total


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
