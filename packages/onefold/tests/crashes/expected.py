"""What workers of a model run push, and what the exact sums of it are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random

import numpy as np
from oracle import array_of, column_sums, mean_columns, sum_columns

from onefold.aggregate import Aggregate
from onefold.update import Sparse, Tensor, Update

__all__ = ["Wrong", "bits_of", "check_sum", "some_update"]

_VALUES = (1.0, -1.0, 0.1, 3e38, -3e38, 1e-45, 2.0**-30, 16777217.0, -0.0)

_SIZE = 320
"""Enough that the numbers of a part lie in several blocks of a disk."""


class Wrong(AssertionError):
    """A promise was broken; the message says which."""


def some_update(rng: Random, names: Sequence[str]) -> Update:
    """An update whose exact sums are not what adding in any order gives."""
    tensors: dict[str, Tensor] = {}
    for name in names:
        if name == "dense":
            values = [
                rng.choice(_VALUES) * rng.choice([1, rng.random()]) for _ in range(_SIZE // 2)
            ]
            tensors[name] = np.array(values, np.float32)
        elif name == "sparse":
            count = rng.randrange(4)
            values = [rng.choice(_VALUES) * rng.random() for _ in range(count)]
            at = [rng.randrange(3) for _ in range(count)]
            tensors[name] = Sparse(np.array(at, np.int64), np.array(values, np.float64))
        else:
            whole = [rng.randrange(-9, 9) for _ in range(_SIZE)]
            tensors[name] = np.array(whole, np.int64)
    return Update(tensors, rng.randint(1, 5))


def check_sum(aggregate: Aggregate, updates: Sequence[Update], operation: str) -> None:
    """Check every bit of an aggregate of these updates.

    Raises:
        Wrong: One differs.
    """
    weights = [update.weight for update in updates]
    if operation != "weighted_mean":
        weights = [1] * len(updates)
    for name, tensor in aggregate.tensors.items():
        addends = [update.tensors[name] for update in updates]
        if isinstance(tensor, Sparse):
            expected = _sparse(addends, weights, mean=operation != "sum")
        elif operation == "sum":
            expected = sum_columns(addends)
        else:
            expected = mean_columns(addends, weights)
        if _bytes(tensor) != _bytes(expected):
            raise Wrong(f"step {aggregate.step}: {name} is {tensor}, expected {expected}")


def bits_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[object, ...]]:
    """Everything about tensors that must not change."""
    return {name: _bytes(tensor) for name, tensor in tensors.items()}


def _sparse(addends: Sequence[Sparse], weights: Sequence[int], *, mean: bool) -> Sparse:
    columns: dict[int, list[np.ndarray]] = {}
    for addend, weight in zip(addends, weights, strict=True):
        for at, value in zip(addend.coordinates.tolist(), addend.values, strict=True):
            columns.setdefault(at, []).extend([np.array([value])] * (weight if mean else 1))
    where = sorted(columns)
    sums = [column_sums(columns[at])[0] for at in where]
    if mean:
        sums = [
            number / sum(weights) if isinstance(number, Fraction) else number for number in sums
        ]
    values = array_of(sums, "float64") if where else np.empty(0)
    return Sparse(np.array(where, np.int64), values)


def _bytes(tensor: Tensor) -> tuple[object, ...]:
    if isinstance(tensor, Sparse):
        return (*_bytes(tensor.coordinates), *_bytes(tensor.values))
    return (tensor.dtype.name, tensor.shape, tensor.tobytes())
