"""The calls that a server answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import flight

from onefold.errors import OnefoldError, ProtocolError
from onefold.parts import check_part_schema, malformed
from onefold.server.dispatch import Dispatcher
from onefold.wire import Get, Put, decode_command, encode_answer, encode_failure, verb_of

__all__ = ["Service"]


class Service(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no type information
    """The Flight side. It listens from its construction to its ``shutdown()``.

    ``serve()`` is never called: it would only wait, and take over the process's signals.
    """

    def __init__(self, dispatcher: Dispatcher, location: str) -> None:
        super().__init__(location)
        self._dispatcher = dispatcher

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """A part of an update, or the whole of a small one."""
        with _as_flight_errors():
            with malformed(ProtocolError, "this is no Arrow stream of a part"):
                schema = reader.schema
                check_part_schema(schema)  # what has another one is not read to its end, either
            try:
                command = decode_command(descriptor.command)
                if not isinstance(command, Put):
                    raise ProtocolError(f"{verb_of(command)!r} does not go by DoPut")
                answer = self._dispatcher.put(command, schema, _batches(reader, context))
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
            command = decode_command(action.body.to_pybytes())
            return [flight.Result(encode_answer(self._dispatcher.act(command)))]

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
            schema, batches = self._dispatcher.get(command)
            return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(schema, batches))


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
