"""Sums are refused where the processor takes subnormal numbers for zero."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from onefold.errors import FlushToZero
from onefold.exact import mean_dense, mean_sparse, sum_dense, sum_sparse
from onefold.update import Sparse

FLUSH_RESULTS, SUBNORMALS_ARE_ZERO = 0x8000, 0x0040
TINY = np.array([1e-40, 2e-40], np.float32)
SPARSE = Sparse(np.array([1, 2]), TINY)
GLIBC_ON_X86 = platform.machine() == "x86_64" and platform.libc_ver()[0] == "glibc"


@contextmanager
def told_to(bits: int) -> Iterator[None]:
    """Set bits of this thread's MXCSR, the last word of what ``fegetenv`` gives on x86-64."""
    library = ctypes.CDLL("libm.so.6")
    before = ctypes.create_string_buffer(32)
    assert library.fegetenv(before) == 0
    (control,) = struct.unpack("<I", before.raw[28:32])
    changed = before.raw[:28] + struct.pack("<I", control | bits)
    assert library.fesetenv(changed) == 0
    try:
        yield
    finally:
        library.fesetenv(before)


@pytest.mark.skipif(not GLIBC_ON_X86, reason="it is told by a register of x86-64, through glibc")
@pytest.mark.parametrize("bits", [FLUSH_RESULTS, SUBNORMALS_ARE_ZERO])
@pytest.mark.parametrize(
    "compute",
    [
        lambda: sum_dense([TINY, TINY]),
        lambda: mean_dense([TINY, TINY]),
        lambda: sum_sparse([SPARSE, SPARSE]),
        lambda: mean_sparse([SPARSE, SPARSE]),
    ],
    ids=["sum_dense", "mean_dense", "sum_sparse", "mean_sparse"],
)
def test_a_sum_that_would_be_wrong_is_refused(bits: int, compute: Callable[[], object]) -> None:
    """Whether results or operands are flushed it raises; right before and after in this thread."""
    compute()
    with told_to(bits), pytest.raises(FlushToZero, match="flush-to-zero"):
        compute()
    compute()


@pytest.mark.skipif(not GLIBC_ON_X86, reason="it is told by a register of x86-64, through glibc")
def test_sums_of_integers_need_no_floats() -> None:
    """They are as right as ever."""
    with told_to(FLUSH_RESULTS | SUBNORMALS_ARE_ZERO):
        assert sum_dense([np.array([1]), np.array([2])]).tolist() == [3]
