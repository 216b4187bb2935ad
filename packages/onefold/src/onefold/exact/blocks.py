"""Walking through arrays of one shape block by block.

Arrays may lie in memory as they like, so a block is a basic index (which gives a view of any of
them) and its elements are consecutive in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import EllipsisType
from typing import TypeAlias

import numpy as np

__all__ = ["BLOCK_ELEMENTS", "Box", "boxes"]

BLOCK_ELEMENTS = 1 << 15
"""Some ten float64 arrays of this size are in use at a time, which fit a processor's cache."""

Box: TypeAlias = tuple[int | slice | EllipsisType, ...]


def boxes(shape: tuple[int, ...], block_elements: int) -> Iterator[tuple[int, Box]]:
    """``(flat start, index)`` of blocks of at most ``block_elements``, in row-major order."""
    if math.prod(shape) <= block_elements:
        if 0 not in shape:
            yield 0, (...,)
        return
    axis = next(i for i in range(len(shape)) if math.prod(shape[i + 1 :]) <= block_elements)
    inner = math.prod(shape[axis + 1 :])
    step = block_elements // inner
    for number, outer in enumerate(np.ndindex(*shape[:axis])):
        for first in range(0, shape[axis], step):
            last = min(first + step, shape[axis])
            yield (number * shape[axis] + first) * inner, (*outer, slice(first, last), ...)
