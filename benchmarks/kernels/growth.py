"""How time grows: with the number of values, and how it falls with the number of threads."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import onefold
from benchmarks.kernels.data import DISTRIBUTIONS, PARTS, SEED, dense_values, parts_of
from benchmarks.kernels.dense import torch_sum
from benchmarks.kernels.measure import Call, Case, Contestant, ours, race
from benchmarks.kernels.rows import row_parts
from benchmarks.kernels.scale import Scale
from benchmarks.kernels.sparse_peers import Entries, torch_coalesce
from benchmarks.machine import say
from onefold.exact.pool import thread_count

__all__ = ["growth", "threads"]


def growth(scale: Scale) -> Iterator[Case]:
    """Dense and sparse sums of a thousand values and of ten times as many, up to the largest."""
    for power in range(3, scale.dense_power_max + 1):
        say(f"growth: dense, 10^{power} values")
        arrays = _dense(10**power // 8)
        stacked = np.stack(arrays)
        contestants = [
            ours("onefold", functools.partial(onefold.sum_dense, arrays)),
            Contestant("torch.sum, stacked", functools.partial(torch_sum, stacked, None, 1)),
        ]
        amount = 8 * arrays[0].size
        yield Case("growth", f"dense, 10^{power}", amount, "ns/value", race(contestants, scale))
        del arrays, stacked, contestants
    for power in range(3, scale.sparse_power_max + 1):
        say(f"growth: sparse, 10^{power} entries")
        parts = parts_of(DISTRIBUTIONS[0], 10**power // PARTS)
        entries = Entries(
            np.concatenate([part.coordinates for part in parts]),
            np.concatenate([part.values for part in parts]),
        )
        contestants = [
            ours("onefold", functools.partial(onefold.sum_sparse, parts), lambda got: got.values),
            Contestant(
                "torch coalesce",
                functools.partial(torch_coalesce, entries),
                lambda tensor: tensor.values().numpy(),
            ),
        ]
        amount = entries.keys.size
        yield Case("growth", f"sparse, 10^{power}", amount, "ns/value", race(contestants, scale))


def threads(scale: Scale) -> Iterator[Case]:
    """One thread, two, and so on, doubling, up to all."""
    arrays = _dense(scale.elements)
    out = np.empty_like(arrays[0])
    call = functools.partial(onefold.sum_dense, arrays, out)
    yield _scaling("dense float32, W=8", call, (8 * arrays[0].nbytes, "GB/s"), scale)
    del arrays, out, call
    for distribution in DISTRIBUTIONS:
        if distribution.name in ("uniform in 10M", "all keys equal"):
            call = functools.partial(onefold.sum_sparse, parts_of(distribution, scale.entries))
            amount = (PARTS * scale.entries, "M nnz/s")
            yield _scaling(f"sparse, {distribution.name}", call, amount, scale)
    parts = row_parts(64, scale.row_bytes)
    size = sum(part.values.nbytes for part in parts)
    call = functools.partial(onefold.sum_sparse, parts)
    yield _scaling("rows, dim 64", call, (size, "GB/s"), scale)


def _scaling(name: str, call: Call, amount: tuple[float, str], scale: Scale) -> Case:
    say(f"threads: {name}")
    counts = [1]
    while counts[-1] < thread_count():
        counts.append(min(2 * counts[-1], thread_count()))
    contestants = [ours(str(n), functools.partial(call, threads=n), None) for n in counts]
    return Case("threads", name, *amount, race(contestants, scale))


def _dense(elements: int) -> list[np.ndarray]:
    rng = np.random.default_rng(SEED)
    return [dense_values(rng, elements, np.dtype(np.float32)) for _ in range(8)]
