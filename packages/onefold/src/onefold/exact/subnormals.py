"""Whether this thread's arithmetic knows numbers below the smallest normal one.

A program may tell the processor to take them for zero: ``torch.set_flush_denormal(True)`` does,
libraries built with ``-ffast-math`` do when they are loaded, and audio code does, for speed. It
holds for one thread, and Python cannot undo it. Sums of small numbers would then be wrong without a
sign of it, and with them sums whose last bits are small.
"""

from __future__ import annotations

import sys

from onefold.errors import FlushToZero

__all__ = ["check_subnormals", "knows_subnormals"]

_SMALLEST_NORMAL = sys.float_info.min
_SMALLEST = 5e-324


def knows_subnormals() -> bool:
    """Whether this thread does."""
    half, one = _SMALLEST_NORMAL * 0.5, _SMALLEST * 2.0**60
    return half != 0 and one != 0


def check_subnormals() -> None:
    """Check in this thread; it takes less than a microsecond.

    Raises:
        FlushToZero: Subnormal results or operands are taken for zero.
    """
    if not knows_subnormals():
        raise FlushToZero(
            "this thread takes subnormal numbers for zero (flush-to-zero), so sums would not be "
            "exact; turn that off, for example by torch.set_flush_denormal(False), or sum in "
            "another thread"
        )
