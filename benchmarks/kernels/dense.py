"""Dense arrays: sums and means beside ``torch`` and NumPy, in bytes of input per second."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import onefold
from benchmarks.kernels.data import SEED, dense_values, dtype_named
from benchmarks.kernels.measure import Call, Case, Contestant, ours, race, read_bandwidth
from benchmarks.kernels.scale import Scale
from benchmarks.machine import say
from onefold.exact.pool import thread_count

__all__ = ["dense", "torch_sum"]

WEIGHTS = [3, 5, 7, 11, 13, 17, 19, 23]


def dense(scale: Scale) -> Iterator[Case]:
    """Every type; float32 also as mean, weighted, in 64 arrays and with a new output."""
    single = _arrays("float32", 8, scale.elements)
    stacked = np.stack(single)
    yield _case("float32 sum, W=8", single, _contestants(single, stacked), scale)
    yield _case("float32 sum, W=8, new output", single, _fresh(single, stacked), scale)
    yield _case("float32 mean, W=8", single, _contestants(single, stacked, mean=True), scale)
    yield _case("float32 weighted mean, W=8", single, _weighted(single, stacked), scale)
    many = _arrays("float32", 64, scale.elements // 8)
    np.stack(many, out=stacked.reshape(64, -1))
    stacked = stacked.reshape(64, -1)
    yield _case("float32 sum, W=64", many, _contestants(many, stacked), scale)
    yield _case("float32 mean, W=64", many, _contestants(many, stacked, mean=True), scale)
    del single, many, stacked
    for name in ("float64", "bfloat16", "float16", "int32", "int64"):
        arrays = _arrays(name, 8, scale.elements // max(1, dtype_named(name).itemsize // 4))
        stacked = np.stack(arrays)
        yield _case(f"{name} sum, W=8", arrays, _contestants(arrays, stacked), scale)
        if name == "float64":
            contestants = _contestants(arrays, stacked, mean=True)
            yield _case(f"{name} mean, W=8", arrays, contestants, scale)
        del arrays, stacked
    few = _arrays("float32", 8, scale.slow_elements)
    in_cache = [each for each in _contestants(few, np.stack(few)) if each.kind != "yardstick"]
    yield _case("float32 sum, W=8, small", few, [*in_cache, _fsum(few)], scale)


def _arrays(name: str, count: int, elements: int) -> list[np.ndarray]:
    rng = np.random.default_rng(SEED)
    return [dense_values(rng, elements, dtype_named(name)) for _ in range(count)]


def _case(
    name: str, arrays: Sequence[np.ndarray], contestants: Sequence[Contestant], scale: Scale
) -> Case:
    say(f"dense: {name}")
    facts = {"arrays": len(arrays), "elements": arrays[0].size}
    size = sum(array.nbytes for array in arrays)
    return Case("dense", name, size, "GB/s", race(contestants, scale), facts)


def _contestants(
    arrays: list[np.ndarray], stacked: np.ndarray, *, mean: bool = False
) -> list[Contestant]:
    """Everybody writes to an output that is there already."""
    out, spare = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    our = functools.partial(onefold.mean_dense if mean else onefold.sum_dense, arrays, out=out)
    divisor = len(arrays) if mean else 1
    found = [
        ours("onefold", our),
        ours("onefold, 1 thread", functools.partial(our, threads=1)),
        Contestant("torch.sum, stacked", lambda: torch_sum(stacked, spare, divisor)),
        Contestant("torch add_ chain", lambda: _torch_chain(arrays, spare, divisor)),
        Contestant("NumPy chain", lambda: _numpy_chain(arrays, spare, divisor)),
        read_bandwidth(stacked),
    ]
    if out.dtype.kind == "i" and out.itemsize < 8:
        found.insert(3, Contestant("torch.sum to int64", lambda: torch_sum(stacked, None, 1)))
    return found


def _fresh(arrays: list[np.ndarray], stacked: np.ndarray) -> list[Contestant]:
    """Everybody makes the output."""
    return [
        ours("onefold", functools.partial(onefold.sum_dense, arrays)),
        ours("onefold, 1 thread", functools.partial(onefold.sum_dense, arrays, threads=1)),
        Contestant("torch.sum, stacked", lambda: torch_sum(stacked, None, 1)),
        Contestant("NumPy chain", lambda: _numpy_chain(arrays, None, 1)),
        read_bandwidth(stacked),
    ]


def _weighted(arrays: list[np.ndarray], stacked: np.ndarray) -> list[Contestant]:
    out, spare = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    our = functools.partial(onefold.mean_dense, arrays, WEIGHTS, out)
    return [
        ours("onefold", our),
        ours("onefold, 1 thread", functools.partial(our, threads=1)),
        Contestant("Flower's formula", lambda: functools.partial(_flower_formula, arrays)),
        Contestant("Flower", lambda: _flower(arrays), lambda layers: layers[0]),
        Contestant("torch add_ with alpha", lambda: _torch_weighted(arrays, spare)),
        read_bandwidth(stacked),
    ]


def _fsum(arrays: list[np.ndarray]) -> Contestant:
    columns = np.stack(arrays, axis=1)

    def call() -> np.ndarray:
        return np.array([math.fsum(column) for column in columns.tolist()], columns.dtype)

    return Contestant("math.fsum", lambda: call)


def _flower_formula(arrays: list[np.ndarray]) -> np.ndarray:
    """What Flower's ``aggregate`` does with one layer, written after its published source."""
    weighted = [layer * weight for layer, weight in zip(arrays, WEIGHTS, strict=True)]
    return functools.reduce(np.add, weighted) / sum(WEIGHTS)


def _flower(arrays: list[np.ndarray]) -> Call:
    aggregate = importlib.import_module("flwr.server.strategy.aggregate").aggregate
    results = [([array], weight) for array, weight in zip(arrays, WEIGHTS, strict=True)]
    return lambda: aggregate(results)


def _torch() -> Any:
    torch = importlib.import_module("torch")
    torch.set_num_threads(thread_count())
    return torch


def _tensor(array: np.ndarray) -> Any:
    torch = _torch()
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def torch_sum(stacked: np.ndarray, out: np.ndarray | None, divisor: int) -> Call:
    """``torch.sum`` or ``torch.mean`` of a tensor that somebody stacked before."""
    torch, tensor = _torch(), _tensor(stacked)
    reduce = torch.sum if divisor == 1 else torch.mean
    if out is None:
        return lambda: reduce(tensor, 0).numpy()
    target = _tensor(out)

    def call() -> np.ndarray:
        reduce(tensor, 0, dtype=tensor.dtype, out=target)
        return out

    return call


def _torch_chain(arrays: list[np.ndarray], out: np.ndarray, divisor: int) -> Call:
    tensors, target = [_tensor(array) for array in arrays], _tensor(out)

    def call() -> np.ndarray:
        target.copy_(tensors[0])
        for tensor in tensors[1:]:
            target.add_(tensor)
        if divisor != 1:
            target.div_(divisor)
        return out

    return call


def _torch_weighted(arrays: list[np.ndarray], out: np.ndarray) -> Call:
    torch = _torch()
    tensors, target = [_tensor(array) for array in arrays], _tensor(out)

    def call() -> np.ndarray:
        torch.mul(tensors[0], WEIGHTS[0], out=target)
        for tensor, weight in zip(tensors[1:], WEIGHTS[1:], strict=True):
            target.add_(tensor, alpha=weight)
        target.div_(sum(WEIGHTS))
        return out

    return call


def _numpy_chain(arrays: list[np.ndarray], out: np.ndarray | None, divisor: int) -> Call:
    def call() -> np.ndarray:
        total = np.empty_like(arrays[0]) if out is None else out
        np.copyto(total, arrays[0])
        for array in arrays[1:]:
            np.add(total, array, out=total)
        if divisor != 1:
            np.divide(total, divisor, out=total)
        return total

    return call
