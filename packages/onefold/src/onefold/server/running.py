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
from onefold.forks import use_grpc
from onefold.server.connections import end_connection
from onefold.server.dispatch import Dispatcher
from onefold.server.limits import Limits
from onefold.server.ports import check_free, host_and_port
from onefold.server.security import Security
from onefold.server.service import Service
from onefold.server.uploads import Uploads
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
        listen: ``HOST:PORT``, with ``grpc://`` before it or not; port 0 takes a free one.
        security: Who may connect; default: anybody, on the loopback interface only.
        limits: How much is taken; default: those of :class:`Limits`.
        warm_up: Whether to compile all kernels in the background once it listens, which keeps a
            processor busy for minutes where they are not in the cache yet.
    """

    def __init__(
        self,
        aggregator: Aggregator,
        listen: str = "127.0.0.1:0",
        *,
        security: Security | None = None,
        limits: Limits | None = None,
        warm_up: bool = False,
    ) -> None:
        self._aggregator = aggregator
        self._security = security or Security()
        self._security.check_scheme(listen)
        self._listen = host_and_port(listen)
        self._limits = limits or Limits()
        self._warms_up = warm_up
        self._service: Service | None = None
        self._uploads: Uploads | None = None
        self._ticker: threading.Thread | None = None
        self._stopping = threading.Event()

    @property
    def address(self) -> str:
        """``grpc://HOST:PORT``, or ``grpc+tls://HOST:PORT``, where clients connect to."""
        if self._service is None:
            raise TransportError("the server has not started: use it in `with`, or call start()")
        host = self._listen.rpartition(":")[0]
        return f"{self._security.scheme}://{host}:{self._service.port}"

    def start(self) -> Self:
        """Listen.

        Raises:
            AddressInUse: The port is taken.
            InvalidInput: ``listen`` is no ``HOST:PORT`` of this machine, or others can reach it and
                ``security`` asks nobody who they are, or a file that it names cannot be used.
            TransportError: This process is a fork of one that has used gRPC.
        """
        if self._service is not None:
            return self
        use_grpc()
        self._security.check_listen(self._listen)
        self._security.check_files()
        check_free(self._listen)
        self._aggregator.open()
        self._stopping = threading.Event()  # a thread of an earlier start has its own
        self._uploads = Uploads(self._limits, self._aggregator)
        self._service = self._listening(self._uploads)
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
                self._end_overdue()
                self._aggregator.tick()
            except OnefoldError:
                # Whoever waits for a step is told why it does not close; the next tick tries again.
                continue
            except Exception:  # noqa: BLE001
                # Without a ticker deadlines would pass unnoticed, so it goes on whatever happens.
                _LOG.exception("a tick of the server failed; the next one tries again")

    def _end_overdue(self) -> None:
        """End the connections of those who stopped in the middle of a part."""
        uploads, service = self._uploads, self._service
        if uploads is None or service is None:
            return
        for upload in uploads.overdue():
            if end_connection(upload.peer, service.port):
                _LOG.warning(
                    "worker %r, step %d: %s was silent for too long in the middle of a part; its "
                    "connection was ended",
                    upload.worker,
                    upload.step,
                    upload.peer,
                )

    def _listening(self, uploads: Uploads) -> Service:
        dispatcher = Dispatcher(self._aggregator, self._stopping, self._limits)
        try:
            return Service(dispatcher, self._listen, self._security, uploads)
        except pa.ArrowException as error:  # somebody was faster
            raise AddressInUse(f"cannot listen on {self._listen}: {error}") from error
