"""Many seeds, on all processors."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import cast

from onefold.errors import OnefoldError
from onefold.simulation.processes import Calling, calling
from onefold.simulation.scenario import Scenario
from onefold.simulation.shrinking import shrunk
from onefold.simulation.world import Outcome, simulate

__all__ = ["Campaign", "Tally", "traced"]

_SEEDS_PER_PIECE = 10
_LOOK_SECONDS = 0.1


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

    def run(self, processes: int, is_stopped: Callable[[], bool]) -> Iterator[Tally]:
        """Run them all, on several processes; what some more of them came to, as they end.

        Args:
            processes: How many, at most.
            is_stopped: Asked some times a second; once it is true nothing more is run.

        Raises:
            OnefoldError: One of the processes was killed, or ended for want of memory.
        """
        try:
            yield from self._run(processes, is_stopped)
        except (EOFError, ConnectionError):
            if is_stopped():  # a process that had only just begun has had the signal, too
                return
            raise OnefoldError(
                "a process that ran seeds has ended before it had run them; if it has said nothing "
                "it was killed, perhaps for want of memory: try it with fewer --jobs"
            ) from None

    def _run(self, processes: int, is_stopped: Callable[[], bool]) -> Iterator[Tally]:
        pieces = self._pieces()
        with _directory() as directory, ExitStack() as stack:
            busy: list[Calling] = []
            for piece in pieces[:processes]:
                process = stack.enter_context(calling())
                process.send(partial(piece.run_here, directory))
                busy.append(process)
            left = pieces[processes:]
            while busy and not is_stopped():
                for process in cast("list[Calling]", wait(busy, _LOOK_SECONDS)):
                    yield cast("Tally", process.recv())
                    if left:
                        process.send(partial(left.pop(0).run_here, directory))
                    else:
                        busy.remove(process)

    def run_here(self, directory: Path | None = None) -> Tally:
        """Run them all in this process; clients keep their updates in a directory in this one."""
        tally = Tally()
        with _quiet(), _directory(directory) as spools:
            for seed in range(self.first, self.first + self.seeds):
                tally.note(simulate(self.scenario(seed), spools))
        return tally

    def scenario(self, seed: int) -> Scenario:
        """The scenario of one of the seeds."""
        return Scenario.of(seed, self.workers, self.steps)

    def _pieces(self) -> list[Campaign]:
        end = self.first + self.seeds
        return [
            replace(self, first=first, seeds=min(_SEEDS_PER_PIECE, end - first))
            for first in range(self.first, end, _SEEDS_PER_PIECE)
        ]


def traced(
    scenario: Scenario, *, is_shrunk: bool, is_stopped: Callable[[], bool] = lambda: False
) -> Outcome:
    """Run a scenario with its trace.

    Args:
        scenario: What to run.
        is_shrunk: Whether to look for as few faults as break a guarantee.
        is_stopped: Asked while they are looked for; once it is true those found so far will do.
    """
    with _quiet(), _directory() as directory:
        outcome = simulate(scenario, directory, is_traced=True)
        if outcome.violation is None or not is_shrunk:
            return outcome
        return shrunk(outcome, directory, is_stopped)


@contextmanager
def _directory(above: Path | None = None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="onefold-simulation-", dir=above) as directory:
        yield Path(directory)


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
