"""One run: a server, workers and what lies between them, from a seed to its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from onefold.simulation.choices import Choices
from onefold.simulation.model import Model, Violation
from onefold.simulation.network import Network
from onefold.simulation.scenario import Scenario
from onefold.simulation.server import SimulatedServer
from onefold.simulation.tasks import Scheduler
from onefold.simulation.trace import Trace
from onefold.simulation.workers import SimulatedWorker, Surroundings

__all__ = ["Outcome", "simulate"]

_ROUND_SECONDS = 10.0
_CALM_SECONDS_MAX = 1800.0
_LINGER_SECONDS = 200.0
_LATE_SECONDS_MAX = 100.0
_LEFTOVERS_SECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        scenario: What it was.
        violation: What went wrong; None if nothing did.
        faults: The faults that struck, in order: their names, and the kind of each.
        events: How many things happened.
        steps: How many steps closed.
        seconds: The virtual time that it took.
        trace: What happened, line by line, if that was asked for.
    """

    scenario: Scenario
    violation: Violation | None
    faults: Mapping[str, str]
    events: int
    steps: int
    seconds: float
    trace: tuple[str, ...]


def simulate(
    scenario: Scenario,
    spool_directory: Path,
    *,
    allowed: Collection[str] | None = None,
    is_traced: bool = False,
) -> Outcome:
    """Run a scenario to its end.

    Args:
        scenario: What to run.
        spool_directory: Where clients may keep their updates.
        allowed: The names of the faults that may strike; None for all.
        is_traced: Whether to note what happens.
    """
    world = _World(scenario, spool_directory, allowed, is_traced=is_traced)
    violation = None
    try:
        world.run()
    except Violation as error:
        violation = error
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not to happen
        violation = Violation("Told", f"the server ended with {error!r}")
        violation.__cause__ = error
    finally:
        world.end()
    return Outcome(
        scenario=scenario,
        violation=violation,
        faults=world.choices.struck,
        events=world.scheduler.events,
        steps=len(world.model.closed),
        seconds=world.scheduler.now,
        trace=tuple(world.trace.lines),
    )


class _World:
    def __init__(
        self,
        scenario: Scenario,
        spool_directory: Path,
        allowed: Collection[str] | None,
        *,
        is_traced: bool,
    ) -> None:
        self.scenario = scenario
        self.choices = Choices(scenario.seed, allowed)
        self.scheduler = Scheduler(self._check)
        self.trace = Trace(lambda: self.scheduler.now, is_kept=is_traced)
        self.model = Model(scenario.policy)
        self.server = SimulatedServer(
            scenario, self.choices, self.scheduler, self.model, self.trace
        )
        network = Network(self.server, self.choices, scenario.rates, self.scheduler, self.trace)
        around = Surroundings(
            scenario=scenario,
            choices=self.choices,
            scheduler=self.scheduler,
            network=network,
            model=self.model,
            trace=self.trace,
            spool_directory=spool_directory,
        )
        self.workers = [SimulatedWorker(name, around) for name in scenario.workers]

    def run(self) -> None:
        """Until all workers have gone through all steps, and for some time after.

        Raises:
            Violation: A guarantee is broken.
        """
        self.server.start()
        for worker in self.workers:
            late = self.choices.strikes(self.scenario.rates["late"], "late", worker.name)
            seconds = self.choices.draw("late", worker.name, "seconds") * _LATE_SECONDS_MAX
            worker.begin_in(seconds if late else 0.0, has_state=False)
        self._begin_round(1)
        self.scheduler.after(self.scenario.calm_at, self._calm)
        end = self.scenario.calm_at + _CALM_SECONDS_MAX
        while not all(worker.is_done for worker in self.workers):
            if self.scheduler.now > end:
                waiting = [worker.name for worker in self.workers if not worker.is_done]
                since = f"{_CALM_SECONDS_MAX:g} s after the last fault"
                what = f"{since} {', '.join(waiting)} still wait(s): {self.server.state()}"
                raise Violation("Told", what)
            self.scheduler.step()
        self._calm()
        end = self.scheduler.now + _LINGER_SECONDS  # what was repeated or delayed comes in
        while self.scheduler.now < end:
            self.scheduler.step()
        self._check_leftovers()

    def end(self) -> None:
        """End all processes."""
        for worker in self.workers:
            for life in worker.lives:
                life.task.kill()

    def _calm(self) -> None:
        self.trace("all", "from now on no fault strikes")
        self.choices.calm()

    def _begin_round(self, number: int) -> None:
        """Let chance strike workers now and then, and an operator close what nothing else does."""
        for worker in self.workers:
            worker.strike(number)
        if self.scenario.policy.roster is None:
            self.server.close_lowest()
        self.scheduler.after(_ROUND_SECONDS, lambda: self._begin_round(number + 1))

    def _check(self) -> None:
        """After each thing that happened."""
        self.server.check()
        for worker in self.workers:
            for life in worker.lives:
                if life.task.error is not None:
                    error = life.task.error
                    if isinstance(error, Violation):
                        raise error
                    raise Violation("Told", f"{life.name} ended with {error!r}") from error

    def _check_leftovers(self) -> None:
        """What nobody has committed is gone after ten minutes, and what was summed at once."""
        self.scheduler.now += _LEFTOVERS_SECONDS
        status = self.server.settled_status()
        if status.staged_bytes and not status.open_steps:
            raise Violation(
                "Bounded", f"{status.staged_bytes} bytes stay staged, and no step is open"
            )
