"""A Flight server that hands each call on to another one, and misbehaves while it does.

It knows nothing of updates: it takes whole calls (``DoPut``, ``DoGet``, ``DoAction``), asks
:class:`~onefold.faults.Faults` what becomes of each, and forwards it. Errors of the server are
handed back as they came, with the ``extra_info`` that they carry. A server that is away, or has
been killed and started again at another address, costs the callers an "unavailable" each.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, Self, TypeVar

import pyarrow as pa
from pyarrow import flight

from onefold.faults.decisions import Call, Fate, Faults
from onefold.faults.streams import Action, Answer, Get, Put, Stream, plain_message
from onefold.faults.traffic import Counter, Overtaking, Traffic

__all__ = ["Proxy", "Traffic"]

_T = TypeVar("_T", Answer, Stream)
_T_co = TypeVar("_T_co", Answer, Stream, covariant=True)

# gRPC waits longer and longer between attempts to connect, up to minutes; and it shares that wait
# among all channels of a process to one address. A proxy must notice a restarted server at once.
_CHANNEL_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]


_STOP_SECONDS_MAX = 5.0


class _Forwardable(Protocol[_T_co]):
    @property
    def byte_count(self) -> int: ...
    def forward(self, client: flight.FlightClient) -> _T_co: ...
    def close(self) -> None: ...


class Proxy:
    """Stands between workers and the server at ``upstream``.

    ``start()`` or ``with`` listens; ``address`` is then where the workers connect to.

    Args:
        upstream: The server's address, ``grpc://HOST:PORT``; it may be set again at any time.
        faults: How often to misbehave.
        listen: ``HOST:PORT``; port 0 takes a free one.
    """

    def __init__(self, upstream: str, faults: Faults, listen: str = "127.0.0.1:0") -> None:
        self.faults = faults
        self._listen = listen
        self._counter = Counter()
        self._overtaking = Overtaking()
        self._stopping = threading.Event()
        self._repeats: dict[threading.Timer, _Forwardable[Answer] | _Forwardable[Stream]] = {}
        self._repeats_lock = threading.Lock()
        self._service: _Service | None = None
        self.upstream = upstream

    @property
    def upstream(self) -> str:
        """The address of the server that calls are forwarded to."""
        return self._upstream

    @upstream.setter
    def upstream(self, address: str) -> None:
        self._upstream = address
        self._client = flight.FlightClient(address, generic_options=_CHANNEL_OPTIONS)

    @property
    def address(self) -> str:
        """``grpc://HOST:PORT`` of the proxy itself."""
        if self._service is None:
            raise RuntimeError("the proxy has not started: use it in `with`, or call start()")
        return f"grpc://{self._listen.rpartition(':')[0]}:{self._service.port}"

    @property
    def traffic(self) -> Traffic:
        """What has happened so far."""
        return self._counter.snapshot()

    def start(self) -> None:
        """Listen. The threads that answer are those of Flight."""
        self._service = _Service(self, f"grpc://{self._listen}")

    def stop(self) -> None:
        """Answer what is being held, forget the repeats still to come, and stop listening."""
        self._stopping.set()
        self._overtaking.release()
        service, self._service = self._service, None
        if service is not None:
            # It waits for the calls in progress, which may be waiting for a server that hangs.
            shutdown = threading.Thread(target=service.shutdown, daemon=True)
            shutdown.start()
            shutdown.join(_STOP_SECONDS_MAX)
        with self._repeats_lock:
            repeats = dict(self._repeats)
        for timer in repeats:
            timer.cancel()
        for timer, what in repeats.items():
            timer.join(_STOP_SECONDS_MAX)
            if not timer.is_alive():
                what.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def carry(self, call: Call, what: _Forwardable[_T]) -> _T:
        """Forward one call, or not, as fate has it.

        Raises:
            FlightUnavailableError: The call or its answer was lost, or the server is away.
        """
        fate = self.faults.fate(call)
        self._counter.add("calls", 1)
        self._counter.add("bytes_to_server", what.byte_count)
        try:
            if fate.lose:
                self._counter.add("lost", 1)
                raise flight.FlightUnavailableError("the network lost this call")
            self._hold(fate)
            answer = self._forward(what, counted=True)
            if fate.lose_reply:
                self._counter.add("replies_lost", 1)
                raise flight.FlightUnavailableError("the network lost the answer to this call")
        finally:
            # After the first forwarding has ended, as both read the same spool.
            self._repeat_later(fate, what)
        return answer

    def count_answer(self, byte_count: int) -> None:
        """Bytes on their way back to a worker."""
        self._counter.add("bytes_from_server", byte_count)

    def _hold(self, fate: Fate) -> None:
        if fate.delay_seconds > 0:
            self._counter.add("delayed", 1)
            self._stopping.wait(fate.delay_seconds)
        if fate.reorder and self._overtaking.wait(self.faults.delay_seconds_max):
            self._counter.add("reordered", 1)

    def _forward(self, what: _Forwardable[_T], *, counted: bool) -> _T:
        try:
            answer = what.forward(self._client)
        except (flight.FlightUnavailableError, OSError) as error:
            # OSError: a stream that broke off while it was being written to.
            if counted:
                self._counter.add("unavailable", 1)
            raise flight.FlightUnavailableError(plain_message(error)) from None
        except flight.FlightError as error:
            self._overtaking.passed()
            raise type(error)(plain_message(error), error.extra_info) from None
        self._overtaking.passed()
        return answer

    def _repeat_later(self, fate: Fate, what: _Forwardable[_T]) -> None:
        if fate.lose or fate.repeat_after_seconds is None or self._stopping.is_set():
            what.close()
            return
        timer = threading.Timer(fate.repeat_after_seconds, self._repeat, (what,))
        timer.daemon = True
        with self._repeats_lock:
            self._repeats[timer] = what
        timer.start()

    def _repeat(self, what: _Forwardable[_T]) -> None:
        """Forward a call again, on the timer's own thread."""
        try:
            answer = self._forward(what, counted=False)
        except (flight.FlightError, pa.ArrowException):
            pass  # Nobody waits for this answer; that the server refuses a stale call is its right.
        else:
            if isinstance(answer, Stream):
                answer.cancel()
        finally:
            self._counter.add("repeated", 1)
            what.close()
            with self._repeats_lock:
                self._repeats = {
                    timer: other for timer, other in self._repeats.items() if other is not what
                }


class _Service(flight.FlightServerBase):  # type: ignore[misc] # pyarrow is untyped
    """The Flight side of a proxy. It listens from its construction to its ``shutdown()``.

    ``serve()`` is never called: it would only wait, and take over the process's signals.
    """

    def __init__(self, proxy: Proxy, location: str) -> None:
        super().__init__(location)
        self._proxy = proxy

    def do_put(
        self,
        context: flight.ServerCallContext,  # noqa: ARG002 - Flight's signature
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """A put: read whole, forwarded whole."""
        put = Put(descriptor, reader)
        answer = self._proxy.carry(Call.of(descriptor.command or b"", "put"), put)
        self._proxy.count_answer(answer.byte_count)
        for message in answer.messages:
            writer.write(message)

    def do_action(
        self,
        context: flight.ServerCallContext,  # noqa: ARG002 - Flight's signature
        action: flight.Action,
    ) -> list[flight.Result]:
        """An action: the answers are taken whole, then handed back."""
        answer = self._proxy.carry(Call.of(action.body.to_pybytes(), action.type), Action(action))
        self._proxy.count_answer(answer.byte_count)
        return [flight.Result(pa.py_buffer(message)) for message in answer.messages]

    def do_get(
        self,
        context: flight.ServerCallContext,  # noqa: ARG002 - Flight's signature
        ticket: flight.Ticket,
    ) -> flight.GeneratorStream:
        """A get: the answer is handed back as it comes."""
        stream = self._proxy.carry(Call.of(ticket.ticket, "get"), Get(ticket))
        return flight.GeneratorStream(stream.schema, self._relay(stream))

    def _relay(self, stream: Stream) -> Iterator[tuple[pa.RecordBatch, pa.Buffer | None]]:
        yield from stream
        self._proxy.count_answer(stream.byte_count)
