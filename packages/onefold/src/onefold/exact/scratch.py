"""What kernels work in. They allocate nothing themselves, and each thread keeps its own."""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from onefold.exact.kernels.sizes import BLOCK, LIMBS

__all__ = ["Scratch", "scratch"]


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
        self._indices: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def indices(self, size: int) -> npt.NDArray[np.int64]:
        """``size`` int64 (pages that are not written to cost nothing)."""
        if self._indices.size < size:
            self._indices = np.empty(size, np.int64)
        return self._indices[:size]


scratch = Scratch()
