"""A network between clients and the server that loses, repeats, delays and overtakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa

from onefold.client.channel import Unreachable
from onefold.client.timing import Timing
from onefold.errors import OnefoldError
from onefold.simulation.choices import Choices
from onefold.simulation.server import Part, SimulatedServer
from onefold.simulation.tasks import Scheduler, Task
from onefold.simulation.trace import Trace
from onefold.wire import (
    Command,
    Get,
    Join,
    Put,
    decode_answer,
    decode_failure,
    encode_command,
    encode_failure,
    verb_of,
)

__all__ = ["Network", "SimulatedChannel", "SimulatedTiming"]

_T = TypeVar("_T")

_LATENCY_SECONDS = 0.05
_POLL_SECONDS = 2.0
_DELAY_SECONDS = 40.0
_PARTITION_SECONDS = 90.0


class _Call:
    """A call under way; ``result`` is an answer, a part, or the error that it ended with."""

    def __init__(self, name: str, worker: str, message: bytes, part: Part | None) -> None:
        self.name = name
        self.worker = worker
        self.message = message
        self.part = part
        self.result: bytes | Part | Exception | None = None

    def end(self, result: bytes | Part | Exception) -> bool:
        """Take a result, unless there is one; whether it was taken."""
        if self.result is not None:
            return False
        self.result = result
        return True


class Network:
    """The way from every worker to the server.

    Args:
        server: Where it leads.
        choices: What goes wrong.
        rates: How probable each kind of fault is.
        scheduler: When things happen.
        trace: What happened.
    """

    def __init__(
        self,
        server: SimulatedServer,
        choices: Choices,
        rates: Mapping[str, float],
        scheduler: Scheduler,
        trace: Trace,
    ) -> None:
        self.scheduler = scheduler
        self._server = server
        self._choices = choices
        self._rates = rates
        self._trace = trace
        self._cut_until: dict[str, float] = {}

    def call(
        self, task: Task, worker: str, command: Command, part: Part | None, seconds: float
    ) -> bytes | Part:
        """Send a command and wait for what comes of it; ``task`` is who waits.

        Raises:
            Unreachable: Nothing came within ``seconds``, or the connection failed.
            OnefoldError: What the server answered with.
        """
        call = _Call(f"{task.name} {_text(command)}", worker, encode_command(command), part)
        self._send(call, task)
        self.scheduler.wake(task, seconds, lambda: call.end(Unreachable("timed out")))
        while call.result is None:
            task.park()
        if isinstance(call.result, Exception):
            raise call.result
        return call.result

    def _send(self, call: _Call, task: Task) -> None:
        name = call.name
        if self._is_cut(call.worker, name) or self._strikes("lose", name):
            self._trace(name, "lost")
            return  # nothing comes back, and the caller's patience ends
        latency = self._latency(name)
        if self._strikes("delay", name):
            latency += self._choices.draw("seconds", name) * _DELAY_SECONDS
        self.scheduler.after(latency, lambda: self._arrive(call, task))
        if self._strikes("repeat", name):
            again = _Call(f"{name} (repeated)", call.worker, call.message, call.part)
            later = latency + self._choices.draw("later", name) ** 2 * _DELAY_SECONDS * 3
            self.scheduler.after(later, lambda: self._arrive(again, task))

    def _arrive(self, call: _Call, task: Task) -> None:
        """The server has a message, and answers."""
        result: bytes | Part | Exception
        try:
            result = self._server.call(call.message, call.part)
        except Unreachable as error:
            result = error
        except OnefoldError as error:
            result = decode_failure(encode_failure(error))
        self._trace(call.name, result)
        if self._strikes("lose reply", call.name):
            self._trace(call.name, "its answer is lost")
            return
        hold = _POLL_SECONDS if _is_open(result) else 0.0  # the long poll
        latency = self._latency(f"reply {call.name}") + hold
        self.scheduler.wake(task, latency, lambda: call.end(result))

    def _is_cut(self, worker: str, name: str) -> bool:
        now = self.scheduler.now
        if self._strikes("partition", name):
            self._cut_until[worker] = now + self._choices.draw("cut", name) * _PARTITION_SECONDS
            self._trace(worker, f"cut off until {self._cut_until[worker]:.1f}")
        return self._cut_until.get(worker, 0.0) > now

    def _latency(self, name: str) -> float:
        return self._choices.draw("latency", name) * _LATENCY_SECONDS

    def _strikes(self, kind: str, name: str) -> bool:
        return self._choices.strikes(self._rates[kind], kind, name)


class SimulatedChannel:
    """One process's connection.

    Args:
        network: The network.
        task: The process.
        worker: Which worker it is of.
    """

    address = "grpc://simulated:1"

    def __init__(self, network: Network, task: Callable[[], Task], worker: str) -> None:
        self._network = network
        self._task = task
        self._worker = worker

    def act(self, command: Command, expected: type[_T], *, seconds: float) -> _T:
        """Send a command that carries no numbers."""
        return decode_answer(self._answer(command, None, seconds), expected)

    def put(
        self,
        command: Put,
        part: tuple[pa.Schema, Sequence[pa.RecordBatch]],
        expected: type[_T],
        *,
        seconds: float,
    ) -> _T:
        """Send a part of an update."""
        return decode_answer(self._answer(command, part, seconds), expected)

    def get(self, command: Get, *, seconds: float) -> Iterator[pa.RecordBatch]:
        """Receive a part of an aggregate."""
        answer = self._network.call(self._task(), self._worker, command, None, seconds)
        assert not isinstance(answer, bytes)
        yield from answer[1]

    def close(self) -> None:
        """Nothing is held."""

    def _answer(self, command: Command, part: Part | None, seconds: float) -> bytes:
        answer = self._network.call(self._task(), self._worker, command, part, seconds)
        assert isinstance(answer, bytes)
        return answer


class SimulatedTiming(Timing):
    """Virtual time, for one process.

    Args:
        scheduler: What moves it.
        task: The process.
        draw: Gives a number from 0 up to 1 for each name.
    """

    def __init__(
        self, scheduler: Scheduler, task: Callable[[], Task], draw: Callable[..., float]
    ) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._task = task
        self._draw = draw
        self._draws = 0

    def now(self) -> float:
        """Virtual seconds."""
        return self._scheduler.now

    def wait(self, seconds: float) -> None:
        """Let virtual seconds pass."""
        is_over: list[bool] = []

        def end() -> bool:
            is_over.append(True)
            return True

        task = self._task()
        self._scheduler.wake(task, seconds, end)
        while not is_over:
            task.park()

    def draw(self) -> float:
        """A number from 0 up to 1, by the seed."""
        self._draws += 1
        return self._draw("backoff", self._draws)


def _is_open(result: object) -> bool:
    return isinstance(result, bytes) and b'"answer":"open"' in result


def _text(command: Command) -> str:
    """What tells a call from all others of its process."""
    words = [verb_of(command)]
    if isinstance(command, Join):
        words.append(command.life)
    for field in ("step", "attempt", "part"):
        value = getattr(command, field, None)
        if value is not None:
            words.append(f"{field} {value}")
    return " ".join([*words, f"try {command.retry}"])
