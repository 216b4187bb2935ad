"""The register, a store and the exact sums together: push, pull and close in one process.

Several threads may use an :class:`Aggregator` at once; the server does. Receiving numbers and
summing them happen outside any lock; what is decided is the :class:`~onefold.register.Register`'s.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from onefold.aggregate import Aggregate
from onefold.checks import (
    check_life,
    check_ordinal,
    check_seconds,
    check_sending,
    check_step,
    check_worker,
    show,
)
from onefold.errors import (
    Damaged,
    InvalidInput,
    InvalidPolicy,
    NotYet,
    OnefoldError,
    ProtocolError,
    StoreError,
)
from onefold.ledger import Behind, Closing, Contribution, Joined, Push, StepClosed
from onefold.parts import Manifest, Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.receipt import RECORDED, Receipt
from onefold.reduction import write_aggregate
from onefold.register import Register
from onefold.status import RunStatus
from onefold.store import DirectoryStore, MemoryStore, Store, Unnamed
from onefold.update import Tensor, Update

__all__ = ["Aggregator", "ClosedAggregate"]


@dataclass(frozen=True, slots=True)
class ClosedAggregate:
    """A closed step and where its numbers are; ``manifest`` is None for a skipped step."""

    closed: StepClosed
    manifest: Manifest | None


_LOG = logging.getLogger(__name__)

_NOT_KEPT = "not-kept"
"""The name of a part that was read and not kept; no store gives it to another."""


class _SendAgain(Damaged):
    """A contribution was not whole any more and has been unrecorded."""


class Aggregator:
    """Sums what workers push, each update once, and gives the aggregates out.

    Args:
        directory: Where to keep everything, so that it survives a crash; None keeps it in memory.
        policy: When steps close and what is computed; default: sums, closed by :meth:`close`.
        clock: Gives the time in Unix seconds, for deadlines.
        store: Where to keep everything instead of in a directory or in memory.

    It opens by ``with``, by :meth:`open`, or when it is first used. What is computed and whom
    steps wait for is fixed with the first opening of a directory; the rest of a policy may change.

    Raises:
        InvalidInput: ``directory`` is no path.
        InvalidPolicy: ``policy`` is no :class:`Policy`.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        policy: Policy | None = None,
        *,
        clock: Callable[[], float] = time.time,
        store: Store | None = None,
    ) -> None:
        self.policy = _checked_policy(policy)
        self._store = store or _store_of(directory)
        self._register = Register(self._store, self.policy, clock)
        self._unnamed = Unnamed()
        self._clock = clock
        self._logged = ""
        self._received_bytes = 0
        self._received_lock = threading.Lock()

    def open(self) -> Self:
        """Acquire the store; a directory goes on where it was left.

        Raises:
            StoreLocked: Another process, or another aggregator of this one, has it open.
            StoreError: It cannot be used.
            InvalidPolicy: The run that is kept there has another operation or roster.
        """
        self._register.open()
        return self

    def shutdown(self) -> None:
        """Release the store, once no step is being closed; waits are ended."""
        self._register.shutdown()
        self._unnamed.clear()

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
            InvalidInput: This is no name, or no id.
        """
        joined = self._register.join(check_worker(worker), check_life(life))
        assert isinstance(joined, Joined)  # Behind is said to who names an incarnation
        return joined

    def join_after(self, worker: str, life: str, incarnation: int) -> Joined | Behind:
        """As :meth:`join`, if ``incarnation`` is the worker's newest (0: there is none).

        Else nothing changes, and the answer says which is. So a join that comes so late that its
        process is dead, and another has taken its place, does not fence that one.
        """
        after = check_ordinal("incarnation", incarnation, f"worker {worker!r}: ")
        return self._register.join(check_worker(worker), check_life(life), after)

    def leave(self, worker: str, incarnation: int | None = None) -> None:
        """Let a worker leave: steps not yet open will not wait for it."""
        check_worker(worker)
        if incarnation is not None:
            incarnation = check_ordinal("incarnation", incarnation, f"worker {worker!r}: ")
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
        step, attempt, incarnation = check_sending(step, worker, attempt, incarnation)
        update = Update.sent(update, weight, worker=worker, step=step)
        manifest = manifest_of(update, self._kept_parts(step, worker, update))
        push = _push(step, worker, manifest, attempt=attempt, incarnation=incarnation)
        return self._record(push, manifest, update.first_nonfinite)

    def stage(
        self,
        step: int,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        worker: str | None = None,
        incarnation: int | None = None,
        run: str | None = None,
    ) -> str:
        """Keep a part of an update as it streams in, and return its name, for :meth:`commit`.

        What is never committed is dropped when its sender has not been heard of for ten minutes.

        Args:
            step: The step.
            schema: The schema of the batches.
            batches: What the part consists of.
            worker: Who will commit it. With a worker, a part is read but not kept where its update
                would be refused whatever is in it; the commit is then answered as if it had been.
            incarnation: As for :meth:`push`.
            run: As for :meth:`commit`.

        Raises:
            InvalidUpdate: The step or worker cannot be used.
            StoreError: It cannot be kept.
        """
        self._register.ensure_open()
        if worker is not None:
            step, _, _ = check_sending(step, worker)

        def is_refused() -> bool:
            return worker is not None and self._register.refuses(
                step, worker, incarnation=incarnation, run=run
            )

        if is_refused():
            for _ in self._heard(step, worker, batches):
                pass
            return _NOT_KEPT
        part = self._keep(step, worker, schema, batches)
        if is_refused():  # since it began to come in
            self.discard([part])
        return part

    def discard(self, parts: Iterable[str]) -> None:
        """Forget parts that will not be committed; those of contributions stay."""
        self._store.discard(self._unnamed.take_any(parts))

    def drop(self, step: int, worker: str, parts: Iterable[str]) -> None:
        """Forget parts that a worker has sent for a step; those of others stay."""
        self._store.discard(self._unnamed.take(step, worker, parts))

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
        self._register.ensure_open()
        step, attempt, incarnation = check_sending(step, worker, attempt, incarnation)
        push = replace(
            _push(step, worker, manifest, attempt=attempt, incarnation=incarnation), run=run
        )
        try:
            payload = self._committed(push, manifest)
            return self._record(push, manifest, payload.first_nonfinite)
        except (Damaged, ProtocolError) as error:
            self.drop(step, worker, manifest.parts)
            if isinstance(error, ProtocolError):
                raise
            receipt = self._register.judge(push)
            if receipt.status in RECORDED:
                raise
            return receipt  # it would not count anyway; its parts may be gone for that reason

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
            InvalidInput: This is no step, or no number of seconds.
        """
        closed = self.wait(step, timeout_seconds)
        if closed is None:
            raise NotYet(
                f"step {step} has not closed within {timeout_seconds} s; "
                "pull again, with timeout_seconds to wait for it"
            )
        if closed.manifest is None:
            return Aggregate.of(closed.closed, {})
        payload = self._aggregate_payload(step, closed.manifest)
        return Aggregate.of(closed.closed, payload.update().tensors)

    def wait(self, step: int, timeout_seconds: float) -> ClosedAggregate | None:
        """What a step closed with, as soon as it has; None if it has not within the time."""
        step = check_step(step)
        end = time.monotonic() + check_seconds("timeout_seconds", timeout_seconds)
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
        step = check_step(step)
        self._close(lambda: self._register.claim(step))
        return self.pull(step)

    def tick(self) -> None:
        """Close every step that is complete, or past its deadline with enough contributions.

        Pushes and waits do this too; a server calls it so that deadlines need no traffic. Parts
        that nobody has committed for long are dropped.
        """
        self._register.ensure_open()
        tried: set[int] = set()
        while (step := self._close(lambda: self._register.claim_due(besides=tried))) is not None:
            tried.add(step)
        expired = self._unnamed.take_expired(self._clock())
        if expired:
            self._store.discard(expired - self._register.named_parts())

    def status(self) -> RunStatus:
        """How the run stands."""
        return self._register.status(self._received_bytes)

    def staged_bytes(self) -> int:
        """How many bytes of parts are kept, committed or not."""
        return self._store.staged_bytes()

    def uncommitted_parts(self, worker: str) -> int:
        """How many parts a worker has sent and not committed."""
        return self._unnamed.count(worker)

    def _kept_parts(self, step: int, worker: str, update: Update) -> list[str]:
        self._register.ensure_open()
        parts: list[str] = []
        try:
            for schema, batches in encode(update):
                parts.append(self._keep(step, worker, schema, batches))
        except BaseException:
            self.discard(parts)
            raise
        return parts

    def _keep(
        self, step: int, worker: str | None, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> str:
        heard = self._heard(step, worker, batches)
        part = self._store.stage(step, (schema, heard), durable=self.policy.sync_each_push)
        self._unnamed.add(step, worker, [part], self._clock())
        return part

    def _heard(
        self, step: int, worker: str | None, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._unnamed.hear(step, worker, self._clock())
            with self._received_lock:
                self._received_bytes += batch.nbytes
            yield batch

    def _committed(self, push: Push, manifest: Manifest) -> Payload:
        """What a commit names, compared with what it states."""
        self._unnamed.hear(push.step, push.worker, self._clock())
        self._check_here(push, manifest, self._unnamed.of(push.step, push.worker, manifest.parts))
        payload = self._store.payload(manifest)
        digest = payload.digest()
        if digest != manifest.digest:
            raise ProtocolError(
                f"worker {push.worker!r}, step {push.step}: the manifest states digest "
                f"{manifest.digest}, the parts have {digest}; send the update again"
            )
        return payload

    def _check_here(self, push: Push, manifest: Manifest, parts: set[str]) -> None:
        """Check that the parts of an update are its own: ``parts``, or those that stand already."""
        standing = self._register.standing(push.step, push.worker)
        known = parts | (_parts_of(standing) if standing else set())
        for part in manifest.parts:
            if part not in known:
                raise Damaged(
                    f"worker {push.worker!r}, step {push.step}: the part {part!r} is not here; "
                    "send all parts of the update again"
                )

    def _record(
        self, push: Push, manifest: Manifest, first_nonfinite: Callable[[], str | None]
    ) -> Receipt:
        """Let the ledger decide about staged parts, and drop those that then belong to nobody."""
        if self.policy.on_nonfinite != "propagate" and push.weight > 0:
            push = replace(push, nonfinite=first_nonfinite())
        self.tick()
        taken = self._unnamed.take(push.step, push.worker, manifest.parts)
        try:
            self._check_here(push, manifest, taken)
            receipt, standing = self._register.record(push)
        except BaseException:
            # The ledger knows whether it was written down; it is asked before these are dropped.
            self._unnamed.add(push.step, push.worker, taken, self._clock())
            raise
        if receipt.status not in RECORDED:
            self._store.discard(taken)
        elif standing is not None:
            self._store.discard(_parts_of(standing) - set(manifest.parts))
        self.tick()
        return receipt

    def _close(self, claim: Callable[[], Closing | None]) -> int | None:
        """Close the step that ``claim`` claims, and name it; None if it claims none.

        The claim ends with this call, also where a Ctrl-C came as soon as it had been made.
        """
        try:
            closing = claim()
            if closing is None:
                return None
            self._finish(closing)
            return closing.closed.step
        finally:
            self._register.release()

    def _finish(self, closing: Closing) -> None:
        """Sum, make the aggregate durable, then visible. What fails leaves the step open.

        The error is that of this step, whatever it is: who happens to call has another business,
        and whoever waits for the step is told.
        """
        step = closing.closed.step
        try:
            self._register.conclude(closing, self._reduced(closing))
            self._unnamed.end_step(step)
        except _SendAgain:
            return  # the step waits on; its worker learns of it in its own wait
        except OnefoldError as error:
            self._register.fail(step, error)
            return
        except Exception as error:  # noqa: BLE001 - see above
            what = f"step {step} could not be closed: {type(error).__name__}: {error}"
            if what != self._logged:  # each tick tries again
                _LOG.exception("%s", what)
            self._logged = what
            self._register.fail(step, StoreError(what))
            return
        self._prune()

    def _prune(self) -> None:
        if self.policy.keep_steps is None:
            return
        try:
            self._store.prune(self.policy.keep_steps)
        except StoreError as error:
            _LOG.warning("aggregates were not pruned; the next close tries again: %s", error)

    def _reduced(self, closing: Closing) -> Manifest | None:
        if not closing.selected:
            return None
        step = closing.closed.step
        payloads = [self._whole(step, contribution) for contribution in closing.selected]
        weights = [contribution.weight for contribution in closing.selected]
        return write_aggregate(
            self._store, step, payloads, weights=weights, operation=self.policy.operation
        )

    def _aggregate_payload(self, step: int, manifest: Manifest) -> Payload:
        """The numbers of an aggregate, compared with its digest."""
        parts = [self._store.aggregate_part(step, part)[1] for part in manifest.parts]
        try:
            payload = Payload(manifest, parts)
            payload.verify()
        except (Damaged, ProtocolError) as error:
            raise Damaged(
                f"the aggregate of step {step} is not what was written: {error}; the disk or "
                "another program has changed it, and only a copy has it as it was"
            ) from error
        return payload

    def _whole(self, step: int, contribution: Contribution) -> Payload:
        """A contribution's numbers; where they are not whole it is unrecorded, to be sent again.

        They were compared with their digest when they came, and may have rotted since.
        """
        try:
            payload = self._register.payload(contribution)
            payload.verify()
        except (Damaged, ProtocolError) as error:
            self._register.unrecord(step, contribution.worker)
            raise _SendAgain(
                f"the update of worker {contribution.worker!r} for step {step} is damaged and has "
                f"to be sent again: {error}"
            ) from error
        return payload


def _checked_policy(policy: object) -> Policy:
    if policy is None:
        return Policy()
    if not isinstance(policy, Policy):
        raise InvalidPolicy(f"policy is an onefold.Policy(...), not {show(policy)}")
    return policy


def _store_of(directory: object) -> Store:
    if directory is None:
        return MemoryStore()
    if isinstance(directory, Policy):
        raise InvalidInput(
            "the directory comes first: Aggregator(policy=...) keeps everything in memory, "
            "Aggregator(directory, policy) in a directory"
        )
    if not isinstance(directory, str | os.PathLike):
        raise InvalidInput(
            f"directory is a path, or None to keep everything in memory, not {show(directory)}"
        )
    return DirectoryStore(directory)


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
