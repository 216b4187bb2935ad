"""What simulated workers contribute, and what that must come to: lists of Fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from onefold.policy import Operation
from onefold.update import Sparse, Tensor, Update

__all__ = ["Content", "Sums", "expected", "sums_of"]

_NUMBERS = (0.1, 1e16, -1e16, 1.0, 2.0**-1074, 3.5, -0.7, 1e300, -1e300, 123456789.0)
_COORDINATES = (-3, 0, 1, 2, 7, 2**40)

Sums = tuple[tuple[float, ...], tuple[tuple[int, float], ...]]
"""The numbers of an aggregate: the dense tensor, and the entries of the sparse one."""


@dataclass(frozen=True, slots=True)
class Content:
    """The numbers of an update: two tensors, or the dense one alone where ``entries`` is None."""

    dense: tuple[float, ...]
    entries: tuple[tuple[int, float], ...] | None
    weight: int

    @classmethod
    def drawn(
        cls, draw: Callable[..., float], *, is_whole: bool, weight: int, has_nan: bool
    ) -> Content:
        """A content by chance.

        Args:
            draw: Gives a number from 0 up to 1 for each name.
            is_whole: Whether it has the dense tensor alone, and so travels in one part.
            weight: Its weight.
            has_nan: Whether one of its numbers is NaN.
        """
        dense = [_NUMBERS[int(draw("dense", place) * len(_NUMBERS))] for place in range(3)]
        if has_nan:
            dense[1] = math.nan
        count = int(draw("entries") * 4)
        entries = tuple(
            (
                _COORDINATES[int(draw("coordinate", place) * len(_COORDINATES))],
                _NUMBERS[int(draw("value", place) * len(_NUMBERS))],
            )
            for place in range(count)
        )
        return cls(tuple(dense), None if is_whole else entries, weight)

    def update(self) -> Update:
        """The update that a worker pushes."""
        tensors: dict[str, Tensor] = {"d": np.array(self.dense)}
        if self.entries is not None:
            coordinates = np.array([coordinate for coordinate, _ in self.entries], np.int64)
            values = np.array([value for _, value in self.entries], np.float64)
            tensors["s"] = Sparse(coordinates, values)
        return Update(tensors, self.weight)


def expected(contents: Sequence[Content], operation: Operation) -> Sums:
    """The correctly rounded sum or mean of contents of weights above 0."""
    weights = [c.weight if operation == "weighted_mean" else 1 for c in contents]
    divisor = 1 if operation == "sum" else sum(weights)
    dense = tuple(
        _rounded(column, weights, divisor)
        for column in zip(*(c.dense for c in contents), strict=True)
    )
    columns: dict[int, list[tuple[float, int]]] = {}
    for content, weight in zip(contents, weights, strict=True):
        for coordinate, value in content.entries or ():
            columns.setdefault(coordinate, []).append((value, weight))
    entries = tuple(
        (coordinate, _rounded([v for v, _ in column], [w for _, w in column], divisor))
        for coordinate, column in sorted(columns.items())
    )
    return dense, entries


def sums_of(tensors: dict[str, Tensor]) -> Sums:
    """The numbers of an aggregate's tensors."""
    dense, sparse = tensors["d"], tensors.get("s")
    entries: tuple[tuple[int, float], ...] = ()
    if isinstance(sparse, Sparse):
        entries = tuple(zip(sparse.coordinates.tolist(), sparse.values.tolist(), strict=True))
    assert not isinstance(dense, Sparse)
    return tuple(dense.tolist()), entries


def _rounded(values: Sequence[float], weights: Sequence[int], divisor: int) -> float:
    if any(map(math.isnan, values)):
        return math.nan
    total = sum(Fraction(value) * weight for value, weight in zip(values, weights, strict=True))
    return float(Fraction(total) / divisor)
