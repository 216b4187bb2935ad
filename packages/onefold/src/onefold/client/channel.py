"""One call over Arrow Flight: an answer, an error of the server's, or :class:`Unreachable`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import pyarrow as pa
from pyarrow import flight

from onefold.checks import show
from onefold.client.credentials import Credentials, is_loopback
from onefold.client.diagnosis import hint, lasting_failure, plain
from onefold.errors import InvalidInput
from onefold.forks import use_grpc
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
        address: ``grpc://HOST:PORT`` or ``grpc+tls://HOST:PORT``.
        credentials: What is shown to the server, and by what it is known; default: nothing.

    Raises:
        InvalidInput: This is no address, or the credentials cannot be shown there.
        TransportError: This process is a fork of one that has used gRPC.
    """

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        self.address = _whole_address(address)
        self._credentials = credentials or Credentials()
        self._credentials.check_for(self.address)
        self._flight: flight.FlightClient | None = self._connected()

    def act(self, command: Command, expected: type[_T], *, seconds: float) -> _T:
        """Send a command by ``DoAction``."""
        action = flight.Action(verb_of(command), encode_command(command))
        with self._call() as connection:
            results = list(connection.do_action(action, self._options(seconds)))
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
        with self._call() as connection:
            writer, answers = connection.do_put(descriptor, schema, self._options(seconds))
            with writer:
                for batch in batches:
                    writer.write_batch(batch)
                writer.done_writing()
                message = answers.read()
        return decode_answer(_only([] if message is None else [message]), expected)

    def get(self, command: Get, *, seconds: float) -> Iterator[pa.RecordBatch]:
        """Receive a part of an aggregate by ``DoGet``, as it comes."""
        ticket = flight.Ticket(encode_command(command))
        with self._call() as connection:
            reader = connection.do_get(ticket, self._options(seconds))
            check_part_schema(reader.schema)
            for chunk in reader:
                yield chunk.data

    def close(self) -> None:
        """Give the connection up; it ends with the last call that uses it.

        Flight's own ``close()`` takes what calls in other threads are about to use: the process
        dies of it.
        """
        self._flight = None

    @contextmanager
    def _call(self) -> Iterator[flight.FlightClient]:
        """The connection, for as long as a call lasts."""
        use_grpc()
        connection = self._flight
        if connection is None:
            raise Unreachable("the connection has been closed")
        try:
            yield connection
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, flight.FlightTimedOutError) and self._flight is connection:
                # A connection whose other end has vanished without a word would stay for minutes.
                self._flight = self._connected()
            failure = getattr(error, "extra_info", None)
            if failure:
                raise decode_failure(failure) from None
            lasting = lasting_failure(error, self.address)
            if lasting is not None:
                raise lasting from None
            raise Unreachable(f"{plain(error)}{hint(self.address, self._credentials)}") from error

    def _options(self, seconds: float) -> flight.FlightCallOptions:
        return flight.FlightCallOptions(timeout=seconds, headers=self._credentials.headers())

    def _channel_options(self) -> list[tuple[str, int]]:
        if not is_loopback(self.address):
            return _OPTIONS
        # The proxy that http_proxy names would be asked to call itself, and read the token.
        return [*_OPTIONS, ("grpc.enable_http_proxy", 0)]

    def _connected(self) -> flight.FlightClient:
        use_grpc()
        try:
            return flight.FlightClient(
                self.address,
                generic_options=self._channel_options(),
                **self._credentials.flight_options(),
            )
        except (pa.ArrowException, ValueError) as error:  # half a character is no UTF-8
            raise InvalidInput(
                f"an address is grpc://HOST:PORT or grpc+tls://HOST:PORT, not {self.address!r}: "
                f"{error}"
            ) from error


def _whole_address(address: object) -> str:
    """An address with its scheme.

    Raises:
        InvalidInput: It is no ``grpc://HOST:PORT`` or ``grpc+tls://HOST:PORT``.
    """
    if not isinstance(address, str):
        raise InvalidInput(f"an address is a string, grpc://HOST:PORT, not {show(address)}")
    _, separator, place = address.rpartition("://")
    host, _, port = place.rpartition(":")
    # More than five digits may be more than int() takes; other alphabets' digits gRPC cannot read.
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        raise InvalidInput(f"an address is grpc://HOST:PORT, not {address!r}")
    return address if separator else f"grpc://{address}"


def _only(messages: list[pa.Buffer]) -> bytes:
    """The one message of an answer; a server that stops may end a call without any."""
    if len(messages) != 1:
        raise Unreachable(f"the call ended with {len(messages)} answers instead of one")
    return bytes(messages[0].to_pybytes())
