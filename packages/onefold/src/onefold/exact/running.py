"""Sums that go on, and lose nothing: the state behind :mod:`onefold.exact.partial`.

For each coordinate there is a pair of float64, as in :mod:`onefold.exact.pairs`, of which the
second is only there once it is needed anywhere. An addition that even the pair does not hold
exactly is not made: the pair is emptied into an integer of any size, kept for that coordinate
alone, and the value goes there too. So the sum is always exactly pair plus integer, and which of
the two holds what depends on the order but the sum does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from onefold.exact.certain import integers_of, rounded
from onefold.exact.finish import finish
from onefold.exact.pairs import FloatArray, IndexArray, Pair, two_sum
from onefold.update import Array

__all__ = ["MINUS", "NAN", "PLUS", "Long", "RunningSums"]

NAN, PLUS, MINUS = 1, 2, 4


@dataclass(slots=True)
class Long:
    """What is kept of a coordinate beside its pair.

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

    def add(self, positions: IndexArray | slice, high: FloatArray, low: FloatArray | None) -> None:
        """Add ``high + low`` at some positions, none of them twice; ``low`` is an error term."""
        old_high = self.high[positions]
        new_high, error = two_sum(old_high, high)
        bad = ~np.isfinite(new_high)
        old_low = None if self.low is None else self.low[positions]
        new_low = old_low
        for term in (error, low):
            if term is None or not term.any():
                continue
            if new_low is None:
                new_low = term
            else:
                new_low, dropped = two_sum(new_low, term)
                bad |= dropped != 0
        if new_low is not None:
            bad |= ~np.isfinite(new_low)
        if bad.any():
            at = np.flatnonzero(bad)
            where = np.arange(self.high.size)[positions][at]
            for part in (old_high, old_low, high, low):
                if part is not None:
                    self.add_long(where, part[at])
            new_high[at] = -0.0
            if new_low is not None:
                new_low = new_low.copy()
                new_low[at] = 0.0
        self.high[positions] = new_high
        if new_low is not None and new_low.any() and self.low is None:
            self.low = np.zeros_like(self.high)
        if self.low is not None:
            self.low[positions] = 0.0 if new_low is None else new_low

    def add_long(self, positions: IndexArray, values: FloatArray, weight: int = 1) -> None:
        """Add ``weight * values`` to integers; a position may come several times."""
        finite = np.isfinite(values)
        totals = integers_of(np.where(finite, values, 0.0)).tolist()
        for position, value, total in zip(positions.tolist(), values.tolist(), totals, strict=True):
            long = self.longs.setdefault(position, Long())
            long.total += total * weight
            if math.isnan(value):
                long.kinds |= NAN
            elif value in (np.inf, -np.inf):
                long.kinds |= PLUS if value > 0 else MINUS

    def merge(self, other: RunningSums, positions: IndexArray | slice) -> None:
        """Add all of ``other``, whose sums belong to these positions."""
        self.add(positions, other.high, other.low)
        where = np.arange(self.high.size)[positions]
        for position, long in other.longs.items():
            own = self.longs.setdefault(int(where[position]), Long())
            own.total += long.total
            own.kinds |= long.kinds

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
        low = None if self.low is None else self.low.copy()
        with np.errstate(all="ignore"):
            values, doubt = finish(Pair(self.high, low), divisor, dtype)
            values = values.copy()
            exceptional = np.array(sorted({*doubt.tolist(), *self.longs}), np.intp)
            if exceptional.size:
                totals = [self.integer(at) for at in exceptional.tolist()]
                values[exceptional] = rounded(totals, divisor, dtype)
                for at, long in self.longs.items():
                    if long.kinds:
                        values[at] = _special(long.kinds)
        return values

    def integer(self, position: int) -> int:
        """The sum at a position in units of 2**-1126, infinities and NaN left out."""
        parts = [self.high[position]] + ([] if self.low is None else [self.low[position]])
        total = sum(integers_of(np.array(parts)).tolist())
        long = self.longs.get(position)
        return int(total + (long.total if long else 0))


def _special(kinds: int) -> float:
    if kinds & NAN or kinds == PLUS | MINUS:
        return float("nan")
    return float("inf") if kinds == PLUS else float("-inf")
