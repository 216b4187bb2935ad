"""What chance decides: a function of the seed and of what is decided, never of what came before.

A generator's next number depends on how many were drawn before it, so leaving out one fault would
make another run of everything after it. Here each decision is hashed from the seed and its own
name. So a run can be repeated with some of its faults left out, and the others strike where they
did: that is what makes a trace short (:mod:`~onefold.simulation.shrinking`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import xxhash

__all__ = ["Choices"]

_T = TypeVar("_T")


class Choices:
    """The decisions of one run.

    Args:
        seed: What they depend on.
        allowed: The names of the faults that may strike; None for all.
    """

    def __init__(self, seed: int, allowed: Collection[str] | None = None) -> None:
        self._seed = seed
        self._allowed = allowed
        self._is_calm = False
        self.struck: dict[str, str] = {}

    def draw(self, *name: object) -> float:
        """A number from 0 up to 1: uniform, independent for each name."""
        key = f"{self._seed} {name}"
        return (xxhash.xxh3_64_intdigest(key.encode()) >> 11) / (1 << 53)

    def among(self, options: Sequence[_T], *name: object) -> _T:
        """One of ``options``."""
        return options[int(self.draw(*name) * len(options))]

    def whole(self, least: int, most: int, *name: object) -> int:
        """An integer from ``least`` to ``most``."""
        return least + int(self.draw(*name) * (most - least + 1))

    def strikes(self, probability: float, kind: str, *name: object) -> bool:
        """Whether a fault happens; which did is remembered, by name, in their order."""
        if self._is_calm or self.draw(kind, *name) >= probability:
            return False
        text = " ".join(map(str, (kind, *name)))
        if self._allowed is not None and text not in self._allowed:
            return False
        self.struck[text] = kind
        return True

    def calm(self) -> None:
        """From now on no fault strikes."""
        self._is_calm = True
