"""How much each contribution counts, and what a mean is divided by."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from onefold.checks import check_weight
from onefold.errors import InvalidInput, ZeroWeight

__all__ = ["Weighting", "listed"]


@dataclass(frozen=True, slots=True)
class Weighting:
    """Which contributions count, how much, and the divisor of the weighted sum.

    ``weights`` are those of the ``selected``, or None where each counts once.
    """

    selected: tuple[int, ...]
    weights: tuple[int, ...] | None
    divisor: int

    @classmethod
    def sum(cls, count: int) -> Weighting:
        """Of a sum of all."""
        return cls(tuple(range(count)), None, 1)

    @classmethod
    def mean(cls, count: int, weights: Iterable[object] | None) -> Weighting:
        """Of a mean of all, or of those with a weight.

        Raises:
            InvalidUpdate: A weight is not an integer from 0 to 2**53.
            InvalidInput: There are not as many weights as contributions.
            ZeroWeight: All weights are 0.
        """
        if weights is None:
            return cls(tuple(range(count)), None, count)
        checked = [
            check_weight(weight, f"weights[{index}]: ")
            for index, weight in enumerate(listed(weights, "weights"))
        ]
        if len(checked) != count:
            raise InvalidInput(
                f"expected {count} weights, one for each contribution, not {len(checked)}"
            )
        if not any(checked):
            raise ZeroWeight(f"all {count} weights are 0; there is no mean of nothing")
        return cls._reduced(checked)

    @classmethod
    def _reduced(cls, weights: list[int]) -> Weighting:
        """Without a common factor, which changes no mean; equal weights are an ordinary mean."""
        common = math.gcd(*weights)
        selected = tuple(index for index, weight in enumerate(weights) if weight)
        counted = tuple(weights[index] // common for index in selected)
        return cls(selected, None if set(counted) == {1} else counted, sum(counted))


def listed(values: Iterable[object], what: str) -> list[object]:
    """``values`` as a list.

    Raises:
        InvalidInput: They cannot be iterated over.
    """
    try:
        return list(values)
    except TypeError as error:
        raise InvalidInput(f"expected an iterable of {what}, not {values!r:.80}") from error
