"""What kernels and those who call them agree on. It needs no Numba."""

from __future__ import annotations

__all__ = [
    "BLOCK",
    "FEW",
    "LIMBS",
    "PAIR",
    "PLACES",
    "PLACE_BITS_MAX",
    "ROW",
    "SIGNED",
    "SINGLE",
    "TABLE",
    "UNSIGNED",
]

BLOCK = 2048
"""Elements that are summed at a time, at most."""

LIMBS = 78
"""Room for 2**31 addends of 82 bits, and below the least float64 for the division to read on."""

SINGLE, PAIR, SIGNED, UNSIGNED, ROW = range(5)
"""What the values of sparse entries are: float32, float64, int64, uint64, rows."""

FEW = 24
"""At most so many entries are sorted by insertion."""

PLACE_BITS_MAX = 13
PLACES = (1 << PLACE_BITS_MAX) + 1
"""Room for the counts of one dealing out."""

TABLE = 1 << 15
"""Places in a table: 256 KiB of float64, half of a second level cache."""
