"""The life of a server, from a free port to the last call."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Self

import pyarrow as pa

from onefold.aggregator import Aggregator
from onefold.errors import AddressInUse, OnefoldError, TransportError
from onefold.server.dispatch import Dispatcher
from onefold.server.ports import check_free, host_and_port
from onefold.server.service import Service
from onefold.server.warming import start_warming

__all__ = ["Server"]

_LOG = logging.getLogger(__name__)

_TICK_SECONDS = 0.2
_INTERRUPT_SECONDS = 0.05


class Server:
    """Lets workers push and pull over a network.

    ``with`` or :meth:`start` listens; the threads that answer are Flight's own. The aggregator is
    the caller's, to open before and to shut down afterwards.

    Args:
        aggregator: What to serve.
        listen: ``HOST:PORT``, with ``grpc://`` before it or not; port 0 takes a free one. Nothing
            is authenticated or encrypted, so listen where only those who may can connect.
        warm_up: Whether to compile all kernels in the background once it listens, which keeps a
            processor busy for minutes where they are not in the cache yet.
    """

    def __init__(
        self, aggregator: Aggregator, listen: str = "127.0.0.1:0", *, warm_up: bool = False
    ) -> None:
        self._aggregator = aggregator
        self._listen = host_and_port(listen)
        self._warms_up = warm_up
        self._service: Service | None = None
        self._ticker: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def address(self) -> str:
        """``grpc://HOST:PORT``, where clients connect to."""
        if self._service is None:
            raise TransportError("the server has not started: use it in `with`, or call start()")
        return f"grpc://{self._listen.rpartition(':')[0]}:{self._service.port}"

    def start(self) -> Self:
        """Listen.

        Raises:
            AddressInUse: The port is taken.
            InvalidInput: ``listen`` is no ``HOST:PORT`` of this machine.
        """
        if self._service is not None:
            return self
        self._aggregator.open()
        self._stopping = threading.Event()  # a thread of an earlier start has its own
        self._service = _listening(self._aggregator, self._listen, self._stopping)
        self._ticker = threading.Thread(
            target=self._tick, args=(self._stopping,), name="onefold-ticker", daemon=True
        )
        self._ticker.start()
        if self._warms_up:
            start_warming(self._stopping)
        return self

    def stop(self, drain_seconds: float = 5.0) -> None:
        """Take no more calls, let those in progress end for at most ``drain_seconds``, and stop."""
        service, self._service = self._service, None
        if service is None or self._ticker is None:
            return
        self._stopping.set()
        # Flight waits for the calls in progress for ever, and one of them may have a client that
        # sends nothing and does not go away.
        shutdown = threading.Thread(target=service.shutdown, name="onefold-shutdown", daemon=True)
        shutdown.start()
        end = time.monotonic() + drain_seconds
        while shutdown.is_alive() and time.monotonic() < end:
            self._aggregator.interrupt()
            shutdown.join(_INTERRUPT_SECONDS)
        self._ticker.join(max(0.0, end - time.monotonic()))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _tick(self, stopping: threading.Event) -> None:
        while not stopping.wait(_TICK_SECONDS):
            try:
                self._aggregator.tick()
            except OnefoldError:
                # Whoever waits for a step is told why it does not close; the next tick tries again.
                continue
            except Exception:  # noqa: BLE001
                # Without a ticker deadlines would pass unnoticed, so it goes on whatever happens.
                _LOG.exception("a tick of the server failed; the next one tries again")


def _listening(aggregator: Aggregator, listen: str, stopping: threading.Event) -> Service:
    check_free(listen)
    try:
        return Service(Dispatcher(aggregator, stopping), f"grpc://{listen}")
    except pa.ArrowException as error:  # somebody was faster
        raise AddressInUse(f"cannot listen on {listen}: {error}") from error
