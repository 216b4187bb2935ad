"""From arrays to what kernels take: addresses, with every check made and the owners held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.update import DTYPES, Array

__all__ = ["Buffers", "is_plain", "plain", "storage"]

_STORAGE = {DTYPES["float16"]: np.dtype(np.int16), DTYPES["bfloat16"]: np.dtype(np.uint16)}


@dataclass(frozen=True, slots=True)
class Buffers:
    """The addresses of arrays, and the arrays, which must live while the addresses are used."""

    arrays: tuple[Array, ...]
    addresses: npt.NDArray[np.int64]

    @classmethod
    def of(cls, arrays: Sequence[Array]) -> Buffers:
        """The buffers of plain arrays of one dtype and size."""
        assert all(array.size == arrays[0].size for array in arrays), "kernels read one size"
        return cls.starts(arrays)

    @classmethod
    def starts(cls, arrays: Sequence[Array]) -> Buffers:
        """The buffers of plain arrays of one dtype and of any sizes."""
        for array in arrays:
            assert is_plain(array), "kernels read memory as it lies"
            assert array.dtype == arrays[0].dtype, "kernels read one type"
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        return cls(tuple(arrays), np.array(addresses, np.int64))


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
    kind = _STORAGE.get(array.dtype)
    return flat if kind is None else flat.view(kind)
