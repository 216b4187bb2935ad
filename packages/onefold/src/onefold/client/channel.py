"""One call over Arrow Flight: an answer, an error of the server's, or :class:`Unreachable`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import pyarrow as pa
from pyarrow import flight

from onefold.checks import show
from onefold.errors import InvalidInput
from onefold.parts import check_part_schema
from onefold.wire import (
    Command,
    Get,
    Put,
    decode_answer,
    decode_failure,
    encode_command,
    verb_of,
)

__all__ = ["Channel", "FlightChannel", "Unreachable"]

_T = TypeVar("_T")

_OPTIONS = [
    # gRPC's own waits between attempts to connect go up to minutes: a server that is back would be
    # noticed late. The least of them is also how long one attempt may take.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A new channel is to be a new connection, not the one that has just been given up.
    ("grpc.use_local_subchannel_pool", 1),
]


class Unreachable(Exception):
    """There was no answer; whether the server has done what was asked is not known."""


class Channel(Protocol):
    """Makes one call, once.

    Each method raises :class:`Unreachable` where there was no answer, else an
    :class:`~onefold.errors.OnefoldError` where the server answered with one.
    """

    @property
    def address(self) -> str:
        """Where the server is."""

    def act(self, command: Command, expected: type[_T], *, seconds: float) -> _T:
        """Send a command that carries no numbers; it is lost after ``seconds``."""

    def put(
        self,
        command: Put,
        part: tuple[pa.Schema, Sequence[pa.RecordBatch]],
        expected: type[_T],
        *,
        seconds: float,
    ) -> _T:
        """Send a part of an update."""

    def get(self, command: Get, *, seconds: float) -> Iterator[pa.RecordBatch]:
        """Receive a part of an aggregate, as it comes."""

    def close(self) -> None:
        """Give the connection up."""


class FlightChannel:
    """Calls to one server over Arrow Flight. Several threads may use it.

    Args:
        address: ``grpc://HOST:PORT``.
    """

    def __init__(self, address: str) -> None:
        self.address = _whole_address(address)
        self._flight = _connected(self.address)

    def act(self, command: Command, expected: type[_T], *, seconds: float) -> _T:
        """Send a command by ``DoAction``."""
        action = flight.Action(verb_of(command), encode_command(command))
        with self._errors():
            results = list(self._flight.do_action(action, _timeout(seconds)))
        return decode_answer(_only([result.body for result in results]), expected)

    def put(
        self,
        command: Put,
        part: tuple[pa.Schema, Sequence[pa.RecordBatch]],
        expected: type[_T],
        *,
        seconds: float,
    ) -> _T:
        """Send a part of an update by ``DoPut``."""
        schema, batches = part
        descriptor = flight.FlightDescriptor.for_command(encode_command(command))
        with self._errors():
            writer, answers = self._flight.do_put(descriptor, schema, _timeout(seconds))
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                writer.done_writing()
                message = answers.read()
        return decode_answer(_only([] if message is None else [message]), expected)

    def get(self, command: Get, *, seconds: float) -> Iterator[pa.RecordBatch]:
        """Receive a part of an aggregate by ``DoGet``, as it comes."""
        ticket = flight.Ticket(encode_command(command))
        with self._errors():
            reader = self._flight.do_get(ticket, _timeout(seconds))
            check_part_schema(reader.schema)
            for chunk in reader:
                yield chunk.data

    def close(self) -> None:
        """Give the connection up."""
        self._flight.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, flight.FlightTimedOutError):
                # A connection whose other end has vanished without a word would stay for minutes.
                self._flight = _connected(self.address)
            failure = getattr(error, "extra_info", None)
            if failure:
                raise decode_failure(failure) from None
            raise Unreachable(_plain(error)) from error


def _whole_address(address: object) -> str:
    """An address with its scheme.

    Raises:
        InvalidInput: It is no ``grpc://HOST:PORT``.
    """
    if not isinstance(address, str):
        raise InvalidInput(f"an address is a string, grpc://HOST:PORT, not {show(address)}")
    _, separator, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    # More than five digits may be more than int() takes; other alphabets' digits gRPC cannot read.
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        raise InvalidInput(f"an address is grpc://HOST:PORT, not {address!r}")
    return address if separator else f"grpc://{address}"


def _connected(address: str) -> flight.FlightClient:
    try:
        return flight.FlightClient(address, generic_options=_OPTIONS)
    except (pa.ArrowException, ValueError) as error:  # half a character is no UTF-8
        raise InvalidInput(f"an address is grpc://HOST:PORT, not {address!r}: {error}") from error


def _timeout(seconds: float) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(timeout=seconds)


def _only(messages: list[pa.Buffer]) -> bytes:
    """The one message of an answer; a server that stops may end a call without any."""
    if len(messages) != 1:
        raise Unreachable(f"the call ended with {len(messages)} answers instead of one")
    return bytes(messages[0].to_pybytes())


def _plain(error: Exception) -> str:
    """What happened, without what gRPC says about itself."""
    text = re.split(r"\.? (?:Detail|gRPC client debug context|Client context): ", str(error))[0]
    text = re.sub(r"^Flight returned .*?, with message: ", "", text)
    return f"{type(error).__name__}: {text[:300]}"
