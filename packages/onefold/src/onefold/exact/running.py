"""Sums that go on, and lose nothing: the state behind :mod:`onefold.exact.partial`.

For each position there is a pair of float64, as in :mod:`onefold.exact.pairs`, of which the
second is only there once it is needed anywhere. An addition that even the pair does not hold
exactly is not made: the pair is emptied into an integer of any size, kept for that position
alone, and the value goes there too. So the sum is always exactly pair plus integer, and which of
the two holds what depends on the order but the sum does not.

While one float64 holds every sum, an addition takes three operations of NumPy and two comparisons:
``total = old + value`` is exact where ``total - old`` is the value and ``total - value`` is the old
sum. Whoever calls does so for a block at a time, which fits a processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from onefold.exact.certain import integers_of, rounded
from onefold.exact.finish import finish
from onefold.exact.pairs import FloatArray, IndexArray, Pair, two_product, two_sum
from onefold.update import Array

__all__ = ["MINUS", "NAN", "PLUS", "SUMS_BLOCK", "Long", "Positions", "RunningSums", "blocks"]

NAN, PLUS, MINUS = 1, 2, 4

SUMS_BLOCK = 1 << 14
"""How many sums are added to at a time."""

_INTEGER_LIMIT = 2.0**62

Positions: TypeAlias = IndexArray | slice
"""None of them twice; a slice has start and stop, and no step."""


@dataclass(slots=True)
class Long:
    """What is kept of a position beside its pair.

    Attributes:
        total: An integer, in units of 2**-1126.
        kinds: Which of NaN, +infinity and -infinity were added, as bits.
    """

    total: int = 0
    kinds: int = 0


@dataclass(slots=True)
class RunningSums:
    """Sums at positions 0 to ``high.size - 1``."""

    high: FloatArray
    low: FloatArray | None = None
    longs: dict[int, Long] = field(default_factory=dict)

    @classmethod
    def zeros(cls, size: int) -> RunningSums:
        """Sums of nothing."""
        return cls(np.full(size, -0.0))

    @property
    def nbytes(self) -> int:
        """The memory in use, about."""
        low = 0 if self.low is None else self.low.nbytes
        return self.high.nbytes + low + 300 * len(self.longs)

    def add(
        self, positions: Positions, values: FloatArray, errors: FloatArray | None = None
    ) -> None:
        """Add ``values + errors``; the sign of an error that is zero does not count."""
        if errors is not None and not errors.any():
            errors = None
        if errors is None and self.low is None:
            old = self.high[positions]
            total = old + values
            if _is_exact(total, old, values):
                self.high[positions] = total
                return
        self._add_with_errors(positions, values, errors)

    def add_product(
        self, positions: Positions, values: FloatArray, weight: int, *, is_exact: bool
    ) -> None:
        """Add ``weight * values``, the weight at most 2**53.

        ``is_exact`` says that a float64 holds every product of finite values.
        """
        if is_exact:
            self.add(positions, values * float(weight))
            return
        product, error = two_product(values, np.asarray(weight, np.float64))
        bad = np.flatnonzero(~(np.isfinite(product) & np.isfinite(error)))
        if bad.size:
            self.add_long(_chosen(positions, bad), values[bad], weight)
            product[bad], error[bad] = -0.0, 0.0
        self.add(positions, product, error)

    def add_long(self, positions: IndexArray, values: FloatArray, weight: int = 1) -> None:
        """Add ``weight * values`` to integers; a position may come several times."""
        totals = integers_of(np.where(np.isfinite(values), values, 0.0)).tolist()
        for position, value, total in zip(positions.tolist(), values.tolist(), totals, strict=True):
            long = self.longs.setdefault(position, Long())
            long.total += total * weight
            if math.isnan(value):
                long.kinds |= NAN
            elif math.isinf(value):
                long.kinds |= PLUS if value > 0 else MINUS

    def merge(self, other: RunningSums, positions: Positions) -> None:
        """Add all of ``other``, whose sums belong to these positions; it may be this very one."""
        longs = [(at, long.total, long.kinds) for at, long in other.longs.items()]
        for block in blocks(other.high.size):
            low = None if other.low is None else other.low[block]
            self.add(_within(positions, block), other.high[block], low)
        where = _chosen(positions, np.array([at for at, _, _ in longs], np.intp))
        for position, (_, total, kinds) in zip(where.tolist(), longs, strict=True):
            own = self.longs.setdefault(position, Long())
            own.total += total
            own.kinds |= kinds

    def moved(self, size: int, positions: IndexArray) -> RunningSums:
        """These sums at other positions among ``size``, and nothing at all others."""
        moved = RunningSums.zeros(size)
        moved.high[positions] = self.high
        if self.low is not None:
            moved.low = np.zeros(size)
            moved.low[positions] = self.low
        moved.longs = {int(positions[at]): long for at, long in self.longs.items()}
        return moved

    def quotients(self, divisor: int, dtype: np.dtype[np.generic]) -> Array:
        """The sums divided by ``divisor``, rounded once to a float type."""
        result: Array = np.empty(self.high.size, dtype)
        longs = self._long_positions()
        for block in blocks(result.size):
            low = None if self.low is None else self.low[block]
            values, doubt = finish(Pair(self.high[block], low), divisor, dtype)
            result[block] = values
            exceptional = np.union1d(doubt + block.start, _inside(longs, block))
            if exceptional.size:
                result[exceptional] = rounded(self.totals(exceptional), divisor, dtype)
        for at, long in self.longs.items():
            if long.kinds:
                result[at] = _special(long.kinds)
        return result

    def integers(self, dtype: np.dtype[np.generic]) -> tuple[Array, tuple[int, int] | None]:
        """The sums in an integer type, and the first that does not fit: position and total."""
        result: Array = np.empty(self.high.size, dtype)
        longs = self._long_positions()
        for block in blocks(result.size):
            values, doubt = self._short_integers(block, dtype)
            result[block] = values
            exceptional = np.union1d(np.flatnonzero(doubt) + block.start, _inside(longs, block))
            misfit = self._put_integers(result, exceptional)
            if misfit is not None:
                return result, misfit
        return result, None

    def totals(self, positions: IndexArray) -> list[int]:
        """The sums at some positions in units of 2**-1126, infinities and NaN left out."""
        sums = integers_of(self.high[positions])
        if self.low is not None:
            sums += integers_of(self.low[positions])
        longs = [self.longs.get(position) for position in positions.tolist()]
        return [
            int(total) + (long.total if long else 0)
            for total, long in zip(sums.tolist(), longs, strict=True)
        ]

    def _add_with_errors(
        self, positions: Positions, values: FloatArray, errors: FloatArray | None
    ) -> None:
        old_high = self.high[positions]
        old_low = None if self.low is None else self.low[positions]
        high, error = two_sum(old_high, values)
        low, is_good = old_low, np.isfinite(high)
        for term in (error, errors):
            if term is None:
                continue
            if low is None:
                low = term
            else:
                low, dropped = two_sum(low, term)
                is_good &= dropped == 0
        assert low is not None, "an addition has an error"
        bad = np.flatnonzero(~(is_good & np.isfinite(low)))
        if bad.size:
            where = _chosen(positions, bad)
            for part in (old_high, old_low, values, errors):
                if part is not None:
                    self.add_long(where, part[bad])
            high[bad], low[bad] = -0.0, 0.0
        self.high[positions] = high
        if self.low is None and low.any():
            self.low = np.zeros_like(self.high)
        if self.low is not None:
            self.low[positions] = low

    def _long_positions(self) -> IndexArray:
        return np.array(sorted(self.longs), np.intp)

    def _short_integers(self, block: slice, dtype: np.dtype[np.generic]) -> tuple[Array, Array]:
        """The sums that 64 bits hold, and where they may be something else."""
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # an integer type
        high = self.high[block]
        low = np.zeros_like(high) if self.low is None else self.low[block]
        short = (np.abs(high) < _INTEGER_LIMIT) & (np.abs(low) < _INTEGER_LIMIT)
        total = np.where(short, high, 0).astype(np.int64) + np.where(short, low, 0).astype(np.int64)
        short &= (total >= limits.min) & (total <= min(limits.max, 2**63 - 1))
        return total.astype(dtype), ~short

    def _put_integers(self, result: Array, positions: IndexArray) -> tuple[int, int] | None:
        """Put the totals where they belong; the first that does not fit, or None."""
        limits = np.iinfo(result.dtype)  # type: ignore[type-var]  # an integer type
        for at, scaled in zip(positions.tolist(), self.totals(positions), strict=True):
            total = scaled // _ONE
            if not limits.min <= total <= limits.max:
                return at, total
            result[at] = total
        return None


_ONE = int(integers_of(np.array([1.0]))[0])


def blocks(size: int) -> Iterator[slice]:
    """The positions below ``size``, some at a time."""
    for first in range(0, size, SUMS_BLOCK):
        yield slice(first, min(first + SUMS_BLOCK, size))


def _is_exact(total: FloatArray, left: FloatArray, right: FloatArray) -> bool:
    """Whether every total is the exact sum, and finite."""
    return np.array_equal(total - left, right) and np.array_equal(total - right, left)


def _chosen(positions: Positions, at: IndexArray) -> IndexArray:
    return at + positions.start if isinstance(positions, slice) else positions[at]


def _within(positions: Positions, block: slice) -> Positions:
    if isinstance(positions, slice):
        return slice(positions.start + block.start, positions.start + block.stop)
    return positions[block]


def _inside(sorted_positions: IndexArray, block: slice) -> IndexArray:
    first, last = np.searchsorted(sorted_positions, [block.start, block.stop])
    return sorted_positions[first:last]


def _special(kinds: int) -> float:
    if kinds & NAN or kinds == PLUS | MINUS:
        return float("nan")
    return float("inf") if kinds == PLUS else float("-inf")
