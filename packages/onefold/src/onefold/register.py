"""The ledger and its store under one lock: decided, written down, and only then true.

A step that is being closed is *claimed*: who claimed it sums without the lock, then concludes it or
gives it up. Pushes for a claimed step wait, and are answered by what it closed with.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable

from onefold.errors import (
    Damaged,
    InvalidUpdate,
    NoUpdate,
    OnefoldError,
    ProtocolError,
    StoreError,
    SumOverflow,
)
from onefold.ledger import Change, Closing, Contribution, Joined, Ledger, Push, StepClosed
from onefold.parts import Manifest, Payload
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.status import OpenStepStatus, RunStatus
from onefold.store import Store

__all__ = ["Register"]


class Register:
    """Who is in the run, what has been contributed, and what steps closed with.

    Args:
        store: Where it is kept.
        policy: When steps close and what is refused.
        clock: Gives the time in Unix seconds.
    """

    def __init__(self, store: Store, policy: Policy, clock: Callable[[], float]) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())
        self._open_ledger: Ledger | None = None
        self._shut = False
        self._claimed: set[int] = set()
        self._failures: dict[int, OnefoldError] = {}
        self._interrupts = 0
        self._receipts: Counter[str] = Counter()

    # Opening and shutting.

    def open(self) -> None:
        """Open the store, once, and rebuild the ledger from it."""
        with self._changed:
            if self._open_ledger is not None:
                return
            self._store.open()
            try:
                self._open_ledger = self._recovered()
            except BaseException:
                self._store.close()
                raise
            self._shut = False

    def shutdown(self) -> None:
        """End all waits and close the store, once no step is being closed."""
        self.interrupt()
        with self._changed:
            self._changed.wait_for(lambda: not self._claimed)
            if self._open_ledger is not None:
                self._store.close()
            self._open_ledger = None
            self._shut = True

    def interrupt(self) -> None:
        """End all waits, as if their time were up."""
        with self._changed:
            self._interrupts += 1
            self._changed.notify_all()

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._ledger.run

    # Members and contributions.

    def join(self, worker: str, life: str) -> Joined:
        """Let a life begin; it has reached the disk when this returns."""
        with self._changed:
            joined, changes = self._ledger.join(worker, life)
            self._make_true(changes, durable=True)
        return joined

    def leave(self, worker: str, incarnation: int | None) -> None:
        """Let a worker leave."""
        with self._changed:
            self._make_true(self._ledger.leave(worker, incarnation), durable=True)

    def record(self, push: Push) -> tuple[Receipt, Contribution | None]:
        """Decide about a push; the receipt, and the contribution whose place it took."""
        with self._changed:
            self._changed.wait_for(lambda: push.step not in self._claimed)
            standing = self._ledger.steps.standing(push.step, push.worker)
            decision = self._ledger.push(push, self._clock(), self.closed(push.step))
            self._make_true(decision.changes, durable=self._policy.sync_each_push)
            self._receipts[decision.receipt.status] += 1
            if decision.receipt.status in (Status.ACCEPTED, Status.REPLACED):
                self._failures.pop(push.step, None)
            return decision.receipt, standing

    def judge(self, push: Push) -> Receipt:
        """What would become of a push; nothing changes."""
        with self._changed:
            self._changed.wait_for(lambda: push.step not in self._claimed)
            return self._ledger.push(push, self._clock(), self.closed(push.step)).receipt

    def standing(self, step: int, worker: str) -> Contribution | None:
        """A worker's contribution so far to an open step."""
        with self._changed:
            return self._ledger.steps.standing(step, worker)

    def stands(self, step: int, worker: str, incarnation: int | None, attempt: int | None) -> bool:
        """Whether an open step has this sending of a worker, or a later one."""
        with self._changed:
            return self._ledger.stands(step, worker, incarnation, attempt)

    def payload(self, contribution: Contribution) -> Payload:
        """The numbers of a contribution."""
        return self._store.payload(Manifest.from_json(json.loads(contribution.payload)))

    def unrecord(self, step: int, worker: str) -> None:
        """Take out a contribution whose numbers are not whole; it is to be sent again."""
        with self._changed:
            self._make_true(self._ledger.unrecord(step, worker), durable=True)

    # Closing.

    def claim_due(self, besides: set[int]) -> Closing | None:
        """Claim a step that is complete, or late with enough contributions; ``besides`` some."""
        with self._changed:
            now = self._clock()
            due = set(self._ledger.due(now)) - self._claimed - self._stuck() - besides
            return self._claim(min(due), now) if due else None

    def claim(self, step: int) -> Closing | None:
        """Claim a step whoever is missing; None if it is closed.

        Raises:
            NoUpdate: Nothing stands for it.
        """
        with self._changed:
            self._changed.wait_for(lambda: step not in self._claimed)
            return None if self.closed(step) else self._claim(step, self._clock())

    def conclude(self, closing: Closing, manifest: Manifest | None) -> None:
        """Make a claimed step closed and its aggregate visible."""
        with self._changed:
            self._store.close_step(closing, manifest)
            self._ledger.apply(closing.changes)
            self._failures.pop(closing.closed.step, None)

    def fail(self, step: int, why: OnefoldError) -> None:
        """Remember why a claimed step could not be closed, for those who wait for it."""
        with self._changed:
            self._failures[step] = why

    def release(self, step: int) -> None:
        """End a claim, whatever came of it."""
        with self._changed:
            self._claimed.discard(step)
            self._changed.notify_all()

    def closed(self, step: int) -> StepClosed | None:
        """What a step closed with; None if it has not."""
        if isinstance(step, bool) or not isinstance(step, int):
            raise InvalidUpdate(f"a step is an integer, not {step!r}")
        with self._changed:
            steps = self._ledger.steps
            if step in steps.open or steps.highest_closed is None or step > steps.highest_closed:
                return None
            return self._store.closed_step(step)

    def wait_closed(self, step: int, end: float, tick: Callable[[], None]) -> StepClosed | None:
        """What a step closed with; None if it has not by ``end`` on the monotonic clock.

        ``tick`` closes what is due, and is called without the lock whenever that may be the case.

        Raises:
            NoUpdate: The step is over and never had a contribution.
            OnefoldError: What keeps a complete step from closing.
        """
        interrupts = self._interrupts
        while True:
            tick()
            with self._changed:
                closed = self.closed(step)
                if closed is not None:
                    return closed
                self._check_can_close(step)
                remaining = end - time.monotonic()
                if remaining <= 0 or self._interrupts != interrupts:
                    return None
                self._changed.wait(min(remaining, self._seconds_to_deadline()))

    def status(self, received_bytes: int) -> RunStatus:
        """How the run stands."""
        with self._changed:
            ledger = self._ledger
            return RunStatus(
                run=ledger.run,
                operation=self._policy.operation,
                highest_closed=ledger.steps.highest_closed,
                open_steps=tuple(self._step_status(step) for step in sorted(ledger.steps.open)),
                roster=ledger.members.next_roster(),
                receipts=dict(self._receipts),
                received_bytes=received_bytes,
                staged_bytes=self._store.staged_bytes(),
            )

    # How it is done.

    @property
    def _ledger(self) -> Ledger:
        if self._open_ledger is None:
            if self._shut:
                raise StoreError("the aggregator has been shut down; open() it to go on")
            self.open()
        assert self._open_ledger is not None
        return self._open_ledger

    def _make_true(self, changes: tuple[Change, ...], *, durable: bool) -> None:
        if changes:
            self._store.commit(changes, durable=durable)
            self._ledger.apply(changes)
            self._changed.notify_all()

    def _recovered(self) -> Ledger:
        """The ledger as the store kept it, without contributions whose numbers are not whole."""
        ledger = Ledger(self._store.run, self._policy, self._store.changes())
        for step, contribution in list(ledger.steps.all_standing()):
            try:
                self.payload(contribution).verify()
            except (Damaged, ProtocolError):
                changes = ledger.unrecord(step, contribution.worker)
                self._store.commit(changes, durable=True)
                ledger.apply(changes)
        return ledger

    def _claim(self, step: int, now: float) -> Closing:
        closing = self._ledger.close(step, now)
        self._claimed.add(step)
        return closing

    def _stuck(self) -> set[int]:
        """Steps that would fail to close again in the same way until another update comes."""
        return {step for step, why in self._failures.items() if isinstance(why, SumOverflow)}

    def _check_can_close(self, step: int) -> None:
        if step in self._failures:
            raise self._failures[step]
        over = self._ledger.steps.below(step)
        if over is not None:
            raise NoUpdate(f"step {step} has no contribution, hence no aggregate: {over}")

    def _seconds_to_deadline(self) -> float:
        now = self._clock()
        deadlines = (at.opened.deadline_at for at in self._ledger.steps.open.values())
        ahead = [at - now for at in deadlines if at is not None and at > now]
        return max(min(ahead, default=threading.TIMEOUT_MAX), 0.001)

    def _step_status(self, step: int) -> OpenStepStatus:
        open_step = self._ledger.steps.open[step]
        roster = self._ledger.roster(step)
        standing = open_step.standing
        return OpenStepStatus(
            step=step,
            contributed=tuple(sorted(standing)),
            missing=None if roster is None else tuple(w for w in roster if w not in standing),
            vacant=self._ledger.members.vacant(),
            deadline_at=open_step.opened.deadline_at,
            problem=str(self._failures[step]) if step in self._failures else None,
        )
