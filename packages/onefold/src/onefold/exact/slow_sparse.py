"""Sparse sums and means with NumPy: the slow way, for what the kernels leave out.

That is means of integers, and weights or divisors too large for the kernels; and it is the oracle
that the kernels are compared with. The entries of all parts are sorted by coordinate once and then
read in pieces of bounded size: some whole groups of equal coordinates, or a piece of one large
group, and of rows that are very long only some columns at a time. The scratch is thus the parts'
entries put together, their sorting, and a few blocks of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from onefold.exact import blocks as _blocks
from onefold.exact.certain import Addends, exact_quotients
from onefold.exact.entries import Entries, Span
from onefold.exact.finish import finish
from onefold.exact.groups import reduce_pairs
from onefold.exact.integers import WideSum, sum_overflow
from onefold.exact.pairs import IndexArray, Pair, merge
from onefold.exact.stored import add_stored, terms
from onefold.exact.weighting import Weighting
from onefold.update import Array, Sparse

__all__ = ["reduce_slowly"]

_Fill: TypeAlias = Callable[[Entries, int, Array], None]
"""From entries and a divisor to the rows of the result, one for each group."""


def reduce_slowly(parts: list[Sparse], weighting: Weighting, dtype: np.dtype[np.generic]) -> Sparse:
    """The sums or means of parts of one dtype and row shape.

    Raises:
        SumOverflow: ``dtype`` is an integer type that does not hold a sum.
    """
    fill = _fill_integers if dtype.kind in "iu" else _fill_quotients
    row = parts[0].row
    entries = Entries.of(parts, weighting.weights, _blocks.BLOCK_ELEMENTS)
    coordinates = entries.groups.coordinates
    result = np.empty((coordinates.size, math.prod(row)), dtype)
    with np.errstate(all="ignore"):
        fill(entries, weighting.divisor, result)
    return Sparse(coordinates, result.reshape(coordinates.size, *row), parts[0].shape)


def _fill_quotients(entries: Entries, divisor: int, result: Array) -> None:
    """Float sums and all means."""
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
