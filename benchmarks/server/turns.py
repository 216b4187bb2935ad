"""Timing in turns, so that a phase in which the machine is slow falls on everybody."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "Scale", "Timed", "medians", "timed"]

Timed = Callable[[], float]
"""Does something once and returns how many seconds of it count."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes, and how often."""

    large_bytes: int
    """Of a large update."""
    huge_bytes: int
    """Of one of 16 updates, for the memory of the server."""
    rounds: int
    small_rounds: int
    training_steps: int
    storm_seconds: float
    """How long eight clients push as fast as they can, each time."""


FULL = Scale(64 << 20, 256 << 20, 7, 300, 40, 3.0)
QUICK = Scale(2 << 20, 2 << 20, 1, 3, 3, 0.2)

_WARM_UP_ROUNDS = 2


def medians(contestants: Mapping[str, Timed], rounds: int) -> dict[str, float]:
    """The median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(_WARM_UP_ROUNDS + rounds):
        for name, contestant in contestants.items():
            seconds = contestant()
            if number >= _WARM_UP_ROUNDS:
                times[name].append(seconds)
    return {name: statistics.median(each) for name, each in times.items()}


def timed(call: Callable[[], object]) -> Timed:
    """A call of which every second counts."""

    def run() -> float:
        begun_at = time.perf_counter()
        call()
        return time.perf_counter() - begun_at

    return run
