"""The calls that a server answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import flight

from onefold.aggregator import Aggregator
from onefold.errors import OnefoldError, ProtocolError, Refused
from onefold.parts import malformed
from onefold.receipt import Receipt, Status
from onefold.wire import (
    Answer,
    Closed,
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
    decode_command,
    encode_answer,
    encode_failure,
    verb_of,
)

__all__ = ["Service"]

_POLL_SECONDS_MAX = 2.0
"""How long a pull waits for its step here before the client has to ask again."""


class Service(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no type information
    """The Flight side. It listens from its construction to its ``shutdown()``.

    ``serve()`` is never called: it would only wait, and take over the process's signals.
    """

    def __init__(self, aggregator: Aggregator, location: str, stopping: threading.Event) -> None:
        super().__init__(location)
        self._aggregator = aggregator
        self._stopping = stopping

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """A part of an update, or the whole of a small one."""
        with _as_flight_errors():
            try:
                command = decode_command(descriptor.command)
                if not isinstance(command, Put):
                    raise ProtocolError(f"{verb_of(command)!r} does not go by DoPut")
                with malformed(ProtocolError, "this is no Arrow stream of a part"):
                    schema = reader.schema
                answer = self._put(command, schema, _batches(reader, context))
            finally:
                for _ in reader:
                    pass
        writer.write(encode_answer(answer))

    def do_action(
        self,
        context: flight.ServerCallContext,  # noqa: ARG002 - Flight's signature
        action: flight.Action,
    ) -> list[flight.Result]:
        """Everything that carries no numbers."""
        with _as_flight_errors():
            return [flight.Result(encode_answer(self._act(action)))]

    def do_get(
        self,
        context: flight.ServerCallContext,  # noqa: ARG002 - Flight's signature
        ticket: flight.Ticket,
    ) -> flight.RecordBatchStream:
        """A part of an aggregate, as it lies on the disk."""
        with _as_flight_errors():
            command = decode_command(ticket.ticket)
            if not isinstance(command, Get):
                raise ProtocolError(f"{verb_of(command)!r} does not go by DoGet")
            self._check_run(command)
            schema, batches = self._aggregator.read_part(command.step, command.name)
            return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(schema, batches))

    def _act(self, action: flight.Action) -> Answer:
        command = decode_command(action.body.to_pybytes())
        match command:
            case Join():
                return self._aggregator.join(command.worker, command.life)
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

    def _put(
        self, command: Put, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> Staged | Receipt:
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

    def _commit(self, command: Commit) -> Receipt:
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


@contextmanager
def _as_flight_errors() -> Iterator[None]:
    """Let an error of ours travel whole; what Arrow cannot read is the peer's fault."""
    try:
        yield
    except flight.FlightError:
        raise
    except pa.ArrowException as error:
        raise _flight_error(ProtocolError(f"this is no Arrow stream of a part: {error}")) from error
    except OnefoldError as error:
        raise _flight_error(error) from error


def _flight_error(error: OnefoldError) -> flight.FlightServerError:
    return flight.FlightServerError(type(error).__name__, extra_info=encode_failure(error))


def _batches(
    reader: flight.MetadataRecordBatchReader, context: flight.ServerCallContext
) -> Iterator[pa.RecordBatch]:
    for chunk in reader:
        if chunk.data is not None:
            chunk.data.validate()  # offsets that lead outside their buffers are not to be written
            yield chunk.data
    if context.is_cancelled():  # Flight then ends the stream as if all had come
        raise ProtocolError("the client went away in the middle of a part; it is not kept")
