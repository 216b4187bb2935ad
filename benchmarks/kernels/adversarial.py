"""Data that the fast tiers cannot settle, beside ordinary data of the same size.

Everybody here is ours: what is asked is how many times slower the same call gets.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import onefold
from benchmarks.kernels.data import DISTRIBUTIONS, SEED, dense_values, parts_of
from benchmarks.kernels.measure import Case, Contestant, ours, race
from benchmarks.kernels.scale import Scale
from benchmarks.machine import say

__all__ = ["USUAL", "adversarial"]

USUAL = "ordinary values"


def adversarial(scale: Scale) -> Iterator[Case]:
    """Dense float32 and float64, and sparse float32, with values of all magnitudes."""
    for name, full in (("float32", 120), ("float64", 1000)):
        say(f"adversarial: dense {name}")
        data = _dense(np.dtype(name), scale.adversarial_elements, full)
        contestants = []
        for kind, arrays in data.items():
            out = np.empty_like(arrays[0])
            call = functools.partial(onefold.sum_dense, arrays, out)
            contestants.append(_own(kind, call))
        mean = functools.partial(onefold.mean_dense, data["full range"], None, out)
        contestants.append(_own("full range, mean", mean))
        size = 8 * scale.adversarial_elements * np.dtype(name).itemsize
        facts = {"arrays": 8, "elements": scale.adversarial_elements}
        outcomes = race(contestants, scale)
        yield Case("adversarial", f"dense {name}, W=8", size, "GB/s", outcomes, facts)
        del data, contestants
    yield _sparse(scale)


def _own(name: str, call: functools.partial[object]) -> Contestant:
    return ours(name, call, None)


def _dense(dtype: np.dtype, elements: int, full: int) -> dict[str, list[np.ndarray]]:
    """Ordinary; times 2**±20; one coordinate in fifty of full range; full exponent range."""
    rng = np.random.default_rng(SEED)
    data: dict[str, list[np.ndarray]] = {
        USUAL: [dense_values(rng, elements, dtype) for _ in range(8)],
        "times 2^±20": [dense_values(rng, elements, dtype, 20) for _ in range(8)],
        "2% hard": [],
        "full range": [dense_values(rng, elements, dtype, full) for _ in range(8)],
    }
    hard = rng.random(elements) < 0.02
    data["2% hard"] = [
        np.where(hard, wide, plain)
        for plain, wide in zip(data[USUAL], data["full range"], strict=True)
    ]
    return data


def _sparse(scale: Scale) -> Case:
    say("adversarial: sparse")
    contestants = []
    for kind, exponents in ((USUAL, 0), ("times 2^±20", 20), ("full range", 120)):
        parts = parts_of(DISTRIBUTIONS[0], scale.entries, exponents)
        contestants.append(_own(kind, functools.partial(onefold.sum_sparse, parts)))
    amount = 16 * scale.entries
    outcomes = race(contestants, scale)
    return Case("adversarial", "sparse float32, uniform in 10M", amount, "M nnz/s", outcomes)
