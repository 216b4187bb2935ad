"""Sparse parts of single numbers, however their keys lie, in million entries per second."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

import onefold
from benchmarks.kernels.data import DISTRIBUTIONS, PARTS, Distribution, parts_of
from benchmarks.kernels.measure import Case, Contestant, ours, race
from benchmarks.kernels.scale import Scale
from benchmarks.kernels.sparse_peers import DENSE_PEERS, GROUPING_PEERS, SLOW_PEERS, Entries
from benchmarks.machine import say

__all__ = ["sparse"]

DENSE_SPAN_MAX = 10
"""Up to so many times the entries of a part, a dense output is worth its zeros."""


def sparse(scale: Scale) -> Iterator[Case]:
    """Every distribution of keys."""
    for distribution in DISTRIBUTIONS:
        say(f"sparse: {distribution.name}")
        yield _case(distribution, scale)


def _case(distribution: Distribution, scale: Scale) -> Case:
    parts = parts_of(distribution, scale.entries)
    entries = Entries(
        np.concatenate([part.coordinates for part in parts]),
        np.concatenate([part.values for part in parts]),
    )
    result = onefold.sum_sparse(parts)
    count = 2 if entries.is_too_wide_for_torch else 1
    peers = [*GROUPING_PEERS, *SLOW_PEERS] if distribution.all_peers else GROUPING_PEERS[:count]
    contestants = [
        ours("onefold", functools.partial(onefold.sum_sparse, parts), lambda found: found.values),
        ours(
            "onefold, 1 thread",
            functools.partial(onefold.sum_sparse, parts, threads=1),
            lambda found: found.values,
        ),
        *(Contestant(name, functools.partial(make, entries), read) for name, make, read in peers),
    ]
    if distribution.span in range(1, DENSE_SPAN_MAX + 1):
        size = distribution.span * scale.entries
        contestants += [
            Contestant(
                name,
                functools.partial(make, entries, size),
                lambda table: table[result.coordinates],
                "dense peer",
            )
            for name, make in DENSE_PEERS
        ]
    facts = {"parts": PARTS, "entries": scale.entries, "distinct": len(result)}
    outcomes = race(contestants, scale)
    return Case("sparse", distribution.name, PARTS * scale.entries, "M nnz/s", outcomes, facts)
