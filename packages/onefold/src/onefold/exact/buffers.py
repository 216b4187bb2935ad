"""From arrays to what kernels take: addresses, with every check made and the owners held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact.kernels.address import address
from onefold.exact.kernels.sizes import BLOCK
from onefold.update import Array

__all__ = ["Buffers", "NotPlain", "is_plain", "padding", "plain", "storage"]

_STORAGE = {"float16": np.dtype(np.int16), "bfloat16": np.dtype(np.uint16)}


@dataclass(frozen=True, slots=True)
class Buffers:
    """The addresses of arrays, and the arrays, which must live while the addresses are used."""

    arrays: tuple[Array, ...]
    addresses: npt.NDArray[np.int64]

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> Buffers:
        """The buffers of plain arrays of one dtype and size.

        Raises:
            NotPlain: A kernel cannot read one where it is.
            ValueError: They differ in size or dtype.
        """
        size = arrays[0].size
        for array in arrays:
            if array.size != size:
                raise ValueError(f"arrays of {size} and of {array.size} elements")
        return cls.starts(arrays)

    @classmethod
    def starts(cls, arrays: Sequence[Array]) -> Buffers:
        """The same for arrays of any sizes."""
        dtype = arrays[0].dtype
        for array in arrays:
            if not is_plain(array):
                raise NotPlain("an array that is not contiguous, aligned or in native byte order")
            if array.dtype is not dtype and array.dtype != dtype:
                raise ValueError(f"arrays of {dtype} and of {array.dtype}")
        return cls(tuple(arrays), np.array([address(array) for array in arrays], np.int64))


class NotPlain(ValueError):
    """An array has to be copied before a kernel can read it."""


def is_plain(array: Array) -> bool:
    """Whether a kernel can read an array where it is."""
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


def plain(array: Array) -> Array:
    """``array`` itself, or a plain copy of it."""
    if is_plain(array):
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True, ndmin=0)


def storage(array: Array) -> Array:
    """A plain array, flat, in the type in which kernels see it."""
    flat = array.reshape(-1)
    if array.itemsize != 2 or array.dtype.kind in "iu":  # bytes
        return flat
    return flat.view(_STORAGE[array.dtype.name])


def padding(dtype: np.dtype[np.generic]) -> int:
    """The address of a block of zeros, of floats negative ones: an array that adds nothing."""
    zeros = _paddings.get(dtype)
    if zeros is None:
        zero = 0 if dtype.kind in "iu" else -0.0
        # What another thread has put there meanwhile stays: its address may be in use.
        zeros = _paddings.setdefault(dtype, np.full(BLOCK, zero, dtype))
    return address(zeros)


_paddings: dict[np.dtype[np.generic], Array] = {}
"""Held for good, since kernels know the addresses alone."""
