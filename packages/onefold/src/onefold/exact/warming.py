"""Compile every kernel for every type, ahead of the first sum that needs it.

Each step is a call of a public function with a few numbers, so what is compiled is what is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from onefold.exact.dense import sum_dense
from onefold.exact.sparse import mean_sparse, sum_sparse
from onefold.update import DTYPES, Sparse

__all__ = ["Step", "warm_up_steps"]

Step: TypeAlias = tuple[str, Callable[[], None]]
"""What is compiled, in words, and the call that compiles it."""

_FLOATS = ("float32", "float64", "bfloat16", "float16")
_FAR = 2**40
_HEAVY = 1 << 18
"""More entries at one coordinate than one thread is left with."""


def warm_up_steps() -> Iterator[Step]:
    """Every step, the types that are used most first."""
    yield "sparse sums of one coordinate", _heavy
    for name in (*_FLOATS, *(name for name in DTYPES if name not in _FLOATS)):
        yield f"dense {name}", lambda name=name: _dense(name)  # type: ignore[misc]
        yield f"sparse {name}", lambda name=name: _sparse(name)  # type: ignore[misc]
        yield f"sparse rows {name}", lambda name=name: _rows(name)  # type: ignore[misc]


def _dense(name: str) -> None:
    ones = np.ones(3, DTYPES[name])
    sum_dense([ones] * 3)
    if name in _FLOATS:
        sum_dense([np.full(3, np.inf, DTYPES[name])])  # all the way to the limbs


def _sparse(name: str) -> None:
    for coordinates in ([0, 1], [0, _FAR]):
        part = Sparse(np.array(coordinates), np.ones(2, DTYPES[name]))
        sum_sparse([part, part])
        if name in _FLOATS:
            mean_sparse([part, part], [1, 2])
            sum_sparse([Sparse(part.coordinates, np.full(2, np.inf, DTYPES[name]))])  # to the limbs


def _heavy() -> None:
    sum_sparse([Sparse(np.zeros(_HEAVY, np.int64), np.ones(_HEAVY, np.float32))])


def _rows(name: str) -> None:
    part = Sparse(np.array([0, 1]), np.ones((2, 2), DTYPES[name]))
    sum_sparse([part, part])
