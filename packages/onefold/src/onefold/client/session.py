"""What a client knows about the steps that it has pushed to, and how it sees them through."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from onefold.client.calls import CALL_SECONDS, Calls
from onefold.client.sending import send as send_update
from onefold.client.spool import Spool, Spooled
from onefold.errors import (
    Expired,
    Fenced,
    NotYet,
    NoUpdate,
    Refused,
    StoreError,
    SumOverflow,
)
from onefold.ledger import Joined
from onefold.receipt import STANDS, Receipt, Status
from onefold.status import RunStatus
from onefold.update import Update
from onefold.wire import Closed, GetStatus, Pull, PullAnswer, Resend

__all__ = ["Session", "check_counts"]

_POLL_SECONDS = 2.0
_SPOOLED_STEPS_MAX = 4
_REFUSALS_KEPT_MAX = 64

_OVER = frozenset({Status.CLOSED, Status.SUPERSEDED})
"""Statuses of an update that does not count, of a worker that may count all the same."""


class Session:
    """A life that has joined, with its spool.

    Args:
        calls: The way to the server.
        joined: The answer to the join.
        spool: Where updates are kept until their steps have closed; opened by the caller.
    """

    def __init__(self, calls: Calls, joined: Joined, spool: Spool) -> None:
        self._calls = calls
        self.joined = joined
        self._spool = spool
        self._fenced: Receipt | None = None
        self._refused: OrderedDict[int, Receipt] = OrderedDict()

    def check_alive(self) -> None:
        """Raise Fenced once a newer life of the worker is known, TransportError once closed."""
        self._calls.check_open()
        if self._fenced is not None:
            raise Fenced(self._fenced)

    def push(self, step: int, update: Update) -> Receipt:
        """Keep an update and send it, until there is a receipt."""
        self._make_room(step)
        while True:
            with self._told_if_closed():
                spooled = self._spool.keep(step, update)
            receipt = self._send(spooled)
            if receipt is not None:
                self._note(receipt)
                return receipt

    def wait(self, step: int, seconds: float) -> Closed:
        """Wait for a step to close; what the server lacks for it is sent again."""
        end = self._calls.now() + seconds
        failures = 0
        while True:
            left = min(_POLL_SECONDS, self._calls.timeout_seconds / 4, end - self._calls.now())
            answer = self._poll(step, max(0.0, left))
            if isinstance(answer, Closed):
                return answer
            if self._calls.now() >= end:
                raise self._not_yet(step, seconds)
            if isinstance(answer, Resend):
                receipt = self._send_again(step)
                if receipt is not None:
                    check_counts(receipt)
                failures += 1
                self._calls.pause(failures)

    def _note(self, receipt: Receipt) -> None:
        """Remember why a step lacks the update of this worker, for whoever waits for it."""
        self._refused.pop(receipt.step, None)
        if not receipt.stands and receipt.status not in _OVER:
            self._refused[receipt.step] = receipt
            if len(self._refused) > _REFUSALS_KEPT_MAX:
                self._refused.popitem(last=False)

    def _not_yet(self, step: int, seconds: float) -> NotYet:
        refused = self._refused.get(step)
        if refused is None:
            why = "pull again, with timeout_seconds to wait for it"
        else:
            why = (
                f"the update of this worker, {self.joined.worker!r}, was refused: "
                f"{refused.status}: {refused.reason}; push one that can count (reduce() raises "
                "Refused in such a case)"
            )
        return NotYet(f"step {step} has not closed within {seconds:g} s; {why}")

    def _poll(self, step: int, wait_seconds: float) -> PullAnswer:
        """Ask once about a step; once it is over its update is no longer kept."""
        self.check_alive()
        spooled = self._spool.get(step)
        command = Pull(
            run=self.joined.run,
            worker=self.joined.worker,
            incarnation=self.joined.incarnation,
            step=step,
            attempt=spooled.attempt if spooled else None,
            wait_seconds=wait_seconds,
        )
        try:
            answer = self._calls.act(command, PullAnswer, seconds=wait_seconds + CALL_SECONDS)
        except (Expired, NoUpdate):
            self._spool.forget(step)
            raise
        if isinstance(answer, Closed):
            self._spool.forget(step)
        return answer

    def _send(self, spooled: Spooled) -> Receipt | None:
        """Send an update, and keep it while it may be asked for; None if it is kept no longer."""
        with spooled.sending:
            if self._spool.get(spooled.step) is not spooled:
                return None
            with self._told_if_closed():
                receipt = send_update(self._calls, self.joined, spooled)
        if receipt.status not in STANDS:
            self._spool.forget(spooled.step)
        if receipt.status is Status.FENCED:
            self._fenced = receipt
            raise Fenced(receipt)
        if receipt.status is Status.OTHER_RUN:
            raise Refused(receipt)
        return receipt

    @contextmanager
    def _told_if_closed(self) -> Iterator[None]:
        """Where another thread has closed the client, its spool is gone for that reason."""
        try:
            yield
        except StoreError:
            self._calls.check_open()
            raise

    def _send_again(self, step: int) -> Receipt | None:
        spooled = self._spool.get(step)
        return self._send(spooled) if spooled else None

    def _make_room(self, step: int) -> None:
        """Ask about earlier steps that were pushed to but never pulled, before they pile up."""
        for earlier in self._spool.steps()[:-_SPOOLED_STEPS_MAX]:
            with suppress(Expired, NoUpdate, SumOverflow, StoreError):
                if earlier != step and isinstance(self._poll(earlier, 0.0), Resend):
                    self._send_again(earlier)

    def wait_for_window(self, end: float) -> None:
        """Wait for the lowest open step to close."""
        status = self._calls.act(GetStatus(), RunStatus)
        lowest = min((at.step for at in status.open_steps), default=None)
        if lowest is not None:
            with suppress(NotYet, Expired, NoUpdate, SumOverflow, StoreError):
                self.wait(lowest, max(0.0, end - self._calls.now()))


def check_counts(receipt: Receipt) -> None:
    """Refuse to go on as if nothing were amiss with an update that does not count."""
    if not receipt.stands and receipt.status not in _OVER:
        raise Refused(receipt)
