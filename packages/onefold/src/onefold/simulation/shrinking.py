"""As few faults as still break the same guarantee, so that a person can follow what happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from onefold.simulation.scenario import Scenario
from onefold.simulation.world import Outcome, simulate

__all__ = ["shrunk"]


_SECONDS_MAX = 60.0


def shrunk(outcome: Outcome, spool_directory: Path, is_stopped: Callable[[], bool]) -> Outcome:
    """A shorter run of the same seed that breaks the same guarantee, with its trace.

    Fewer workers and steps are tried first, then leaving out faults: ever smaller pieces of their
    list ("delta debugging", Zeller and Hildebrandt 2002), until no single one can be left out.

    Args:
        outcome: A run that broke a guarantee.
        spool_directory: Where clients may keep their updates.
        is_stopped: Once it is true, the shortest so far is returned; so it is after a minute.
    """
    end = time.monotonic() + _SECONDS_MAX
    is_over: Callable[[], bool] = lambda: is_stopped() or time.monotonic() >= end  # noqa: E731
    best = _smaller(outcome, spool_directory, is_over)
    pieces = 2
    while best.faults and not is_over():
        faults = list(best.faults)
        size = -(-len(faults) // pieces)
        for start in range(0, len(faults), size):
            if is_over():
                break
            kept = faults[:start] + faults[start + size :]
            tried = simulate(best.scenario, spool_directory, allowed=kept)
            if _is_same(tried, outcome) and len(tried.faults) < len(faults):
                best, pieces = tried, max(2, pieces - 1)
                break
        else:
            if size == 1:
                break
            pieces = min(len(faults), pieces * 2)
    return simulate(best.scenario, spool_directory, allowed=best.faults, is_traced=True)


def _smaller(outcome: Outcome, spool_directory: Path, is_over: Callable[[], bool]) -> Outcome:
    """The same with fewer workers and steps, if that still breaks the guarantee."""
    scenario = outcome.scenario
    for workers in range(1, len(scenario.workers) + 1):
        for steps in range(1, scenario.steps + 1):
            if is_over():
                return outcome
            tried = simulate(Scenario.of(scenario.seed, workers, steps), spool_directory)
            if _is_same(tried, outcome):
                return tried
    return outcome


def _is_same(tried: Outcome, outcome: Outcome) -> bool:
    if tried.violation is None or outcome.violation is None:
        return False
    return tried.violation.guarantee == outcome.violation.guarantee
