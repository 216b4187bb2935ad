"""The ledger, a store and the exact sums together: push, pull and close in one process.

Several threads may use an :class:`Aggregator` at once; the server does. Deciding and writing down
happen under one lock; receiving numbers and summing them do not. While a step is being closed,
pushes for it wait, and are answered by what it closed with.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from onefold.aggregate import Aggregate
from onefold.errors import (
    Damaged,
    NotYet,
    NoUpdate,
    OnefoldError,
    ProtocolError,
    StoreError,
    SumOverflow,
)
from onefold.ledger import Closing, Contribution, Joined, Ledger, Push, Receipt, Status, StepClosed
from onefold.parts import Manifest, Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.reduction import Reduction
from onefold.status import OpenStepStatus, RunStatus
from onefold.store import DirectoryStore, MemoryStore, Store
from onefold.update import Tensor, Update, check_sending, check_worker

__all__ = ["Aggregator", "ClosedAggregate"]


@dataclass(frozen=True, slots=True)
class ClosedAggregate:
    """A closed step and where its numbers are; ``manifest`` is None for a skipped step."""

    closed: StepClosed
    manifest: Manifest | None


class _SendAgain(Damaged):
    """A contribution was not whole any more and has been unrecorded."""


class Aggregator:
    """Sums what workers push, each update once, and gives the aggregates out.

    Args:
        directory: Where to keep everything, so that it survives a crash; None keeps it in memory.
        policy: When steps close and what is computed; default: sums, closed by :meth:`close`.
        clock: Gives the time in Unix seconds, for deadlines.

    It opens by ``with``, by :meth:`open`, or when it is first used.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        policy: Policy | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.policy = policy or Policy()
        self._clock = clock
        self._store: Store = MemoryStore() if directory is None else DirectoryStore(directory)
        self._changed = threading.Condition(threading.RLock())
        self._open_ledger: Ledger | None = None
        self._shut = False
        self._closing: set[int] = set()
        self._failures: dict[int, OnefoldError] = {}
        self._interrupts = 0
        self._receipts: Counter[str] = Counter()
        self._received_bytes = 0

    # Opening and shutting.

    def open(self) -> Self:
        """Acquire the store; a directory goes on where it was left.

        Raises:
            StoreLocked: Another process, or another aggregator of this one, has it open.
            StoreError: It cannot be used.
        """
        with self._changed:
            if self._open_ledger is None:
                self._store.open()
                try:
                    self._open_ledger = self._recovered_ledger()
                except BaseException:
                    self._store.close()
                    raise
                self._shut = False
        return self

    def shutdown(self) -> None:
        """Release the store, once no step is being closed; waits are ended."""
        self.interrupt()
        with self._changed:
            self._changed.wait_for(lambda: not self._closing)
            if self._open_ledger is not None:
                self._store.close()
            self._open_ledger = None
            self._shut = True

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    def interrupt(self) -> None:
        """End every :meth:`wait` and :meth:`pull` that is going on, as if its time were up."""
        with self._changed:
            self._interrupts += 1
            self._changed.notify_all()

    # Members.

    @property
    def run(self) -> str:
        """The id of the run, made once for a directory."""
        return self._ledger.run

    def join(self, worker: str, life: str) -> Joined:
        """Let a worker's life begin; the same life id always gets the same incarnation.

        Args:
            worker: The worker's name.
            life: An id that the process made once, at random.

        Raises:
            UnknownWorker: The roster has no place for this name.
        """
        check_worker(worker)
        with self._changed:
            joined, changes = self._ledger.join(worker, life)
            self._store.commit(changes, durable=True)
            self._ledger.apply(changes)
            self._changed.notify_all()
        return joined

    def leave(self, worker: str, incarnation: int | None = None) -> None:
        """Let a worker leave: steps not yet open will not wait for it."""
        with self._changed:
            changes = self._ledger.leave(worker, incarnation)
            self._store.commit(changes, durable=True)
            self._ledger.apply(changes)

    # Contributions.

    def push(
        self,
        step: int,
        worker: str,
        update: Mapping[str, Tensor] | Tensor | Update,
        *,
        weight: int = 1,
        attempt: int | None = None,
        incarnation: int | None = None,
    ) -> Receipt:
        """Contribute an update to a step. The numbers are copied before this returns.

        Args:
            step: The step.
            worker: Who contributes.
            update: Names to arrays or :class:`Sparse`, or one bare array or Sparse (named ``""``).
            weight: From 0 to 2**53; an update of weight 0 is not summed.
            attempt: The ordinal of this sending; a retransmission keeps it, a recomputed update
                takes the next. Without attempts the last to arrive counts.
            incarnation: The ordinal of the worker's life, with ``attempt`` only.

        Returns:
            What became of it, with the reason.

        Raises:
            InvalidUpdate: The update, or what is said with it, cannot be used.
        """
        self.open()
        update = Update.of(update, weight)
        check_sending(step, worker, attempt, incarnation)
        parts = [self.stage(step, schema, batches) for schema, batches in encode(update)]
        manifest = manifest_of(update, parts)
        push = _push(step, worker, manifest, attempt=attempt, incarnation=incarnation)
        return self._record(push, manifest, update.first_nonfinite)

    def stage(self, step: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> str:
        """Keep a part of an update as it streams in, and return its name, for :meth:`commit`."""
        self.open()
        durable = self.policy.sync_each_push
        return self._store.stage(step, (schema, self._counted(batches)), durable=durable)

    def discard(self, parts: Iterable[str]) -> None:
        """Forget parts that will not be committed."""
        self._store.discard(parts)

    def commit(
        self,
        step: int,
        worker: str,
        manifest: Manifest,
        *,
        attempt: int | None = None,
        incarnation: int | None = None,
        run: str | None = None,
    ) -> Receipt:
        """Contribute an update whose parts have been staged; the step closes if it is complete.

        Args:
            step: The step.
            worker: Who contributes.
            manifest: The update, its parts known by the names that :meth:`stage` returned.
            attempt: As for :meth:`push`.
            incarnation: As for :meth:`push`.
            run: The run that the sender means; None for whichever this is.

        Raises:
            Damaged: A part is not there; stage all of them again.
            ProtocolError: The parts do not make up the manifest, or do not have its digest.
            InvalidUpdate: The step, worker, attempt or incarnation cannot be used.
        """
        self.open()
        check_sending(step, worker, attempt, incarnation)
        payload = self._store.payload(manifest)
        digest = payload.digest()
        if digest != manifest.digest:
            self._store.discard(manifest.parts)
            raise ProtocolError(
                f"worker {worker!r}, step {step}: the manifest states digest {manifest.digest}, "
                f"the parts have {digest}; send the update again"
            )
        push = _push(step, worker, manifest, attempt=attempt, incarnation=incarnation)
        return self._record(replace(push, run=run), manifest, payload.first_nonfinite)

    def stands(self, step: int, worker: str, incarnation: int | None, attempt: int | None) -> bool:
        """Whether an open step has this sending of a worker, or a later one."""
        with self._changed:
            return self._ledger.stands(step, worker, incarnation, attempt)

    # Aggregates.

    def pull(self, step: int, timeout_seconds: float = 0.0) -> Aggregate:
        """The aggregate of a step, as soon as it has closed.

        Args:
            step: The step.
            timeout_seconds: How long to wait for it to close.

        Raises:
            NotYet: It has not closed within the time.
            NoUpdate: The step is over and never had a contribution.
            Expired: Its tensors were pruned.
            SumOverflow: It is complete, but an integer sum does not fit its type.
            StoreError: It is complete, but its aggregate cannot be written or read.
        """
        closed = self.wait(step, timeout_seconds)
        if closed is None:
            raise NotYet(
                f"step {step} has not closed within {timeout_seconds} s; "
                "pull again, with timeout_seconds to wait for it"
            )
        if closed.manifest is None:
            return Aggregate.of(closed.closed, {})
        parts = [self._store.aggregate_part(step, part)[1] for part in closed.manifest.parts]
        return Aggregate.of(closed.closed, Payload(closed.manifest, parts).update().tensors)

    def wait(self, step: int, timeout_seconds: float) -> ClosedAggregate | None:
        """What a step closed with, as soon as it has; None if it has not within the time."""
        self.open()
        end = time.monotonic() + timeout_seconds
        interrupts = self._interrupts
        while True:
            self.tick()
            with self._changed:
                closed = self._closed(step)
                if closed is not None:
                    return ClosedAggregate(closed, self._store.aggregate_manifest(step))
                self._check_can_close(step)
                remaining = end - time.monotonic()
                if remaining <= 0 or self._interrupts != interrupts:
                    return None
                self._changed.wait(min(remaining, self._seconds_to_deadline()))

    def read_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of an aggregate, as stored."""
        return self._store.aggregate_part(step, part)

    def close(self, step: int) -> Aggregate:
        """Close a step with what is there, whoever is missing; closed already, it stays as it is.

        Raises:
            NoUpdate: Nothing was contributed to it; nothing changes.
            SumOverflow, StoreError: As for :meth:`pull`; the step stays open.
        """
        self.open()
        self.tick()
        with self._changed:
            self._await_closing(step)
            closing = None
            if self._closed(step) is None:
                closing = self._ledger.close(step, self._clock())
                self._closing.add(step)
        if closing is not None:
            self._finish(closing)
        return self.pull(step)

    def tick(self) -> None:
        """Close every step that is complete, or past its deadline with enough contributions.

        Pushes and waits do this too; a server calls it so that deadlines need no traffic.
        """
        self.open()
        tried: set[int] = set()
        while True:
            with self._changed:
                now = self._clock()
                due = set(self._ledger.due(now)) - self._closing - tried - self._stuck()
                if not due:
                    return
                step = min(due)
                closing = self._ledger.close(step, now)
                self._closing.add(step)
            tried.add(step)
            self._finish(closing)

    def status(self) -> RunStatus:
        """How the run stands."""
        self.open()
        with self._changed:
            ledger = self._ledger
            return RunStatus(
                run=ledger.run,
                operation=self.policy.operation,
                highest_closed=ledger.steps.highest_closed,
                open_steps=tuple(self._step_status(step) for step in sorted(ledger.steps.open)),
                roster=ledger.members.next_roster(),
                receipts=dict(self._receipts),
                received_bytes=self._received_bytes,
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

    def _recovered_ledger(self) -> Ledger:
        """The ledger as the store kept it, without contributions whose numbers are not whole."""
        ledger = Ledger(self._store.run, self.policy, self._store.changes())
        for step, contribution in list(ledger.steps.all_standing()):
            try:
                self._payload(contribution).verify()
            except (Damaged, ProtocolError):
                changes = ledger.unrecord(step, contribution.worker)
                self._store.commit(changes, durable=True)
                ledger.apply(changes)
        return ledger

    def _payload(self, contribution: Contribution) -> Payload:
        return self._store.payload(Manifest.from_json(json.loads(contribution.payload)))

    def _counted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with self._changed:
                self._received_bytes += batch.nbytes
            yield batch

    def _record(
        self, push: Push, manifest: Manifest, first_nonfinite: Callable[[], str | None]
    ) -> Receipt:
        """Let the ledger decide about staged parts, and drop those that then belong to nobody."""
        if self.policy.on_nonfinite != "propagate" and push.weight > 0:
            push = replace(push, nonfinite=first_nonfinite())
        self.tick()
        with self._changed:
            self._await_closing(push.step)
            standing = self._ledger.steps.standing(push.step, push.worker)
            decision = self._ledger.push(push, self._clock(), self._closed(push.step))
            if decision.changes:
                self._store.commit(decision.changes, durable=self.policy.sync_each_push)
                self._ledger.apply(decision.changes)
            receipt = decision.receipt
            self._receipts[receipt.status] += 1
            if receipt.status in (Status.ACCEPTED, Status.REPLACED):
                self._failures.pop(push.step, None)
                self._discard_payload(standing)
            else:
                self._store.discard(manifest.parts)
        self.tick()
        return receipt

    def _discard_payload(self, contribution: Contribution | None) -> None:
        if contribution is not None:
            self._store.discard(Manifest.from_json(json.loads(contribution.payload)).parts)

    def _closed(self, step: int) -> StepClosed | None:
        steps = self._ledger.steps
        if step in steps.open or steps.highest_closed is None or step > steps.highest_closed:
            return None
        return self._store.closed_step(step)

    def _await_closing(self, step: int) -> None:
        self._changed.wait_for(lambda: step not in self._closing)

    def _check_can_close(self, step: int) -> None:
        """Raise what keeps a step from closing, if anything but time does."""
        if step in self._failures:
            raise self._failures[step]
        over = self._ledger.steps.below(step)
        if over is not None:
            raise NoUpdate(f"step {step} has no contribution, hence no aggregate: {over}")

    def _seconds_to_deadline(self) -> float:
        now = self._clock()
        deadlines = (at.opened.deadline_at for at in self._ledger.steps.open.values())
        ahead = [
            deadline - now for deadline in deadlines if deadline is not None and deadline > now
        ]
        return max(min(ahead, default=threading.TIMEOUT_MAX), 0.001)

    def _stuck(self) -> set[int]:
        """Steps that would fail to close again in the same way until another update comes."""
        return {step for step, why in self._failures.items() if isinstance(why, SumOverflow)}

    def _finish(self, closing: Closing) -> None:
        """Sum, make the aggregate durable, then visible. What fails leaves the step open."""
        step = closing.closed.step
        try:
            manifest = self._reduced(closing)
            with self._changed:
                self._store.close_step(closing, manifest)
                self._ledger.apply(closing.changes)
                self._failures.pop(step, None)
            if self.policy.keep_steps is not None:
                self._store.prune(self.policy.keep_steps)
        except _SendAgain:
            pass  # the step waits on; its worker learns of it in its own wait
        except OnefoldError as error:
            with self._changed:
                self._failures[step] = error
        finally:
            with self._changed:
                self._closing.discard(step)
                self._changed.notify_all()

    def _reduced(self, closing: Closing) -> Manifest | None:
        if not closing.selected:
            return None
        step = closing.closed.step
        reduction = Reduction(
            [self._whole_payload(step, contribution) for contribution in closing.selected],
            [contribution.weight for contribution in closing.selected],
            self.policy.operation,
        )
        written = self._store.write_aggregate(step, reduction.parts())
        tensors = reduction.tensors()
        manifest = Manifest(tensors, weight=1, digest="", parts=tuple(name for name, _ in written))
        digest = Payload(manifest, [batches for _, batches in written]).digest()
        return replace(manifest, digest=digest)

    def _whole_payload(self, step: int, contribution: Contribution) -> Payload:
        """A contribution's numbers; where they are not whole it is unrecorded, to be sent again."""
        try:
            return self._payload(contribution)
        except (Damaged, ProtocolError) as error:
            with self._changed:
                changes = self._ledger.unrecord(step, contribution.worker)
                self._store.commit(changes, durable=True)
                self._ledger.apply(changes)
            raise _SendAgain(
                f"the update of worker {contribution.worker!r} for step {step} is damaged and has "
                f"to be sent again: {error}"
            ) from error

    def _step_status(self, step: int) -> OpenStepStatus:
        open_step = self._ledger.steps.open[step]
        roster = self._ledger.roster(step)
        waiting = (
            None if roster is None else tuple(w for w in roster if w not in open_step.standing)
        )
        return OpenStepStatus(
            step=step,
            contributed=tuple(sorted(open_step.standing)),
            missing=waiting,
            vacant=self._ledger.members.vacant(),
            deadline_at=open_step.opened.deadline_at,
            problem=str(self._failures[step]) if step in self._failures else None,
        )


def _push(
    step: int, worker: str, manifest: Manifest, *, attempt: int | None, incarnation: int | None
) -> Push:
    return Push(
        step=step,
        worker=worker,
        digest=manifest.digest,
        signature=manifest.signature,
        weight=manifest.weight,
        incarnation=incarnation,
        attempt=attempt,
        payload=json.dumps(manifest.to_json()),
    )
