"""Where an array's data lie, quickly: a call has up to a dozen arrays, however little they hold.

NumPy tells by ``__array_interface__``, which builds a dictionary of everything about the array. But
the pointer also is the first field of an array's object, after the head that all Python objects
have; that is part of NumPy's binary interface, on which every compiled extension relies. Where it
is not so, as in another Python, an array made for that purpose shows it when this is imported.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

__all__ = ["address"]

_HEAD_BYTES = sys.getsizeof(object())


def address(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's first element, good for as long as somebody holds the array."""
    return _pointer_at(id(array) + _HEAD_BYTES).value or 0


def _asked(array: np.ndarray[Any, Any]) -> int:
    start: int = array.__array_interface__["data"][0]
    return start


_pointer_at = ctypes.c_void_p.from_address
_SAMPLE = np.arange(9)[::-2]
if sys.implementation.name != "cpython" or address(_SAMPLE) != _asked(_SAMPLE):
    address = _asked
