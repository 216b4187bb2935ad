"""How a process that does nothing but serve takes memory from the system."""

from __future__ import annotations

import ctypes

__all__ = ["share_memory_between_threads"]

_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3  # of glibc's malloc.h
_ARENAS_MAX = 2
_MAPPED_BYTES_MIN = 128 << 10
"""glibc's own first value, which it would raise to the largest piece ever given back."""


def share_memory_between_threads() -> None:
    """Let glibc's threads share a few arenas, and give large pieces back to the system at once.

    Each call is answered in one of many threads; of up to eight arenas for each processor, each
    keeps as much as was ever needed in it at a time. (benchmarks/server.md has what that comes to.)
    Of other C libraries this asks nothing. To be called before there are many threads, and only by
    who owns the process.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS_MAX)
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES_MIN)
