"""Sparse rows, some eight to a key, in bytes of values per second."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import onefold
from benchmarks.kernels.data import PARTS, SEED, zipf
from benchmarks.kernels.measure import Case, Contestant, ours, race, read_bandwidth
from benchmarks.kernels.scale import Scale
from benchmarks.kernels.sparse_peers import Entries, torch_coalesce, torch_index_add
from benchmarks.machine import say
from onefold import Sparse

__all__ = ["row_parts", "rows"]

ROWS_PER_KEY = 8


def rows(scale: Scale) -> Iterator[Case]:
    """Rows of several lengths; of 64 also nearly unique ones, and with a few keys in most rows."""
    for dim in (8, 64, 128, 256):
        yield _case(f"dim {dim}", row_parts(dim, scale.row_bytes), scale)
    unique = row_parts(64, scale.row_bytes, keys_per_row=8)
    yield _case("dim 64, nearly unique", unique, scale)
    yield _case("dim 64, zipf 1.1", row_parts(64, scale.row_bytes, is_zipf=True), scale)


def row_parts(
    dim: int, size: int, *, keys_per_row: float = 1 / ROWS_PER_KEY, is_zipf: bool = False
) -> list[Sparse]:
    """16 parts of rows, ``size`` bytes of values in all."""
    rng = np.random.default_rng(SEED)
    count = max(1, size // (PARTS * dim * 4))
    keys = max(1, int(PARTS * count * keys_per_row))
    return [
        Sparse(
            zipf(rng, count, keys) if is_zipf else rng.integers(0, keys, count),
            rng.standard_normal((count, dim), np.float32),
        )
        for _ in range(PARTS)
    ]


def _case(name: str, parts: list[Sparse], scale: Scale) -> Case:
    say(f"rows: {name}")
    entries = Entries(
        np.concatenate([part.coordinates for part in parts]),
        np.concatenate([part.values for part in parts]),
    )
    result = onefold.sum_sparse(parts)
    size = int(entries.keys.max()) + 1
    our = functools.partial(onefold.sum_sparse, parts)
    contestants = [
        ours("onefold", our, lambda found: found.values),
        ours("onefold, 1 thread", functools.partial(our, threads=1), lambda found: found.values),
        Contestant(
            "torch hybrid coalesce",
            functools.partial(torch_coalesce, entries),
            lambda tensor: tensor.values().numpy(),
        ),
        Contestant(
            "torch index_add (dense)",
            functools.partial(torch_index_add, entries, size),
            lambda table: table[result.coordinates],
            "dense peer",
        ),
        read_bandwidth(entries.values),
    ]
    facts = {"rows": entries.keys.size, "distinct": len(result)}
    return Case("rows", name, entries.values.nbytes, "GB/s", race(contestants, scale), facts)
