"""What kernels work in, as they allocate nothing themselves.

It is borrowed for a call or a few, by one at a time. Keeping one for each thread would not do: a
signal handler or a finalizer that sums runs on the thread of the sum that it interrupts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from onefold.exact.kernels.sizes import BLOCK, FEW, LIMBS, PLACES, TABLE

__all__ = ["Room", "Scratch", "with_scratch"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_KEPT = 1 << 16
"""Rooms for more entries are not kept."""

_IDLE_MAX = 16
"""Nor is more scratch than for so many threads."""


@dataclass(frozen=True, slots=True)
class Room:
    """Arrays for buckets of some size: see :func:`onefold.exact.kernels.sparse.sum_buckets`."""

    entries: npt.NDArray[np.uint64]
    ranges: npt.NDArray[np.int64]
    places: npt.NDArray[np.uint64]
    doubts: npt.NDArray[np.int64]
    table: npt.NDArray[np.float64]

    @classmethod
    def of(cls, size: int) -> Room:
        """Room for ``size`` entries."""
        return cls(
            np.empty((4, size), np.uint64),
            np.empty((size // FEW + 2, 2), np.int64),
            np.empty(PLACES, np.uint64),
            np.empty((size + 1, 3), np.int64),
            np.full(TABLE, -0.0),
        )


class Scratch:
    """Arrays for kernels that are called one after the other.

    Attributes:
        floats: float64, three rows of a block.
        integers: int64, two rows of a block.
        limbs: int64, zeros.
    """

    def __init__(self) -> None:
        self.floats: npt.NDArray[np.float64] = np.empty((3, BLOCK))
        self.integers: npt.NDArray[np.int64] = np.empty((2, BLOCK), np.int64)
        self.limbs: npt.NDArray[np.int64] = np.zeros(LIMBS, np.int64)
        self._room: Room | None = None
        self._indices: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def indices(self, size: int) -> npt.NDArray[np.int64]:
        """``size`` int64 (pages that are not written to cost nothing)."""
        if self._indices.size < size:
            self._indices = np.empty(size, np.int64)
        return self._indices[:size]

    def room(self, size: int) -> Room:
        """Room for at least ``size`` entries; a large one is not kept."""
        if size > _KEPT:
            return Room.of(size)
        if self._room is None or self._room.entries.shape[1] < size:
            self._room = Room.of(max(size, 1 << 10) if size <= _KEPT // 4 else _KEPT)
        return self._room


_idle: list[Scratch] = []
"""Taken from the end and put back there, each in one step that no other thread comes between."""


def with_scratch(
    work: Callable[Concatenate[Scratch, _Parameters], _Result],
) -> Callable[_Parameters, _Result]:
    """``work``, whose first argument is scratch that nobody else has meanwhile.

    What an exception ends is not given back: nobody knows in which state it is.
    """

    @wraps(work)
    def borrowing(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            scratch = _idle.pop()
        except IndexError:
            scratch = Scratch()
        result = work(scratch, *args, **kwargs)
        if len(_idle) < _IDLE_MAX:
            _idle.append(scratch)
        return result

    return borrowing
