"""Commands in, answers out: what a server does, whatever carries them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import pyarrow as pa

from onefold.aggregator import Aggregator
from onefold.errors import OverLimit, ProtocolError, Refused
from onefold.receipt import Receipt, Status
from onefold.server.limits import Limits, check_manifest
from onefold.wire import (
    Answer,
    Closed,
    Command,
    Commit,
    Done,
    Get,
    GetStatus,
    Join,
    Leave,
    Open,
    Pull,
    Put,
    Resend,
    Staged,
    verb_of,
)

__all__ = ["Dispatcher"]

_POLL_SECONDS_MAX = 2.0
"""How long a pull waits for its step here before the client has to ask again."""


class Dispatcher:
    """Answers commands by what an aggregator says.

    Args:
        aggregator: Whom to ask.
        stopping: Once it is set, pulls no longer wait.
        limits: How large an update may be.
    """

    def __init__(
        self, aggregator: Aggregator, stopping: threading.Event, limits: Limits | None = None
    ) -> None:
        self._aggregator = aggregator
        self._stopping = stopping
        self._limits = limits or Limits()

    def act(self, command: Command) -> Answer:
        """Everything that carries no numbers.

        Raises:
            ProtocolError: This command does.
            OnefoldError: As for the aggregator's own methods.
        """
        match command:
            case Join():
                if command.after is None:
                    return self._aggregator.join(command.worker, command.life)
                return self._aggregator.join_after(command.worker, command.life, command.after)
            case Leave():
                self._check_run(command)
                self._aggregator.leave(command.worker, command.incarnation)
                return Done()
            case Commit():
                return self._commit(command)
            case Pull():
                self._check_run(command)
                return self._pull(command)
            case GetStatus():
                return self._aggregator.status()
            case _:
                raise ProtocolError(f"{verb_of(command)!r} does not go by DoAction")

    def put(
        self, command: Put, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> Staged | Receipt:
        """A part of an update, or the whole of a small one."""
        if command.manifest is not None:
            check_manifest(self._limits, command.manifest, _where(command))
        part = self._aggregator.stage(
            command.step,
            schema,
            batches,
            worker=command.worker,
            incarnation=command.incarnation,
            run=command.run,
        )
        if command.manifest is None:
            return Staged(part)
        commit = Commit(
            run=command.run,
            worker=command.worker,
            incarnation=command.incarnation,
            step=command.step,
            attempt=command.attempt,
            manifest=command.manifest.with_parts([part]),
        )
        return self._commit(commit)

    def get(self, command: Get) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of an aggregate, as it is stored."""
        self._check_run(command)
        return self._aggregator.read_part(command.step, command.name)

    def _commit(self, command: Commit) -> Receipt:
        try:
            check_manifest(self._limits, command.manifest, _where(command))
        except OverLimit:
            self._aggregator.drop(command.step, command.worker, command.manifest.parts)
            raise
        return self._aggregator.commit(
            command.step,
            command.worker,
            command.manifest,
            attempt=command.attempt,
            incarnation=command.incarnation,
            run=command.run,
        )

    def _pull(self, command: Pull) -> Open | Resend | Closed:
        answer = self._closed(command.step, 0.0)
        if answer is not None:
            return answer
        if not self._has_update(command):
            # It may have closed in between, and a closed step has no updates any more.
            return self._closed(command.step, 0.0) or Resend()
        wait_seconds = min(command.wait_seconds, _POLL_SECONDS_MAX)
        if self._stopping.is_set() or wait_seconds == 0:
            return Open()
        return self._closed(command.step, wait_seconds) or Open()

    def _closed(self, step: int, wait_seconds: float) -> Closed | None:
        answer = self._aggregator.wait(step, wait_seconds)
        return None if answer is None else Closed(answer.closed, answer.manifest)

    def _has_update(self, command: Pull) -> bool:
        return command.attempt is None or self._aggregator.stands(
            command.step, command.worker, command.incarnation, command.attempt
        )

    def _check_run(self, command: Leave | Pull | Get) -> None:
        if command.run == self._aggregator.run:
            return
        step = 0 if isinstance(command, Leave) else command.step
        reason = (
            f"it is for run {command.run}, this is run {self._aggregator.run}; "
            "connect again to join this run"
        )
        raise Refused(
            Receipt(
                status=Status.OTHER_RUN,
                reason=reason,
                step=step,
                worker=command.worker,
                incarnation=command.incarnation,
                attempt=None,
                digest="",
            )
        )


def _where(command: Put | Commit) -> str:
    return f"worker {command.worker!r}, step {command.step}: "
