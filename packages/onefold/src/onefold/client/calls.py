"""Calls that are made until they are answered, or a deadline has passed."""

from __future__ import annotations

import itertools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from onefold.checks import check_seconds
from onefold.client.channel import Channel, FlightChannel, Unreachable
from onefold.client.credentials import Credentials
from onefold.client.timing import Timing
from onefold.errors import Damaged, GaveUp, StoreError, TransportError
from onefold.status import RunStatus
from onefold.wire import Command, Get, GetStatus, Put, verb_of

__all__ = ["CALL_SECONDS", "Calls", "backoff_seconds", "bulk_seconds", "fetch_status"]

_LOG = logging.getLogger(__name__)

CALL_SECONDS = 10.0
"""How long a call without numbers may take before it counts as lost and is made again."""

_BULK_BYTES_PER_SECOND = 1 << 20
_BACKOFF_SECONDS_MIN = 0.05
_BACKOFF_SECONDS_MAX = 2.0
_CALL_SECONDS_MIN = 0.05
_SILENT_SECONDS = 5.0
"""How long somebody who waits for an answer may be left in the dark."""
_DOUBLINGS_MAX = 4
_TRIES_KEPT_MAX = 4096

_C = TypeVar("_C", bound=Command)
_T = TypeVar("_T")


def backoff_seconds(failures: int, draw: float) -> float:
    """How long to wait before a call is made again.

    The longest wait doubles with every failure; the wait itself is anywhere below it, so that many
    clients which have lost a server at the same moment do not come back at the same moment
    ("full jitter": https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).

    Args:
        failures: How often the call has failed since it was last answered, from 1.
        draw: A random number from 0 up to 1.
    """
    doublings = min(failures - 1, 16)
    return draw * min(_BACKOFF_SECONDS_MAX, _BACKOFF_SECONDS_MIN * 2.0**doublings)


def bulk_seconds(size_bytes: int) -> float:
    """How long a call that moves, or makes the server sum, so many bytes may take."""
    return CALL_SECONDS + size_bytes / _BULK_BYTES_PER_SECOND


def fetch_status(
    address: str, *, timeout_seconds: float = 5.0, credentials: Credentials | None = None
) -> RunStatus:
    """How the run on a server stands, without joining it.

    Raises:
        GaveUp: The server did not answer in time.
        Unauthenticated: It wants a token, and the credentials have none that it knows.
        InvalidInput: The credentials cannot be shown there.
    """
    calls = Calls(FlightChannel(address, credentials), timeout_seconds)
    try:
        return calls.act(GetStatus(), RunStatus)
    finally:
        calls.close()


class Calls:
    """What a client says to one server. Several threads may use it.

    Args:
        channel: The way to the server; closed by :meth:`close`.
        timeout_seconds: How long to go on without an answer.
        timing: What tells the time and waits.
    """

    def __init__(
        self, channel: Channel, timeout_seconds: float, timing: Timing | None = None
    ) -> None:
        self.timeout_seconds = check_seconds("timeout_seconds", timeout_seconds, positive=True)
        self._channel = channel
        self._timing = timing or Timing()
        self._tries: OrderedDict[object, int] = OrderedDict()
        self._tries_lock = threading.Lock()

    def act(self, command: Command, expected: type[_T], *, seconds: float = CALL_SECONDS) -> _T:
        """Send a command that carries no numbers, and return the answer.

        Raises:
            GaveUp: There was no answer before the deadline.
            OnefoldError: What the server answered with.
        """
        return self._until_answered(
            command,
            seconds,
            lambda tried, limit: self._channel.act(tried, expected, seconds=limit),
        )

    def put(
        self,
        command: Put,
        part: tuple[pa.Schema, Sequence[pa.RecordBatch]],
        expected: type[_T],
        *,
        seconds: float,
    ) -> _T:
        """Send a part of an update; raises as :meth:`act` does."""
        return self._until_answered(
            command,
            seconds,
            lambda tried, limit: self._channel.put(tried, part, expected, seconds=limit),
        )

    def get(
        self,
        command: Get,
        begin: Callable[[], Callable[[pa.RecordBatch], None]],
        *,
        seconds: float,
    ) -> None:
        """Receive a part of an aggregate; raises as :meth:`act` does.

        Args:
            command: Which part.
            begin: Called whenever the part begins, again after a failure; what it returns is
                called with each record batch.
            seconds: How long it may take.
        """

        def receive(tried: Get, limit: float) -> None:
            take = begin()
            for batch in self._channel.get(tried, seconds=limit):
                take(batch)

        self._until_answered(command, seconds, receive)

    def pause(self, failures: int, seconds_max: float = _BACKOFF_SECONDS_MAX) -> None:
        """Wait before something is tried again, for at most ``seconds_max``."""
        seconds = backoff_seconds(failures, self._timing.draw())
        self._timing.wait(min(seconds, seconds_max))
        self.check_open()

    def now(self) -> float:
        """Seconds on the clock by which the client waits; it never goes back."""
        return self._timing.now()

    def close(self) -> None:
        """End all waits, and give the connection up."""
        self._timing.end()
        self._channel.close()

    def _until_answered(self, command: _C, seconds: float, call: Callable[[_C, float], _T]) -> _T:
        begun, is_told = self.now(), False
        for failures in itertools.count(1):
            self.check_open()
            remaining = self.timeout_seconds - (self.now() - begun)
            # What took too long once is given more time, or it would never come to its end.
            limit = min(seconds * 2.0 ** min(failures - 1, _DOUBLINGS_MAX), remaining)
            try:
                return call(self._counted(command), max(limit, _CALL_SECONDS_MIN))
            except (Unreachable, StoreError) as error:
                if isinstance(error, Damaged):
                    raise
                remaining = begun + self.timeout_seconds - self.now()
                if remaining <= 0:
                    raise self._gave_up(command, error) from error
                if not is_told and self.now() - begun >= _SILENT_SECONDS:
                    is_told = True
                    _LOG.warning(
                        "%s %s (%s); trying again for up to %.0f s",
                        "no answer from" if isinstance(error, Unreachable) else "not now, says",
                        self._channel.address,
                        error,
                        remaining,
                    )
            self.pause(failures, min(remaining, _BACKOFF_SECONDS_MAX))
        raise AssertionError("unreachable")

    def _counted(self, command: _C) -> _C:
        """The command with how often it has been tried, which is never the same twice."""
        step, attempt, part = (getattr(command, name, None) for name in ("step", "attempt", "part"))
        key = (verb_of(command), step, attempt, part)
        with self._tries_lock:
            retry = self._tries.pop(key, 0)
            self._tries[key] = retry + 1
            if len(self._tries) > _TRIES_KEPT_MAX:
                self._tries.popitem(last=False)
        counted: _C = replace(command, retry=retry)
        return counted

    def check_open(self) -> None:
        """Raise TransportError once the calls have been closed."""
        if self._timing.has_ended:
            raise TransportError("this client is closed; connect again")

    def _gave_up(self, command: Command, error: Exception) -> GaveUp:
        step = getattr(command, "step", None)
        where = "" if step is None else f" of step {step}"
        what = f"{verb_of(command)!r}{where} within {self.timeout_seconds} s"
        if isinstance(error, StoreError):
            return GaveUp(
                f"{self._channel.address} could not do {what}: {error} (it was asked again and "
                "again); once it can, do the same again"
            )
        return GaveUp(
            f"no answer from {self._channel.address} to {what} (last: {error}); see that the "
            "server runs there, then connect again"
        )
