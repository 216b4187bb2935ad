"""What a call costs that has next to nothing to do: the smallest sums, and the first one."""

from __future__ import annotations

import functools
import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

import onefold
from benchmarks.kernels.data import SEED, dense_values
from benchmarks.kernels.measure import Call, Case, Contestant, ours, race
from benchmarks.kernels.scale import Scale
from benchmarks.machine import say
from onefold import Sparse

__all__ = ["start", "tiny"]


def tiny(scale: Scale) -> Iterator[Case]:
    """A hundred values, dense and sparse."""
    rng = np.random.default_rng(SEED)
    arrays = [dense_values(rng, 25, np.dtype(np.float32)) for _ in range(4)]
    say("tiny: dense")
    contestants = [
        ours("onefold", functools.partial(onefold.sum_dense, arrays)),
        ours("onefold, 1 thread", functools.partial(onefold.sum_dense, arrays, threads=1)),
        Contestant("np.sum", lambda: functools.partial(np.sum, arrays, axis=0)),
        Contestant("math.fsum", lambda: functools.partial(_fsum_columns, arrays)),
    ]
    yield Case("tiny", "dense, 4 x 25", 1, "µs", race(contestants, scale))
    say("tiny: sparse")
    parts = [Sparse(rng.integers(0, 60, 25), array) for array in arrays]
    contestants = [
        ours("onefold", functools.partial(onefold.sum_sparse, parts), lambda got: got.values),
        ours(
            "onefold, 1 thread",
            functools.partial(onefold.sum_sparse, parts, threads=1),
            lambda got: got.values,
        ),
        Contestant("np.unique + np.add.at", lambda: _unique(parts)),
        Contestant("math.fsum", lambda: functools.partial(_fsum_groups, parts)),
    ]
    yield Case("tiny", "sparse, 4 x 25", 1, "µs", race(contestants, scale))


def _fsum_columns(arrays: list[np.ndarray]) -> np.ndarray:
    columns = zip(*(array.tolist() for array in arrays), strict=True)
    return np.array([math.fsum(column) for column in columns], np.float32)


def _fsum_groups(parts: list[Sparse]) -> np.ndarray:
    groups: dict[int, list[float]] = {}
    for part in parts:
        for key, value in zip(part.coordinates.tolist(), part.values.tolist(), strict=True):
            groups.setdefault(key, []).append(value)
    return np.array([math.fsum(groups[key]) for key in sorted(groups)], np.float32)


def _unique(parts: list[Sparse]) -> Call:
    def call() -> np.ndarray:
        given = np.concatenate([part.coordinates for part in parts])
        keys, places = np.unique(given, return_inverse=True)
        total = np.zeros(keys.size, np.float32)
        np.add.at(total, places, np.concatenate([part.values for part in parts]))
        return total

    return call


_FIRST_CALLS = {
    "dense float32": "onefold.sum_dense([np.ones(100, np.float32)] * 8)",
    "sparse float32": "onefold.sum_sparse([onefold.Sparse(keys, np.ones(100, np.float32))] * 8)",
    "rows float32": "onefold.sum_sparse([onefold.Sparse(keys, np.ones((100, 8), np.float32))] * 8)",
}

_PROGRAM = """
import json, time
begin = time.perf_counter()
import onefold
imported = time.perf_counter()
import numpy as np
keys = np.arange(100)
before = time.perf_counter()
{call}
after = time.perf_counter()
print(json.dumps([imported - begin, imported - begin + after - before]))
"""


def start(scale: Scale) -> Iterator[Case]:
    """``import onefold``, and with it the first call, in processes of their own.

    Kernels have been compiled before. What NumPy takes to be imported is not counted: there are no
    arrays without it.
    """
    for name, call in _FIRST_CALLS.items():
        say(f"start: {name}")
        command = [sys.executable, "-c", _PROGRAM.format(call=call)]
        taken = []
        for _ in range(scale.fresh_processes + 1):
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            taken.append(json.loads(done.stdout))
        imports, firsts = zip(*taken[1:], strict=True)  # the first one compiles
        facts = {
            "import": statistics.median(imports),
            "import and first call": statistics.median(firsts),
            "processes": scale.fresh_processes,
        }
        yield Case("start", name, 1, "s", facts=facts)
