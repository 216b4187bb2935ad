"""The calls that a server answers.

Who calls is found out before anything is read of a call; whether that one may give this command is
asked once the command is known. A part is counted as it comes in, and read no further than it may
be large: an error does reach a client that is still writing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import flight

from onefold.errors import (
    InvalidInput,
    OnefoldError,
    OverLimit,
    ProtocolError,
    StagingFull,
    StoreError,
    Unauthenticated,
)
from onefold.parts import check_part_schema, malformed
from onefold.receipt import Receipt
from onefold.server.dispatch import Dispatcher
from onefold.server.identity import check_allowed
from onefold.server.security import Security
from onefold.server.uploads import Upload, Uploads
from onefold.tokens import Caller, TokenFile
from onefold.wire import (
    Get,
    Put,
    Staged,
    decode_command,
    encode_answer,
    encode_failure,
    verb_of,
)

__all__ = ["Service"]

_LOG = logging.getLogger(__name__)

_TOKENS = "onefold-tokens"


class Service(flight.FlightServerBase):  # type: ignore[misc] # pyarrow has no type information
    """The Flight side. It listens from its construction to its ``shutdown()``.

    ``serve()`` is never called: it would only wait, and take over the process's signals.

    Args:
        dispatcher: Answers the commands.
        listen: ``HOST:PORT``.
        security: Who may call.
        uploads: The parts on their way in.
    """

    def __init__(
        self, dispatcher: Dispatcher, listen: str, security: Security, uploads: Uploads
    ) -> None:
        options = security.flight_options()
        if security.tokens is not None:
            options["middleware"] = {_TOKENS: _Doorkeeper(TokenFile(Path(security.tokens)))}
        # Calls may come as soon as it listens.
        self._dispatcher = dispatcher
        self._uploads = uploads
        self._asks = security.tokens is not None
        super().__init__(f"{security.scheme}://{listen}", **options)

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """A part of an update, or the whole of a small one."""
        with _as_flight_errors():
            command = decode_command(descriptor.command)
            if not isinstance(command, Put):
                raise ProtocolError(f"{verb_of(command)!r} does not go by DoPut")
            check_allowed(self._caller(context), command)
            with self._uploads.admit(command.worker, command.step, context.peer()) as upload:
                answer = self._put(command, _Incoming(reader, context, upload))
        writer.write(encode_answer(answer))

    def do_action(
        self,
        context: flight.ServerCallContext,
        action: flight.Action,
    ) -> list[flight.Result]:
        """Everything that carries no numbers."""
        with _as_flight_errors():
            command = decode_command(action.body.to_pybytes())
            check_allowed(self._caller(context), command)
            return [flight.Result(encode_answer(self._dispatcher.act(command)))]

    def do_get(
        self,
        context: flight.ServerCallContext,
        ticket: flight.Ticket,
    ) -> flight.RecordBatchStream:
        """A part of an aggregate, as it lies on the disk."""
        with _as_flight_errors():
            command = decode_command(ticket.ticket)
            if not isinstance(command, Get):
                raise ProtocolError(f"{verb_of(command)!r} does not go by DoGet")
            check_allowed(self._caller(context), command)
            schema, batches = self._dispatcher.get(command)
            return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(schema, batches))

    def _put(self, command: Put, incoming: _Incoming) -> Staged | Receipt:
        with malformed(ProtocolError, "this is no Arrow stream of a part"):
            schema = incoming.reader.schema
            check_part_schema(schema)  # what has another one is not read to its end, either
        try:
            return self._dispatcher.put(command, schema, incoming.batches())
        except (OverLimit, StagingFull):
            raise  # who sends too much is not listened to any longer
        except BaseException:
            incoming.pass_over()
            raise

    def _caller(self, context: flight.ServerCallContext) -> Caller | None:
        """Who calls; None where nobody is asked."""
        if not self._asks:
            return None
        admitted = context.get_middleware(_TOKENS)
        assert isinstance(admitted, _Admitted)
        return admitted.caller


class _Admitted(flight.ServerMiddleware):  # type: ignore[misc] # pyarrow has no type information
    """A call whose token was right."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller


class _Doorkeeper(flight.ServerMiddlewareFactory):  # type: ignore[misc] # likewise
    """Asks each call for its token; one that has none gets no further."""

    def __init__(self, tokens: TokenFile) -> None:
        self._tokens = tokens
        self._complaint = ""

    def start_call(
        self,
        info: flight.CallInfo,  # noqa: ARG002 - Flight's signature
        headers: Mapping[str, Sequence[str | bytes]],
    ) -> _Admitted:
        """Who calls, for whoever answers."""
        with _as_flight_errors():
            return _Admitted(self._caller(_token_in(headers)))

    def _caller(self, token: str | None) -> Caller:
        try:
            caller = self._tokens.caller(token)
        except InvalidInput as error:
            if str(error) != self._complaint:  # each call comes here
                self._complaint = str(error)
                _LOG.error("nobody is let in: %s", error)
            # Whoever put a bad file there will put a good one, so clients go on trying.
            raise StoreError(
                "the server cannot read its tokens now, and lets nobody in; its log says why"
            ) from None
        self._complaint = ""
        return caller


class _Incoming:
    """A part as it comes in."""

    def __init__(
        self,
        reader: flight.MetadataRecordBatchReader,
        context: flight.ServerCallContext,
        upload: Upload,
    ) -> None:
        self.reader = reader
        self._context = context
        self._upload = upload

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The record batches; a part that breaks off is an error."""
        yield from self._read()
        if self._context.is_cancelled():  # Flight then ends the stream as if all had come
            raise ProtocolError(
                "the connection ended in the middle of a part, which is not kept; send it again"
            )

    def pass_over(self) -> None:
        """Read what is left: an answer that comes earlier may be lost."""
        with suppress(OverLimit, StagingFull, ProtocolError, pa.ArrowInvalid):
            for _ in self._read():
                pass

    def _read(self) -> Iterator[pa.RecordBatch]:
        self._upload.add(0)  # a part without a batch needs some room, too
        self._upload.wait()
        for chunk in self.reader:
            if chunk.data is None or chunk.app_metadata is not None:
                raise ProtocolError("a part is record batches, without metadata; this one has some")
            # Arrow follows offsets wherever they lead, to write a batch or only to size it up.
            chunk.data.validate()
            # As it is written: a batch without a number takes some bytes, too.
            self._upload.add(pa.ipc.get_record_batch_size(chunk.data))
            yield chunk.data
            self._upload.wait()
        self._upload.end()


def _token_in(headers: Mapping[str, Sequence[str | bytes]]) -> str | None:
    """The token of ``authorization: Bearer TOKEN``; None without such a header."""
    values = headers.get("authorization", ())
    if not values:
        return None
    scheme, _, token = str(values[0]).partition(" ")
    if len(values) != 1 or scheme.lower() != "bearer":
        raise Unauthenticated("a token comes in one header, `authorization: Bearer TOKEN`")
    return token


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


def _flight_error(error: OnefoldError) -> flight.FlightError:
    if isinstance(error, Unauthenticated):
        return flight.FlightUnauthenticatedError(str(error), extra_info=encode_failure(error))
    return flight.FlightServerError(type(error).__name__, extra_info=encode_failure(error))
