"""The ledger and its store under one lock: decided, written down, and only then true.

A step that is being closed is *claimed*: who claimed it sums without the lock, then concludes it or
gives it up. Pushes for a claimed step wait, and are answered by what it closed with.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from weakref import WeakSet

from onefold.errors import (
    Damaged,
    NoUpdate,
    OnefoldError,
    ProtocolError,
    StoreError,
    SumOverflow,
)
from onefold.ledger import (
    Behind,
    Change,
    Closing,
    Contribution,
    Joined,
    Ledger,
    OpenStep,
    Push,
    StepClosed,
    StepOpened,
)
from onefold.parts import Manifest, Payload
from onefold.policy import Policy
from onefold.receipt import RECORDED, Receipt
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
        self.renew_lock()
        self._process = 0
        self._is_open = False
        self._shut = False
        self._known: Ledger | None = None
        self._claimed: dict[int, int] = {}
        self._failures: dict[int, OnefoldError] = {}
        self._interrupts = 0
        self._receipts: Counter[str] = Counter()
        _REGISTERS.add(self)

    # Opening and shutting.

    def ensure_open(self) -> None:
        """Open the store unless that has been done.

        Raises:
            StoreError: It has been shut down since.
        """
        if self._is_open and os.getpid() == self._process:
            return  # each call asks this, and need not wait for the lock to hear yes
        with self._lock:
            _ = self._ledger

    def open(self) -> None:
        """Open the store, once, and rebuild the ledger from it."""
        with self._lock:
            self._check_process()
            if self._is_open:
                return
            try:
                self._store.open()
                kept = self._store.fact("policy", self._policy.fixed)
                self._policy.check_fixed(kept, str(self._store))
                self._known = self._recovered()
                self._process = os.getpid()
                self._is_open = True
            except BaseException:
                self._is_open = False
                self._store.close()
                raise
            self._shut = False

    def shutdown(self) -> None:
        """End all waits and close the store, once no step is being closed."""
        if self._is_forked:
            return  # what it has of the store is its parent's
        self.interrupt()
        with self._lock:
            self._changed.wait_for(lambda: not self._claimed_by_others())
            self._shut = True
            if self._is_open:
                self._store.close()
            self._is_open = False
            self._known = None
            self._claimed = {}

    def interrupt(self) -> None:
        """End all waits, as if their time were up."""
        with self._lock:
            self._interrupts += 1
            self._changed.notify_all()

    def renew_lock(self) -> None:
        """Take another lock than the one that a thread may have held at the moment of a fork."""
        # `with` takes the lock itself: a Ctrl-C may come within a condition's own __enter__, which
        # is Python, and leave its lock held.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    @property
    def run(self) -> str:
        """The id of the run."""
        self.ensure_open()
        return self._store.run

    # Members and contributions.

    def join(self, worker: str, life: str, after: int | None = None) -> Joined | Behind:
        """Let a life begin; it has reached the disk when this returns."""
        with self._lock:
            behind = None if after is None else self._ledger.behind(worker, life, after)
            if behind is not None:
                return behind
            joined, changes = self._ledger.join(worker, life)
            self._make_true(changes, durable=True)
        return joined

    def leave(self, worker: str, incarnation: int | None) -> None:
        """Let a worker leave."""
        with self._lock:
            self._make_true(self._ledger.leave(worker, incarnation), durable=True)

    def record(self, push: Push) -> tuple[Receipt, Contribution | None]:
        """Decide about a push; the receipt, and the contribution whose place it took."""
        with self._lock:
            self._wait_until_free(push.step)
            standing = self._ledger.steps.standing(push.step, push.worker)
            now = self._clock()
            decision = self._ledger.push(push, now, self.closed(push.step))
            if decision.changes:
                durable = self._has_to_last(decision.changes)
                self._write(
                    partial(self._store.commit, decision.changes, durable=durable),
                    decision.changes,
                )
                self._tell_of_push(decision.changes, now)
            self._receipts[decision.receipt.status] += 1
            if decision.receipt.status in RECORDED:
                self._failures.pop(push.step, None)
            return decision.receipt, standing

    def judge(self, push: Push) -> Receipt:
        """What becomes of a push whose numbers are gone; if it would be recorded, nothing yet."""
        with self._lock:
            self._wait_until_free(push.step)
            receipt = self._ledger.push(push, self._clock(), self.closed(push.step)).receipt
            if receipt.status not in RECORDED:
                self._receipts[receipt.status] += 1
            return receipt

    def refuses(self, step: int, worker: str, *, incarnation: int | None, run: str | None) -> bool:
        """Whether an update would be refused, as it stands now, whatever is in it."""
        with self._lock:
            return self._ledger.refuses(
                step, worker, incarnation=incarnation, run=run, closed=self.closed(step)
            )

    def standing(self, step: int, worker: str) -> Contribution | None:
        """A worker's contribution so far to an open step."""
        with self._lock:
            return self._ledger.steps.standing(step, worker)

    def stands(self, step: int, worker: str, incarnation: int | None, attempt: int | None) -> bool:
        """Whether an open step has this sending of a worker, or a later one."""
        with self._lock:
            return self._ledger.stands(step, worker, incarnation, attempt)

    def named_parts(self) -> set[str]:
        """The parts that contributions to open steps consist of."""
        with self._lock:
            standing = [contribution for _, contribution in self._ledger.steps.all_standing()]
        return {part for contribution in standing for part in _manifest(contribution).parts}

    def payload(self, contribution: Contribution) -> Payload:
        """The numbers of a contribution."""
        return self._store.payload(_manifest(contribution))

    def unrecord(self, step: int, worker: str) -> None:
        """Take out a contribution whose numbers are not whole; it is to be sent again."""
        with self._lock:
            self._make_true(self._ledger.unrecord(step, worker), durable=True)

    # Closing.

    def claim_due(self, besides: set[int]) -> Closing | None:
        """Claim a step that is complete, or late with enough contributions; ``besides`` some."""
        with self._lock:
            now = self._clock()
            due = set(self._ledger.due(now)) - self._claimed_by_others().keys()
            due -= self._stuck() | besides
            return self._claim(min(due), now) if due else None

    def claim(self, step: int) -> Closing | None:
        """Claim a step whoever is missing; None if it is closed.

        Raises:
            NoUpdate: Nothing stands for it.
        """
        with self._lock:
            self._wait_until_free(step)
            return None if self.closed(step) else self._claim(step, self._clock())

    def conclude(self, closing: Closing, manifest: Manifest | None) -> None:
        """Make a claimed step closed and its aggregate visible."""
        with self._lock:
            self._write(partial(self._store.close_step, closing, manifest), closing.changes)
            self._failures.pop(closing.closed.step, None)

    def fail(self, step: int, why: OnefoldError) -> None:
        """Remember why a claimed step could not be closed, for those who wait for it."""
        with self._lock:
            self._failures[step] = _anew(why)

    def release(self) -> None:
        """End what this thread has claimed, whatever came of it."""
        with self._lock:
            if threading.get_ident() in self._claimed.values():
                self._claimed = self._claimed_by_others()
                self._changed.notify_all()

    def closed(self, step: int) -> StepClosed | None:
        """What a step closed with; None if it has not."""
        with self._lock:
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
            with self._lock:
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
        with self._lock:
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
        self._check_process()
        if not self._is_open:
            if self._shut:
                raise StoreError("the aggregator has been shut down; open() it to go on")
            self.open()
        if self._known is None:
            self._known = self._kept()
        return self._known

    @property
    def _is_forked(self) -> bool:
        return self._is_open and os.getpid() != self._process

    def _check_process(self) -> None:
        if self._is_forked:
            raise StoreError(
                f"process {self._process} has this aggregator open; a fork of it, as process "
                f"{os.getpid()} is, cannot use it too: push over the network (onefold.connect) to "
                "a server of that process"
            )

    def _has_to_last(self, changes: tuple[Change, ...]) -> bool:
        """Whether a push has to reach the disk before it is answered.

        Until a step has closed, the open ones alone say where the run began. If a power cut took
        the opening of the first and left that of a later one, who joins would be told to begin
        there, and the first, once it had been sent again, would wait for them for ever.
        """
        begins = self._ledger.steps.highest_closed is None
        opens = any(isinstance(change, StepOpened) for change in changes)
        return self._policy.sync_each_push or (begins and opens)

    def _make_true(self, changes: tuple[Change, ...], *, durable: bool) -> None:
        if changes:
            self._write(partial(self._store.commit, changes, durable=durable), changes)
            self._changed.notify_all()

    def _tell_of_push(self, changes: tuple[Change, ...], now: float) -> None:
        """Wake those who wait if they have something to do: a step is due, or has a new deadline.

        One of many pushes changes nothing for them. To wake them all each time would make every
        step of W workers cost W * W looks at the ledger, each under the one lock.
        """
        opens = any(isinstance(change, StepOpened) for change in changes)
        if opens or self._ledger.due(now):
            self._changed.notify_all()

    def _write(self, write: Callable[[], None], changes: tuple[Change, ...]) -> None:
        """Write changes down and remember them.

        The ledger is put back only when both are done: whatever comes in between, an error of the
        disk or a Ctrl-C, has it rebuilt from what the store kept before it is asked again.
        """
        ledger, self._known = self._ledger, None
        write()
        ledger.apply(changes)
        self._known = ledger

    def _kept(self) -> Ledger:
        return Ledger(self._store.run, self._policy, self._store.changes())

    def _recovered(self) -> Ledger:
        """The ledger as the store kept it, without contributions whose numbers are not whole."""
        ledger = self._kept()
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
        self._failures.pop(step, None)
        self._claimed[step] = threading.get_ident()
        return closing

    def _claimed_by_others(self) -> dict[int, int]:
        """The claims of other threads.

        One of its own that a thread comes upon is left over from a call that a Ctrl-C ended, since
        no thread closes two steps at a time.
        """
        own = threading.get_ident()
        return {step: owner for step, owner in self._claimed.items() if owner != own}

    def _wait_until_free(self, step: int) -> None:
        self._changed.wait_for(lambda: step not in self._claimed_by_others())

    def _stuck(self) -> set[int]:
        """Steps that would fail to close again in the same way until another update comes."""
        return {step for step, why in self._failures.items() if isinstance(why, SumOverflow)}

    def _check_can_close(self, step: int) -> None:
        if step in self._failures:
            raise _anew(self._failures[step])
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
            problem="; ".join(self._problems(step, open_step)) or None,
        )

    def _problems(self, step: int, open_step: OpenStep) -> Iterator[str]:
        if step in self._failures:
            yield str(self._failures[step])
        for worker, reason in sorted(open_step.refusals.items()):
            if worker not in open_step.standing:
                yield f"worker {worker!r}: {reason}"


def _manifest(contribution: Contribution) -> Manifest:
    return Manifest.from_json(json.loads(contribution.payload))


def _anew(error: OnefoldError) -> OnefoldError:
    """A copy without a traceback.

    That grows each time that an error is raised again, and keeps what was summed in memory.
    """
    copy: OnefoldError = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy


_REGISTERS: WeakSet[Register] = WeakSet()


def _renew_locks() -> None:
    """In a fork: let nobody wait for a thread that stayed behind in the parent."""
    for register in _REGISTERS:
        register.renew_lock()


os.register_at_fork(after_in_child=_renew_locks)
