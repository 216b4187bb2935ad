"""Workers: lives of the real client that train, one after the other under each name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from onefold.aggregate import Aggregate
from onefold.client.calls import Calls
from onefold.client.worker import Client
from onefold.errors import Expired, Fenced, GaveUp, NotYet, NoUpdate, Refused
from onefold.receipt import Status
from onefold.simulation.choices import Choices
from onefold.simulation.contents import Content
from onefold.simulation.model import Model
from onefold.simulation.network import Network, SimulatedChannel, SimulatedTiming
from onefold.simulation.scenario import Scenario
from onefold.simulation.tasks import Scheduler, Task
from onefold.simulation.trace import Trace
from onefold.update import Update

__all__ = ["SimulatedWorker", "Surroundings"]

_T = TypeVar("_T")

_PAUSE_SECONDS_MAX = 30.0
_AWAY_SECONDS_MAX = 60.0
_FROZEN_SECONDS_MAX = 300.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every worker lives among."""

    scenario: Scenario
    choices: Choices
    scheduler: Scheduler
    network: Network
    model: Model
    trace: Trace
    spool_directory: Path


class _Gone(Exception):
    """The worker has left, and this life of it goes on no longer."""


class SimulatedWorker:
    """A worker's name. At any time one of its lives is the newest; older ones may still be there.

    Args:
        name: The name.
        around: What it lives among.
    """

    def __init__(self, name: str, around: Surroundings) -> None:
        self.name = name
        self.is_done = False
        self.has_left = False
        self.lives: list[Life] = []
        self._around = around
        self._reached: int | None = None

    def begin(self, *, has_state: bool) -> None:
        """Start a process; with the state of the last one it goes on at the step that it was at."""
        number = len(self.lives) + 1
        start = self._reached if has_state else None
        salt = 0 if has_state else number
        life = Life(f"{self.name}/{number}", self, self._around, start, salt)
        self.lives.append(life)
        life.task.resume()

    def begin_in(self, seconds: float, *, has_state: bool) -> None:
        """Start a process later."""
        self._around.scheduler.after(seconds, lambda: self.begin(has_state=has_state))

    def reached(self, step: int) -> None:
        """A process is about to take a step; past the last one the worker is done."""
        self._reached = step
        self.is_done = self.is_done or step >= self._around.scenario.steps

    def fenced(self, life: Life) -> None:
        """A process has ended as fenced; whoever started it last starts it again, to be sure.

        It may be an older one that has fenced it: one that was frozen, or even killed, before it
        could join, and whose join has come only now.
        """
        if life is self.lives[-1]:
            away_seconds = self._around.choices.draw("away", life.name) * _AWAY_SECONDS_MAX
            self.begin_in(away_seconds, has_state=True)

    def strike(self, round_: int) -> None:
        """Let the newest process be killed or frozen, if chance wants it."""
        if not self.lives or self.lives[-1].task.has_ended or self.is_done:
            return
        life, choices, rates = self.lives[-1], self._around.choices, self._around.scenario.rates
        has_state = choices.draw("has state", self.name, round_) < 0.5
        away_seconds = choices.draw("away", self.name, round_) * _AWAY_SECONDS_MAX
        if choices.strikes(rates["kill"], "kill", self.name, round_):
            self._around.trace(life.name, "killed")
            life.task.kill()
            self.begin_in(away_seconds, has_state=has_state)
        elif choices.strikes(rates["freeze"], "freeze", self.name, round_):
            self._freeze(life, choices.draw("frozen", self.name, round_) * _FROZEN_SECONDS_MAX)
            if choices.draw("zombie", self.name, round_) < 0.7:
                self.begin_in(away_seconds, has_state=has_state)

    def _freeze(self, life: Life, seconds: float) -> None:
        self._around.trace(life.name, f"frozen for {seconds:.1f} s")
        life.task.is_frozen = True

        def thaw() -> None:
            life.task.is_frozen = False

        self._around.scheduler.after(seconds, thaw)


class Life:
    """One process of a worker, from its join to its end.

    Args:
        name: Its life id.
        worker: Whose it is.
        around: What it lives among.
        start: The step where it goes on; None for the first that the server has open.
        salt: What tells its updates from those of other lives; equal ones are recomputed alike.
    """

    def __init__(
        self, name: str, worker: SimulatedWorker, around: Surroundings, start: int | None, salt: int
    ) -> None:
        self.name = name
        self.task = Task(name, self._run)
        self._worker = worker
        self._around = around
        self._start = start
        self._salt = salt
        self._timing = SimulatedTiming(around.scheduler, lambda: self.task, self._draw)

    def _run(self) -> None:
        around = self._around
        channel = SimulatedChannel(around.network, lambda: self.task, self._worker.name)
        calls = Calls(channel, around.scenario.timeout_seconds, self._timing)
        client = Client(self._worker.name, calls, around.spool_directory, life=self.name)
        try:
            self._patiently(client.open)
            self._train(client)
        except Fenced as fenced:
            around.trace(self.name, f"ends: {fenced}")
            around.model.fenced(self._worker.name, fenced.receipt.incarnation or 0)
            self._worker.fenced(self)
        except _Gone:
            around.trace(self.name, "ends: another life of it has left")
        finally:
            client.close()

    def _train(self, client: Client) -> None:
        step = client.joined.first_open_step if self._start is None else self._start
        while step < self._around.scenario.steps:
            self._worker.reached(step)
            if self._strikes("leave", step):
                self._leave(client, step)
                return
            step = self._take_step(client, step)
        self._worker.reached(step)

    def _leave(self, client: Client, step: int) -> None:
        """Contribute once more, leave, and come back as another life."""
        self._push(client, step, version=1)
        self._worker.has_left = True
        self._patiently(client.leave)
        self._around.trace(self.name, "has left")
        seconds = self._draw("away", step) * _AWAY_SECONDS_MAX
        self._worker.begin_in(seconds, has_state=False)

    def _take_step(self, client: Client, step: int) -> int:
        """Contribute to a step, and take what it came to; the next step."""
        self._pause("computing", step)
        if self._strikes("recompute", step):
            self._push(client, step, version=0)
            self._pause("recomputing", step)
        if self._is_ahead(step):
            self._push(client, step, version=1)
            self._push(client, step + 1, version=1)
        for version in range(1, 100):
            try:
                self._check(self._reduce(client, step, version))
            except (Expired, NoUpdate) as error:
                self._around.trace(self.name, error)
            except Refused as refused:
                if refused.receipt.status in (Status.NONFINITE, Status.TOO_FAR):
                    continue  # the next version has other numbers; the window moves
                self._turned_away(refused)
            return step + 1
        raise AssertionError("only the first versions have a NaN")

    def _reduce(self, client: Client, step: int, version: int) -> Aggregate:
        update = self._meant(step, version)
        return self._patiently(lambda: client.reduce(step, update, update.weight))

    def _push(self, client: Client, step: int, *, version: int) -> None:
        """Push, and do not mind what becomes of it: the newest sending is pulled for."""
        update = self._meant(step, version)
        self._patiently(lambda: client.push(step, update, weight=update.weight))

    def _meant(self, step: int, version: int) -> Update:
        """The update of a step, of which the model is told."""
        content = Content.drawn(
            lambda *what: self._drawn_of_content(step, version, *what),
            is_whole=self._around.scenario.is_whole,
            weight=int(self._drawn_of_content(step, version, "weight") * 5),
            has_nan=self._has_nan(step, version),
        )
        update = content.update()
        self._around.model.means(step, self._worker.name, content, update.digest())
        return update

    def _drawn_of_content(self, *what: object) -> float:
        return self._around.choices.draw("content", self._worker.name, self._salt, *what)

    def _has_nan(self, step: int, version: int) -> bool:
        is_early = self._around.scenario.has_nan and version < 5
        return is_early and self._drawn_of_content(step, version, "nan") < 0.2

    def _is_ahead(self, step: int) -> bool:
        """Whether it pushes to two steps before it pulls the first."""
        scenario = self._around.scenario
        can = scenario.policy.open_steps_max > 1 and step + 1 < scenario.steps
        return can and self._draw("ahead", step) < 0.2

    def _check(self, aggregate: Aggregate) -> None:
        self._around.model.pulled(aggregate)
        self._around.trace(self.name, f"has step {aggregate.step}")

    def _turned_away(self, refused: Refused) -> None:
        """Steps that were open before it came, or came back, do without it; so does who has left.

        Any other refusal is wrong.
        """
        is_late = self._worker.has_left or self._around.scenario.policy.roster == "joined"
        if refused.receipt.status is not Status.UNKNOWN_WORKER or not is_late:
            raise refused
        if refused.receipt.reason.startswith("it has left"):
            raise _Gone
        self._around.trace(self.name, refused)

    def _patiently(self, call: Callable[[], _T]) -> _T:
        """Call again whenever the client has given up, as the error tells its user to."""
        while True:
            try:
                return call()
            except (GaveUp, NotYet) as error:
                self._around.trace(self.name, error)

    def _pause(self, why: str, step: int) -> None:
        self._timing.wait(self._draw(why, step) * _PAUSE_SECONDS_MAX)

    def _strikes(self, kind: str, step: int) -> bool:
        rate = self._around.scenario.rates[kind]
        return self._around.choices.strikes(rate, kind, self.name, step)

    def _draw(self, *what: object) -> float:
        return self._around.choices.draw(self.name, *what)
