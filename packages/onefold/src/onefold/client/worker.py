"""A worker's end of the transport."""

from __future__ import annotations

import itertools
import os
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from onefold.aggregate import Aggregate
from onefold.checks import check_seconds, check_sending, check_step, check_worker, show
from onefold.client.calls import Calls
from onefold.client.channel import FlightChannel
from onefold.client.credentials import Credentials
from onefold.client.receiving import fetch
from onefold.client.session import Session, check_counts
from onefold.client.spool import Spool
from onefold.errors import GaveUp, InvalidInput, TransportError
from onefold.ledger import Behind, JoinAnswer, Joined
from onefold.receipt import Receipt, Status
from onefold.status import RunStatus
from onefold.update import Tensor, Update
from onefold.wire import Done, GetStatus, Join, Leave

__all__ = ["Client", "connect"]


def connect(
    address: str | None = None,
    worker: str | None = None,
    *,
    timeout_seconds: float = 600.0,
    spool_directory: Path | str | None = None,
    credentials: Credentials | None = None,
) -> Client:
    """Join the run on a server, as a new life of a worker.

    Args:
        address: ``grpc://HOST:PORT``, or ``grpc+tls://HOST:PORT`` with TLS; default: the
            environment variable ``ONEFOLD_ADDRESS``.
        worker: The worker's name; default: the environment variable ``ONEFOLD_WORKER``.
        timeout_seconds: How long to go on without an answer before giving up, and how long
            :meth:`Client.pull` waits unless it is told otherwise.
        spool_directory: Where to make the directory that keeps updates until their steps have
            closed; default: the environment variable ``ONEFOLD_SPOOL_DIRECTORY``, else the
            system's temporary place. What clients that were killed left there is removed.
        credentials: What is shown to the server, and by what it is known; what is not given there
            comes from the environment variables ``ONEFOLD_TLS_CA``, ``ONEFOLD_TLS_CERT``,
            ``ONEFOLD_TLS_KEY`` and ``ONEFOLD_TOKEN``.

    Raises:
        InvalidInput: Address or worker is not given, or is none, or a time is no time.
        StoreError: No directory for updates can be made.
        UnknownWorker: The roster has no place for this name.
        Unauthenticated: The server does not know the token, or is not who it should be.
        Forbidden: The token is another worker's, or an observer's.
        GaveUp: The server did not answer.
    """
    address = address or os.environ.get("ONEFOLD_ADDRESS")
    worker = worker or os.environ.get("ONEFOLD_WORKER")
    spool_directory = spool_directory or os.environ.get("ONEFOLD_SPOOL_DIRECTORY") or None
    if not address:
        raise InvalidInput("no address: give connect() grpc://HOST:PORT, or set ONEFOLD_ADDRESS")
    if not worker:
        raise InvalidInput("no worker: give connect() the worker's name, or set ONEFOLD_WORKER")
    check_worker(worker)
    if not isinstance(credentials, Credentials | None):
        raise InvalidInput(f"credentials are a Credentials, not {show(credentials)}")
    channel = FlightChannel(address, (credentials or Credentials()).or_from(os.environ))
    client = Client(worker, Calls(channel, timeout_seconds), spool_directory)
    try:
        return client.open()
    except BaseException:
        client.close()
        raise


class Client:
    """One life of a worker in a run; made by :func:`connect`.

    One thread trains (``push``, ``reduce``) and others may look on (``pull``, ``status``) at the
    same time; pushes by several threads for one step have no order that could be relied on.

    Once a newer life of the worker has joined, this one is over: each call raises
    :class:`~onefold.errors.Fenced`.

    Args:
        worker: The worker's name.
        calls: The way to the server; closed by :meth:`close`.
        spool_directory: Where to keep updates until their steps have closed.
        life: The id of this life; default: a new one, at random.
    """

    def __init__(
        self,
        worker: str,
        calls: Calls,
        spool_directory: Path | str | None = None,
        *,
        life: str | None = None,
    ) -> None:
        self._worker = worker
        self._life = life or uuid.uuid4().hex
        self._calls = calls
        self._spool = Spool(spool_directory)
        self._session: Session | None = None
        self._opening = threading.Lock()

    def open(self) -> Self:
        """Join; whoever has joined already has nothing to do."""
        with self._opening:
            if self._session is None:
                joined = self._join()
                self._spool.open()
                self._session = Session(self._calls, joined, self._spool)
        return self

    def close(self) -> None:
        """Give up the connection and what is kept. The worker stays a member; see :meth:`leave`."""
        self._calls.close()
        self._spool.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def joined(self) -> Joined:
        """The answer to the join: run, incarnation, roster, index, size, first open step."""
        return self._life_joined().joined

    def push(
        self, step: int, update: Mapping[str, Tensor] | Tensor | Update, *, weight: int = 1
    ) -> Receipt:
        """Contribute an update to a step. The arrays are the caller's again when this returns.

        Pushing the same content again is a retransmission; other content replaces it.

        Args:
            step: The step.
            update: Names to arrays or :class:`Sparse`, or one bare array or Sparse.
            weight: From 0 to 2**53.

        Returns:
            What became of it, with the reason. Ask ``stands`` whether it counts so far.

        Raises:
            InvalidUpdate: It cannot be used; nothing was sent.
            Fenced: A newer life of this worker has joined.
            Refused: The server keeps another run than the one that this client has joined.
            StoreError: It cannot be spooled.
            GaveUp: The server did not answer; push again to go on.
        """
        step, _, _ = check_sending(step, self._worker)
        content = Update.sent(update, weight, worker=self._worker, step=step)
        return self._alive().push(step, content)

    def pull(self, step: int, timeout_seconds: float | None = None) -> Aggregate:
        """The aggregate of a step, as soon as it has closed.

        The server is asked at least once, and again while it cannot be reached.

        Args:
            step: The step; whether this client has pushed to it does not matter.
            timeout_seconds: How long to wait for it to close; default: the client's.

        Raises:
            InvalidInput: This is no step, or no number of seconds.
            NotYet: It has not closed within the time; the message says so if this client's own
                update to it was refused.
            NoUpdate: The step is over and never had a contribution.
            Expired: Its tensors were pruned.
            SumOverflow: It is complete, but an integer sum does not fit its type.
            Refused: The server asked for this worker's update again and then refused it.
            GaveUp: The server did not answer.
        """
        step = check_step(step)
        seconds = self._calls.timeout_seconds
        if timeout_seconds is not None:
            seconds = check_seconds("timeout_seconds", timeout_seconds)
        return fetch(self._calls, self.joined, self._alive().wait(step, seconds))

    def reduce(
        self, step: int, update: Mapping[str, Tensor] | Tensor | Update, weight: int = 1
    ) -> Aggregate:
        """Push, then pull.

        A step that closed without this worker gives its aggregate too, which says so. If the step
        is too far ahead, earlier ones are waited for.

        Raises:
            Refused: The update does not count; the receipt says why.
            OnefoldError: As for :meth:`push` and :meth:`pull`.
        """
        end = self._calls.now() + self._calls.timeout_seconds
        receipt = self.push(step, update, weight=weight)
        rounds = 0
        while receipt.status is Status.TOO_FAR and self._calls.now() < end:
            self._alive().wait_for_window(end)
            rounds += 1
            self._calls.pause(rounds)
            receipt = self.push(step, update, weight=weight)
        check_counts(receipt)
        return self.pull(step)

    def leave(self) -> None:
        """Leave the run: steps that open from now on do not wait for this worker."""
        joined = self._alive().joined
        self._calls.act(Leave(joined.run, joined.worker, joined.incarnation), Done)

    def status(self) -> RunStatus:
        """How the run stands."""
        self._alive()
        return self._calls.act(GetStatus(), RunStatus)

    def _join(self) -> Joined:
        """Join after the newest life of the worker, whichever that is by now."""
        end, newest = self._calls.now() + self._calls.timeout_seconds, 0
        for rounds in itertools.count(1):
            answer = self._calls.act(Join(self._worker, self._life, newest), JoinAnswer)
            if isinstance(answer, Joined):
                return answer
            assert isinstance(answer, Behind)
            newest = answer.incarnation
            if self._calls.now() >= end:
                break
            if rounds > 1:  # the first join asks which is the newest; others join all the time
                self._calls.pause(rounds)
        raise GaveUp(
            f"worker {self._worker!r} could not join within {self._calls.timeout_seconds} s: each "
            f"time another life of it had joined, the last as incarnation {newest}; see that only "
            "one process has this name"
        )

    def _life_joined(self) -> Session:
        if self._session is None:
            raise TransportError("this client has not joined: use connect(), or `with`")
        return self._session

    def _alive(self) -> Session:
        session = self._life_joined()
        session.check_alive()
        return session
