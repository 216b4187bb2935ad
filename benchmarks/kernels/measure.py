"""A race: contestants that do the same work on the same data, timed in turns.

These machines are shared, and a process runs at half its speed for its first second. So everybody
first warms up for more than a second in all; then each round times every contestant once, and the
median over the rounds is what counts. No absolute figure holds for long; the ratios do.

The first contestant is ours. What each of the others returns is compared with it bit by bit, once,
while warming up: a peer that adds in another order gives other bits, and its share of them is told.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numba
import numpy as np

from benchmarks.kernels.scale import Scale
from onefold.exact.pool import thread_count

__all__ = ["Call", "Case", "Contestant", "Outcome", "ours", "race", "read_bandwidth"]

Call = Callable[[], Any]

_LOOPED_SECONDS = 1e-3
"""Calls that are shorter than this are repeated within one measurement."""

_SLOW_SECONDS = 1.0

_PAUSE_SECONDS = 0.003
"""Between long calls: the threads of OpenMP go on spinning for a while after their work."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A way to do the work.

    ``prepare`` brings the data into the form that the contestant likes best, untimed, and returns
    what is timed. ``read`` makes an array, comparable with that of the others, of what it returns;
    without it nothing is compared.
    """

    name: str
    prepare: Callable[[], Call]
    read: Callable[[Any], np.ndarray] | None = np.asarray
    kind: str = "peer"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a contestant did: the median and the least seconds, or why there are none."""

    kind: str
    seconds: float | None = None
    fastest: float | None = None
    rounds: int = 0
    differs: float | None = None
    """The share of elements whose bits are not ours."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a table: what was done, how much of it, and how everybody did."""

    table: str
    name: str
    amount: float
    """Of work in one call, in the unit: bytes, entries, or calls."""
    unit: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """What goes into ``results.json``."""
        return asdict(self)


def ours(
    name: str, call: Call, read: Callable[[Any], np.ndarray] | None = np.asarray
) -> Contestant:
    """A contestant of our own; the first of a race must be one."""
    return Contestant(name, lambda: call, read, "ours")


def race(contestants: Sequence[Contestant], scale: Scale) -> dict[str, Outcome]:
    """Time everybody in turns; who fails is out, with the reason."""
    failures: dict[str, str] = {}
    calls: dict[str, Call] = {}
    for contestant in contestants:
        try:
            calls[contestant.name] = contestant.prepare()
        except Exception as error:  # noqa: BLE001  # whatever a peer raises is its result
            failures[contestant.name] = _told(error)
    warm = time.perf_counter() + scale.warm_seconds
    differs, slow = _compare(contestants, calls, failures)
    loops = _warm_up(calls, slow, warm)
    times = _rounds(calls, loops, scale)
    outcomes = {}
    for contestant in contestants:
        name = contestant.name
        if name in failures:
            outcomes[name] = Outcome(contestant.kind, error=failures[name])
            continue
        taken = times[name]
        outcomes[name] = Outcome(
            contestant.kind, statistics.median(taken), min(taken), len(taken), differs.get(name)
        )
    return outcomes


def _told(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "not installed"
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:100]}"


def _compare(
    contestants: Sequence[Contestant], calls: dict[str, Call], failures: dict[str, str]
) -> tuple[dict[str, float], set[str]]:
    """The share of elements that each computes otherwise than the first, and which peers are slow.

    Who fails is dropped.
    """
    expected: np.ndarray | None = None
    differs: dict[str, float] = {}
    slow: set[str] = set()
    for contestant in contestants:
        name = contestant.name
        if name not in calls:
            continue
        try:
            start = time.perf_counter()
            result = calls[name]()
            if contestant.kind != "ours" and time.perf_counter() - start > _SLOW_SECONDS:
                slow.add(name)
            if contestant.read is not None:
                got = contestant.read(result)
                if expected is None:
                    expected = np.array(got)  # a copy: the others may write where ours wrote
                else:
                    differs[name] = share_different(expected, got)
        except Exception as error:
            if contestant.kind == "ours":
                raise
            failures[name] = _told(error)
            del calls[name]
    return differs, slow


def share_different(expected: np.ndarray, got: np.ndarray) -> float:
    """The share of elements whose bits differ; all of them if there are more or fewer."""
    if expected.shape != got.shape:
        return 1.0
    if expected.dtype != got.dtype:
        expected = expected.astype(got.dtype)
    bits = f"u{got.dtype.itemsize}"
    unequal = np.ascontiguousarray(expected).view(bits) != np.ascontiguousarray(got).view(bits)
    return float(unequal.mean()) if unequal.size else 0.0


def _warm_up(calls: dict[str, Call], slow: set[str], until: float) -> dict[str, int]:
    """Call everybody, until then at least; how often to repeat a call within a measurement.

    Comparing results called everybody once already; who took seconds is spared.
    """
    loops = dict.fromkeys(calls, 1)
    while True:
        for name in [name for name in calls if name not in slow]:
            loops[name] = max(1, math.ceil(_LOOPED_SECONDS / _timed(calls[name], 1)))
        if time.perf_counter() >= until:
            return loops


def _rounds(calls: dict[str, Call], loops: dict[str, int], scale: Scale) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + scale.race_seconds
        for done in range(scale.rounds_max):
            if done >= scale.rounds_min and time.perf_counter() > end:
                break
            for name, call in calls.items():
                times[name].append(_timed(call, loops[name]))
                if loops[name] == 1:
                    time.sleep(_PAUSE_SECONDS)
    finally:
        gc.enable()
    return times


def _timed(call: Call, loops: int) -> float:
    """The seconds of a call. Its result is kept until the clock stands, so freeing is not timed."""
    start = time.perf_counter()
    result = call()
    for _ in range(loops - 1):
        result = call()
    taken = time.perf_counter() - start
    del result
    return taken / loops


@numba.njit(nogil=True)
def _xor(words: np.ndarray) -> np.uint64:
    total = np.uint64(0)
    for index in range(words.size):
        total ^= words[index]
    return total


def read_bandwidth(data: np.ndarray) -> Contestant:
    """The yardstick: read all of this on all threads, and do next to nothing with it."""

    def prepare() -> Call:
        words = data.reshape(-1).view(np.uint8)
        words = words[: words.size // 8 * 8].view(np.uint64)
        pieces = np.array_split(words, 8 * thread_count())
        pool = ThreadPoolExecutor(thread_count())
        return lambda: list(pool.map(_xor, pieces))

    return Contestant("read bandwidth", prepare, None, "yardstick")
