"""Many seeds, on all processors."""

from __future__ import annotations

import logging
import multiprocessing
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from onefold.simulation.scenario import Scenario
from onefold.simulation.shrinking import shrunk
from onefold.simulation.world import Outcome, simulate

__all__ = ["Campaign", "Tally", "traced"]

_SEEDS_PER_TASK = 10


@dataclass(slots=True)
class Tally:
    """What seeds came to.

    Attributes:
        seeds: How many were run.
        events: How many things happened in them.
        steps: How many steps closed.
        seconds: The virtual time that they took.
        faults: How often each kind of fault struck.
        violations: What went wrong, by seed.
    """

    seeds: int = 0
    events: int = 0
    steps: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    violations: dict[int, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add what other seeds came to."""
        self.seeds += other.seeds
        self.events += other.events
        self.steps += other.steps
        self.seconds += other.seconds
        self.faults += other.faults
        self.violations |= other.violations

    def note(self, outcome: Outcome) -> None:
        """Add what one seed came to."""
        self.seeds += 1
        self.events += outcome.events
        self.steps += outcome.steps
        self.seconds += outcome.seconds
        self.faults += Counter(outcome.faults.values())
        if outcome.violation is not None:
            self.violations[outcome.scenario.seed] = str(outcome.violation)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Seeds to run.

    Attributes:
        first: The first seed.
        seeds: How many, one after the other.
        workers: How many workers each has; None for what the seed says.
        steps: How many steps each has; None for what the seed says.
    """

    first: int
    seeds: int
    workers: int | None = None
    steps: int | None = None

    def run(self, processes: int) -> Iterator[Tally]:
        """Run them all, on several processes; what some more of them came to, as they end."""
        starts = range(self.first, self.first + self.seeds, _SEEDS_PER_TASK)
        pieces = [
            Campaign(
                start,
                min(_SEEDS_PER_TASK, self.first + self.seeds - start),
                self.workers,
                self.steps,
            )
            for start in starts
        ]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            yield from pool.map(_tally, pieces)

    def run_here(self) -> Tally:
        """Run them all in this process."""
        tally = Tally()
        with _quiet(), tempfile.TemporaryDirectory(prefix="onefold-simulation-") as directory:
            for seed in range(self.first, self.first + self.seeds):
                tally.note(simulate(self.scenario(seed), Path(directory)))
        return tally

    def scenario(self, seed: int) -> Scenario:
        """The scenario of one of the seeds."""
        return Scenario.of(seed, self.workers, self.steps)


def traced(scenario: Scenario, *, is_shrunk: bool) -> Outcome:
    """Run a scenario with its trace; with ``is_shrunk`` with as few faults as break a guarantee."""
    with _quiet(), tempfile.TemporaryDirectory(prefix="onefold-simulation-") as directory:
        outcome = simulate(scenario, Path(directory), is_traced=True)
        if outcome.violation is None or not is_shrunk:
            return outcome
        return shrunk(outcome, Path(directory))


def _tally(campaign: Campaign) -> Tally:
    return campaign.run_here()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what client and server log about faults, which are no news here."""
    logger = logging.getLogger("onefold")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
