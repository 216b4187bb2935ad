"""What kernels work in. They allocate nothing themselves, and each thread keeps its own."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact.kernels.sizes import BLOCK, FEW, LIMBS, PLACES, TABLE

__all__ = ["Room", "Scratch", "scratch"]

_KEPT = 1 << 16
"""Rooms for more entries are not kept."""


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


class Scratch(threading.local):
    """Arrays for the kernels of one thread.

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


scratch = Scratch()
