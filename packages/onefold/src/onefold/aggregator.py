"""The register, a store and the exact sums together: push, pull and close in one process.

Several threads may use an :class:`Aggregator` at once; the server does. Receiving numbers and
summing them happen outside any lock; what is decided is the :class:`~onefold.register.Register`'s.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from onefold.aggregate import Aggregate
from onefold.errors import Damaged, NotYet, OnefoldError, ProtocolError
from onefold.ledger import Closing, Contribution, Joined, Push, StepClosed
from onefold.parts import Manifest, Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.reduction import write_aggregate
from onefold.register import Register
from onefold.status import RunStatus
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
        self._store: Store = MemoryStore() if directory is None else DirectoryStore(directory)
        self._register = Register(self._store, self.policy, clock)
        self._received_bytes = 0
        self._received_lock = threading.Lock()

    def open(self) -> Self:
        """Acquire the store; a directory goes on where it was left.

        Raises:
            StoreLocked: Another process, or another aggregator of this one, has it open.
            StoreError: It cannot be used.
        """
        self._register.open()
        return self

    def shutdown(self) -> None:
        """Release the store, once no step is being closed; waits are ended."""
        self._register.shutdown()

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
        self._register.interrupt()

    @property
    def run(self) -> str:
        """The id of the run, made once for a directory."""
        return self._register.run

    def join(self, worker: str, life: str) -> Joined:
        """Let a worker's life begin; the same life id always gets the same incarnation.

        Args:
            worker: The worker's name.
            life: An id that the process made once, at random.

        Raises:
            UnknownWorker: The roster has no place for this name.
        """
        check_worker(worker)
        return self._register.join(worker, life)

    def leave(self, worker: str, incarnation: int | None = None) -> None:
        """Let a worker leave: steps not yet open will not wait for it."""
        self._register.leave(worker, incarnation)

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
        push = replace(
            _push(step, worker, manifest, attempt=attempt, incarnation=incarnation), run=run
        )
        try:
            payload = self._store.payload(manifest)
        except Damaged:
            receipt = self._register.judge(push)
            if receipt.status in (Status.ACCEPTED, Status.REPLACED):
                raise
            return receipt  # it would not count anyway; its parts may be gone for that reason
        digest = payload.digest()
        if digest != manifest.digest:
            self._discard_unnamed(push, manifest)
            raise ProtocolError(
                f"worker {worker!r}, step {step}: the manifest states digest {manifest.digest}, "
                f"the parts have {digest}; send the update again"
            )
        return self._record(push, manifest, payload.first_nonfinite)

    def stands(self, step: int, worker: str, incarnation: int | None, attempt: int | None) -> bool:
        """Whether an open step has this sending of a worker, or a later one."""
        return self._register.stands(step, worker, incarnation, attempt)

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
        end = time.monotonic() + timeout_seconds
        closed = self._register.wait_closed(step, end, self.tick)
        if closed is None:
            return None
        return ClosedAggregate(closed, self._store.aggregate_manifest(step))

    def read_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of an aggregate, as stored."""
        return self._store.aggregate_part(step, part)

    def close(self, step: int) -> Aggregate:
        """Close a step with what is there, whoever is missing; closed already, it stays as it is.

        Raises:
            NoUpdate: Nothing was contributed to it; nothing changes.
            SumOverflow, StoreError: As for :meth:`pull`; the step stays open.
        """
        self.tick()
        closing = self._register.claim(step)
        if closing is not None:
            self._finish(closing)
        return self.pull(step)

    def tick(self) -> None:
        """Close every step that is complete, or past its deadline with enough contributions.

        Pushes and waits do this too; a server calls it so that deadlines need no traffic.
        """
        self.open()
        tried: set[int] = set()
        while (closing := self._register.claim_due(besides=tried)) is not None:
            tried.add(closing.closed.step)
            self._finish(closing)

    def status(self) -> RunStatus:
        """How the run stands."""
        return self._register.status(self._received_bytes)

    def _counted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with self._received_lock:
                self._received_bytes += batch.nbytes
            yield batch

    def _record(
        self, push: Push, manifest: Manifest, first_nonfinite: Callable[[], str | None]
    ) -> Receipt:
        """Let the ledger decide about staged parts, and drop those that then belong to nobody."""
        if self.policy.on_nonfinite != "propagate" and push.weight > 0:
            push = replace(push, nonfinite=first_nonfinite())
        self.tick()
        receipt, standing = self._register.record(push)
        if receipt.status not in (Status.ACCEPTED, Status.REPLACED):
            self._discard_unnamed(push, manifest)
        elif standing is not None:
            self._store.discard(_parts_of(standing) - set(manifest.parts))
        self.tick()
        return receipt

    def _discard_unnamed(self, push: Push, manifest: Manifest) -> None:
        """Drop the parts of a refused commit, but not those that stand: it may be a repeat."""
        standing = self._register.standing(push.step, push.worker)
        self._store.discard(set(manifest.parts) - (_parts_of(standing) if standing else set()))

    def _finish(self, closing: Closing) -> None:
        """Sum, make the aggregate durable, then visible. What fails leaves the step open."""
        step = closing.closed.step
        try:
            self._register.conclude(closing, self._reduced(closing))
            if self.policy.keep_steps is not None:
                self._store.prune(self.policy.keep_steps)
        except _SendAgain:
            pass  # the step waits on; its worker learns of it in its own wait
        except OnefoldError as error:
            self._register.fail(step, error)
        finally:
            self._register.release(step)

    def _reduced(self, closing: Closing) -> Manifest | None:
        if not closing.selected:
            return None
        step = closing.closed.step
        payloads = [self._whole(step, contribution) for contribution in closing.selected]
        weights = [contribution.weight for contribution in closing.selected]
        return write_aggregate(
            self._store, step, payloads, weights=weights, operation=self.policy.operation
        )

    def _whole(self, step: int, contribution: Contribution) -> Payload:
        """A contribution's numbers; where they are not whole it is unrecorded, to be sent again."""
        try:
            return self._register.payload(contribution)
        except (Damaged, ProtocolError) as error:
            self._register.unrecord(step, contribution.worker)
            raise _SendAgain(
                f"the update of worker {contribution.worker!r} for step {step} is damaged and has "
                f"to be sent again: {error}"
            ) from error


def _parts_of(contribution: Contribution) -> set[str]:
    return set(Manifest.from_json(json.loads(contribution.payload)).parts)


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
