"""What workers push, made so that the exact sum is known beforehand and cheap to compare.

Every update is a multiple of one pattern: worker ``w`` sends ``c(w, step) * pattern``. Patterns are
integers below 2^18, the multiples are 2^k and 3 * 2^k with k below 32 and differ from worker to
worker, so every number that is sent is exact in float32, and a sum over any of 64 workers,
``pattern * (c1 + c2 + ...)``, is below 2^53: float64 has it exactly and rounds it to float32 once.
The addends are up to 2^33 apart and of both signs, so sums in float32 would be wrong; and one
worker that is missing, one that counts twice or a sending that was replaced changes the sum.

Sparse updates are as long as chance has it: worker ``w`` sends the first ``n(w, step)`` entries of
a sequence, turned round at some place. The sum is then piecewise a multiple of the pattern.
"""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from onefold import Sparse

__all__ = ["WORKERS_MAX", "Contents", "Plan", "Workload"]

WORKERS_MAX = 64
_EXPONENTS = 32
_PATTERN_MAX = 1 << 18
_STRIDE = 3
"""Between coordinates."""

_PLANS_KEPT = 1024
"""More than there are workers in the few steps that are going on at a time."""
_SUMS_KEPT = 2


@dataclass(frozen=True, slots=True)
class Workload:
    """How large updates are.

    Args:
        name: For tables.
        elements: Of the dense float32 tensor.
        entries: Of the sparse tensor, as a rule.
        entries_max: Of the sparse tensor, once in a while.
    """

    name: str
    elements: int
    entries: int
    entries_max: int

    def size_bytes(self, entries: int) -> int:
        """Of an update; an entry is a coordinate and a float32."""
        return 4 * self.elements + 12 * entries


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker does in a step. Each is a matter of chance that the seed decides."""

    coefficient: int
    entries: int
    shift: int
    """Where the sequence of sparse entries begins."""
    replaces: bool
    """It first pushes something else, which its true update then replaces."""
    repeats: bool
    """It pushes its update twice."""
    repeats_late: bool
    """It pushes its update once more when the step has closed."""
    pulls_again: bool
    is_apart: bool
    """It calls push and pull, not reduce."""
    late: float
    """How late it comes, as a multiple of the usual lateness; mostly 0."""

    def coefficient_of(self, attempt: int) -> int:
        """What an attempt multiplies the pattern by."""
        return -self.coefficient if self.replaces and attempt == 1 else self.coefficient

    @property
    def attempts(self) -> int:
        """How many there are."""
        return 2 if self.replaces else 1


class Contents:
    """What every worker pushes in every step, and what comes out.

    Args:
        workload: How large updates are.
        workers: How many there are, at most 64.
        seed: Decides everything.
    """

    def __init__(self, workload: Workload, workers: int, seed: int) -> None:
        assert 1 <= workers <= WORKERS_MAX
        self.workload = workload
        self.names = tuple(f"worker-{index:02}" for index in range(workers))
        self._seed = seed
        size = max(workload.elements, workload.entries_max)
        rng = np.random.default_rng(seed)
        self._pattern = (2 * rng.integers(0, _PATTERN_MAX // 2, size) + 1).astype(np.float32)
        self._summing = threading.Lock()
        self.plan = functools.lru_cache(_PLANS_KEPT)(self._plan)
        self._sum = functools.lru_cache(_SUMS_KEPT)(self._summed)

    def update(self, index: int, step: int, attempt: int) -> dict[str, np.ndarray | Sparse]:
        """What the worker of this index sends."""
        plan = self.plan(index, step)
        factor = np.float32(plan.coefficient_of(attempt))
        coordinates = np.arange(plan.entries, dtype=np.int64) * _STRIDE + step
        values = self._pattern[: plan.entries] * factor
        return {
            "dense": self._pattern[: self.workload.elements] * factor,
            "sparse": Sparse(np.roll(coordinates, plan.shift), np.roll(values, plan.shift)),
        }

    def wrong(
        self, step: int, attempts: Mapping[str, int], tensors: Mapping[str, object]
    ) -> str | None:
        """In what an aggregate differs from the exact sum, in words; None if every bit is right.

        Args:
            step: The step.
            attempts: Who counted, with which attempt.
            tensors: The aggregate's.
        """
        dense, sparse = tensors.get("dense"), tensors.get("sparse")
        if len(tensors) != 2 or not isinstance(sparse, Sparse) or not isinstance(dense, np.ndarray):
            return f"it has the tensors {sorted(tensors)}"
        with self._summing:  # the first of a process sums, the others have it from here
            expected_dense, expected_coordinates, expected_values = self._sum(
                step, tuple(sorted(attempts.items()))
            )
        if not _same(dense, expected_dense):
            return "its dense tensor is not the exact sum"
        if not np.array_equal(sparse.coordinates, expected_coordinates):
            return "its sparse tensor has other coordinates"
        if not _same(sparse.values, expected_values):
            return "its sparse tensor is not the exact sum"
        return None

    def _summed(
        self, step: int, attempts: tuple[tuple[str, int], ...]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        plans = [(self.plan(self.names.index(name), step), number) for name, number in attempts]
        factors = [plan.coefficient_of(number) for plan, number in plans]
        sizes = sorted({plan.entries for plan, _ in plans})
        sums = [
            sum(f for f, (plan, _) in zip(factors, plans, strict=True) if plan.entries >= size)
            for size in sizes
        ]
        by_entry = np.repeat(np.array(sums, np.float64), np.diff([0, *sizes]))
        return (
            _multiple(self._pattern[: self.workload.elements], float(sum(factors))),
            np.arange(sizes[-1], dtype=np.int64) * _STRIDE + step,
            _multiple(self._pattern[: sizes[-1]], by_entry),
        )

    def _plan(self, index: int, step: int) -> Plan:
        chance = random.Random(f"{self._seed}/{index}/{step}")  # noqa: S311 - no secret
        turned = (index + step) % WORKERS_MAX
        factor = (1 if turned < _EXPONENTS else 3) << (turned % _EXPONENTS)
        usual = self.workload.entries * 2
        most = self.workload.entries_max if chance.random() < 1 / 256 else usual
        entries = 1 + chance.randrange(min(most, self.workload.entries_max))
        return Plan(
            coefficient=factor * chance.choice((1, -1)),
            entries=entries,
            shift=chance.randrange(entries),
            replaces=chance.random() < 1 / 8,
            repeats=chance.random() < 1 / 8,
            repeats_late=chance.random() < 1 / 16,
            pulls_again=chance.random() < 1 / 8,
            is_apart=chance.random() < 1 / 2,
            late=2 * chance.random() if chance.random() < 1 / 256 else 0.0,
        )


def _multiple(pattern: np.ndarray, factor: float | np.ndarray) -> np.ndarray:
    """The correctly rounded product: float64 has the exact one."""
    return np.multiply(pattern, factor, dtype=np.float64).astype(np.float32)


def _same(got: np.ndarray, expected: np.ndarray) -> bool:
    """Whether all bits are equal: +0.0 and -0.0 are not."""
    return got.dtype == expected.dtype and np.array_equal(
        got.view(np.uint32), expected.view(np.uint32)
    )
