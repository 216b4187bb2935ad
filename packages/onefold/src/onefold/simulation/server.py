"""The server: the real dispatcher and aggregator over a disk, killed and started again."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from onefold.aggregator import Aggregator
from onefold.client.channel import Unreachable
from onefold.errors import OnefoldError
from onefold.ledger import StepClosed
from onefold.receipt import Receipt, Status
from onefold.server.dispatch import Dispatcher
from onefold.simulation.choices import Choices
from onefold.simulation.disk import Crashed, Disk, SimulatedStore
from onefold.simulation.model import Model, Violation
from onefold.simulation.scenario import Scenario
from onefold.simulation.tasks import Scheduler
from onefold.simulation.trace import Trace
from onefold.status import RunStatus
from onefold.wire import (
    Answer,
    Command,
    Commit,
    Get,
    Pull,
    Put,
    decode_command,
    encode_answer,
)

__all__ = ["SimulatedServer"]

_TICK_SECONDS = 2.0
_START_UNIX = 1_700_000_000.0

Part = tuple[pa.Schema, Sequence[pa.RecordBatch]]


class SimulatedServer:
    """Answers calls while it is up.

    Args:
        scenario: Which run this is.
        choices: What goes wrong.
        scheduler: When things happen.
        model: What is told of all that the server answers.
        trace: What happened.
    """

    def __init__(
        self,
        scenario: Scenario,
        choices: Choices,
        scheduler: Scheduler,
        model: Model,
        trace: Trace,
    ) -> None:
        self._disk = Disk(choices, scenario.rates)
        self._store = SimulatedStore(self._disk)
        self._policy = scenario.policy
        self._rates = scenario.rates
        self._choices = choices
        self._scheduler = scheduler
        self._model = model
        self._trace = trace
        self._aggregator: Aggregator | None = None
        self._dispatcher: Dispatcher | None = None
        self._offset_seconds = 0.0
        self._lives = 0
        self._shown = 0

    def clock(self) -> float:
        """Unix seconds, as the server's machine has them; they may jump."""
        return _START_UNIX + self._scheduler.now + self._offset_seconds

    def start(self) -> None:
        """Begin to answer."""
        self._lives += 1
        self._store = SimulatedStore(self._disk)
        aggregator = Aggregator(policy=self._policy, store=self._store, clock=self.clock)
        try:
            aggregator.open()
        except Crashed:
            self._crash("while it started")
            return
        except OnefoldError as error:
            self._trace("server", f"cannot start: {error}")
            self._scheduler.after(5.0, self.start)
            return
        self._aggregator = aggregator
        self._dispatcher = Dispatcher(aggregator, threading.Event())
        self._shown = 0
        self._trace("server", "started")
        self._tick(self._lives)

    def call(self, message: bytes, part: Part | None) -> bytes | Part:
        """The answer to a command, encoded, or the part of an aggregate that it asks for.

        Raises:
            Unreachable: The server is down, or has gone down before it answered.
            OnefoldError: What it answered with, as the client sees it.
        """
        if self._dispatcher is None:
            raise Unreachable("connection refused")
        command = decode_command(message)
        if isinstance(command, Pull):
            command = replace(command, wait_seconds=0.0)  # time passes between events only
        self._model.arrived(command, self.clock())
        try:
            answer = self._answer(self._dispatcher, command, part)
        except Crashed:
            self._crash(f"in the middle of {_name(command)}")
            raise Unreachable("connection reset") from None
        if isinstance(command, Get):
            return answer  # type: ignore[return-value] # a Get is answered by a part
        if isinstance(answer, Receipt) and answer.status is Status.CLOSED:
            self.check()  # it may have closed just now, before this was judged
        self._model.answered(command, answer)  # type: ignore[arg-type] # all others are not
        return encode_answer(answer)  # type: ignore[arg-type]

    def close_lowest(self) -> None:
        """Close the lowest open step with what is there, as an operator does."""
        if self._aggregator is None:
            return
        open_steps = self._aggregator.status().open_steps
        if not open_steps:
            return
        step = open_steps[0].step
        self._trace("server", f"close({step})")
        self._model.closes(step)
        try:
            self._aggregator.close(step)
        except Crashed:
            self._crash(f"in the middle of close({step})")
        except OnefoldError as error:
            self._trace("server", f"close({step}) failed: {error}")

    def settled_status(self) -> RunStatus:
        """How the run stands once the server is up and has had time to tidy up."""
        while self._aggregator is None:
            self._scheduler.step()
        self._aggregator.tick()
        return self._aggregator.status()

    def state(self) -> str:
        """What it waits for, in words."""
        if self._aggregator is None:
            return "the server is down"
        return f"open steps {self._aggregator.status().open_steps}"

    def check(self) -> None:
        """Show the model each step that has closed since it was last called, and check the window.

        After a start all steps that have ever closed are shown again.
        """
        if self._aggregator is None or self._shown == len(self._disk.transactions):
            return
        for changes, _ in self._disk.transactions[self._shown :]:
            for change in changes:
                if isinstance(change, StepClosed):
                    self._model.step_closed(self._store.aggregate(change), change.closed_at)
        self._shown = len(self._disk.transactions)
        steps = [at.step for at in self._aggregator.status().open_steps]
        if steps and steps[-1] - steps[0] >= self._policy.open_steps_max:
            raise Violation("Told", f"steps {steps} are open: too many")
        for (step, worker), order in self._model.standing_open():
            if not self._aggregator.stands(step, worker, *order):
                raise Violation("Once", f"step {step} no longer has {worker}, whose {order} stood")

    def _answer(self, dispatcher: Dispatcher, command: Command, part: Part | None) -> Answer | Part:
        match command:
            case Get():
                return dispatcher.get(command)
            case Put():
                assert part is not None
                return dispatcher.put(command, *part)
            case _:
                return dispatcher.act(command)

    def _tick(self, life: int) -> None:
        if self._aggregator is None or life != self._lives:
            return
        if self._choices.strikes(self._rates["crash"], "crash", int(self._scheduler.now)):
            self._crash("between two calls")
            return
        if self._choices.strikes(self._rates["jump"], "jump", int(self._scheduler.now)):
            jump = self._choices.among((-3600.0, -30.0, 30.0, 3600.0), "jump", self._offset_seconds)
            self._offset_seconds += jump
            self._trace("server", f"its clock jumps by {jump:g} s")
        try:
            self._aggregator.tick()
        except Crashed:
            self._crash("in the middle of a tick")
            return
        except OnefoldError:
            pass  # whoever waits for the step is told
        self._scheduler.after(_TICK_SECONDS, lambda: self._tick(life))

    def _crash(self, when: str) -> None:
        self._aggregator = self._dispatcher = None
        cut = self._choices.strikes(self._rates["power cut"], "power cut", self._disk.writes)
        if cut:
            self._disk.lose_power()
            self._model.lost_power()
        self._trace("server", f"{'loses power' if cut else 'is killed'} {when}")
        down_seconds = self._choices.draw("down", self._lives) * 20
        self._scheduler.after(down_seconds, self.start)


def _name(command: Command) -> str:
    verb = type(command).__name__.lower()
    if isinstance(command, Put | Commit):
        return f"{verb} of step {command.step}"
    return verb
