"""The exact sums of some entries by coordinate, for :mod:`onefold.exact.partial`."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from onefold.exact.groups import Groups, reduce_pairs
from onefold.exact.pairs import FloatArray, Pair
from onefold.exact.running import RunningSums
from onefold.exact.stored import add_stored, terms
from onefold.update import Array

__all__ = ["grouped_sums"]


def grouped_sums(
    coordinates: npt.NDArray[np.int64], values: Array, weight: int
) -> tuple[npt.NDArray[np.int64], RunningSums]:
    """The coordinates, ascending, and the sums of ``weight * values`` at each.

    Args:
        coordinates: In any order, repeated or not.
        values: A number or a row of numbers for each; there is a sum for each number.
        weight: From 1 to 2**53.
    """
    size = math.prod(values.shape[1:])
    groups = Groups.of(coordinates)
    rows = values.reshape(values.shape[0], size)[groups.order]
    with np.errstate(all="ignore"):
        pair = Pair.zeros(rows.shape)
        add_stored(pair, rows, None if weight == 1 else weight)
        pair = reduce_pairs(pair, groups.starts[:-1])
        sums = RunningSums(
            pair.high.reshape(-1), None if pair.low is None else pair.low.reshape(-1)
        )
        bad = _inexact(pair)
        if bad.any():
            _put_aside(sums, bad, groups, rows, weight)
    return groups.coordinates, sums


def _inexact(pair: Pair) -> npt.NDArray[np.bool_]:
    """Where a pair is not the exact sum."""
    bad = ~np.isfinite(pair.high)
    if pair.low is not None:
        bad |= ~np.isfinite(pair.low)
    if pair.error is not None:
        bad |= pair.error != 0
    return bad


def _put_aside(
    sums: RunningSums, bad: npt.NDArray[np.bool_], groups: Groups, rows: Array, weight: int
) -> None:
    """Sum again, in integers, where the sums are bad."""
    halves: list[tuple[FloatArray | None, float]] = [(sums.high, -0.0), (sums.low, 0.0)]
    for half, nothing in halves:
        if half is not None:
            half[bad.reshape(-1)] = nothing
    owner = np.repeat(np.arange(bad.shape[0]), np.diff(groups.starts))
    entry, column = np.nonzero(bad[owner])
    positions = owner[entry] * bad.shape[1] + column
    for term in terms(rows[entry, column]):
        sums.add_long(positions, term, weight)
