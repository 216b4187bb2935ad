"""The state machine: which contribution counts, which step is complete, what it closes with.

No clock, socket or file: the time comes in as an argument, and every decision comes out as a value.
Deciding and remembering are apart, so that a store can stand between them::

    decision = ledger.push(push, now, closed)   # changes nothing
    store.commit(decision.changes)              # may fail; then nothing has happened
    ledger.apply(decision.changes)              # cannot fail

Only open steps are held here. What a closed step closed with is in the store, and whoever asks
about such a step brings it along (``closed``), so memory does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from onefold.errors import NoUpdate, UnknownWorker
from onefold.ledger.closing import conclude
from onefold.ledger.events import (
    Behind,
    Change,
    Closing,
    Contributed,
    Contribution,
    Decision,
    IncarnationSeen,
    Joined,
    Push,
    RefusalNoted,
    SignatureFixed,
    StepClosed,
    StepOpened,
    Unrecorded,
    WorkerJoined,
    WorkerLeft,
)
from onefold.ledger.members import Members
from onefold.ledger.rules import Situation, decide, refused_outright
from onefold.ledger.steps import OpenStep, Steps
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.update import Signature

__all__ = ["Ledger"]


class Ledger:
    """What has been contributed in one run, and by whom.

    Args:
        run: The run's id.
        policy: When steps close and what is refused.
        changes: What a store kept of an earlier life of this ledger, in order.
    """

    def __init__(self, run: str, policy: Policy, changes: Iterable[Change] = ()) -> None:
        self.run = run
        self.policy = policy
        self.members = Members(policy)
        self.steps = Steps(policy)
        self._first_signature: SignatureFixed | None = None
        self._arrivals = 0
        self.apply(changes)

    def apply(self, changes: Iterable[Change]) -> None:
        """Remember what was decided and written down."""
        for change in changes:
            match change:
                case WorkerJoined() | WorkerLeft() | IncarnationSeen():
                    self.members.apply(change)
                case SignatureFixed():
                    self._first_signature = self._first_signature or change
                case _:
                    self.steps.apply(change)
            if isinstance(change, Contributed):
                self._arrivals = max(self._arrivals, change.contribution.arrival)

    def join(self, worker: str, life: str) -> tuple[Joined, tuple[Change, ...]]:
        """The answer to a join; the same life always gets the same incarnation.

        Raises:
            UnknownWorker: The roster has no place for this name.
        """
        reason = self.members.no_place(worker)
        if reason is not None:
            raise UnknownWorker(f"worker {worker!r} cannot join: {reason}")
        incarnation, changes = self.members.join(worker, life)
        roster = self.members.next_roster(worker)
        joined = Joined(
            run=self.run,
            worker=worker,
            incarnation=incarnation,
            roster=roster,
            index=roster.index(worker) if roster else None,
            first_open_step=self._first_open_step(worker),
            size=self._size(worker, roster),
        )
        return joined, changes

    def behind(self, worker: str, life: str, after: int) -> Behind | None:
        """The answer to a join that is to come right after an incarnation, if it does not.

        A network may hold a join back until the process that sent it is long dead and another has
        taken its place, which would then be fenced for nothing. So a process joins after the newest
        incarnation that it has heard of, and only who is alive hears that it is behind, and asks
        again.
        """
        if not self.members.is_behind(worker, life, after):
            return None
        return Behind(worker, self.members.incarnation(worker))

    def leave(self, worker: str, incarnation: int | None = None) -> tuple[Change, ...]:
        """Leaving concerns steps not yet open; an older incarnation cannot leave for a newer."""
        return self.members.leave(worker, incarnation)

    def push(self, push: Push, now: float, closed: StepClosed | None = None) -> Decision:
        """What becomes of a push.

        Args:
            push: The push.
            now: Unix seconds.
            closed: What the push's step closed with, if it was ever open and is over.
        """
        status, reason = decide(self._situation(push, closed))
        over = status is Status.CLOSED
        receipt = Receipt(
            status=status,
            reason=reason,
            step=push.step,
            worker=push.worker,
            incarnation=push.incarnation,
            attempt=push.attempt,
            digest=push.digest,
            counted=closed is not None and closed.counted(push) if over else None,
            counted_as=closed.attempt_of(push.worker) if over and closed is not None else None,
        )
        return Decision(receipt, tuple(self._changes(push, receipt, now)))

    def stands(self, step: int, worker: str, incarnation: int | None, attempt: int | None) -> bool:
        """Whether an open step has this sending of a worker, or a later one."""
        standing = self.steps.standing(step, worker)
        if standing is None:
            return False
        return attempt is None or standing.order >= (incarnation or 0, attempt)

    def unrecord(self, step: int, worker: str) -> tuple[Change, ...]:
        """Take out a contribution whose numbers are missing or damaged."""
        standing = self.steps.standing(step, worker)
        if standing is None:
            return ()
        sending = "" if standing.attempt is None else f" as attempt {standing.attempt}"
        reason = f"accepted{sending}, then its numbers were lost; waiting for it to be sent again"
        return (Unrecorded(step, worker, reason),)

    def roster(self, step: int) -> tuple[str, ...] | None:
        """Who an open step waits for; None for nobody."""
        return self._roster(self.steps.open[step])

    def due(self, now: float) -> tuple[int, ...]:
        """The open steps that are complete, or past their deadline with enough contributions."""
        return tuple(sorted(step for step in self.steps.open if self._is_due(step, now)))

    def close(self, step: int, now: float) -> Closing:
        """What an open step closes with, whoever is missing.

        Raises:
            NoUpdate: Nothing stands for this step.
        """
        open_step = self.steps.open.get(step)
        if open_step is None or not open_step.standing:
            raise NoUpdate(f"step {step} has no contribution, hence no aggregate")
        closing = conclude(step, open_step, self._roster(open_step), self.policy, now)
        if self._first_signature is not None or not closing.selected:
            return closing
        return replace(closing, fixed=SignatureFixed(step, closing.selected[0].signature))

    def _size(self, worker: str, roster: tuple[str, ...] | None) -> int | None:
        """How many a step that opened now would wait for, ``worker`` counted as having joined."""
        if roster is None:
            return None
        sits_down = self.policy.seats is not None and not self.members.has_joined(worker)
        return len(roster) + self.members.vacant() - sits_down

    def _first_open_step(self, worker: str) -> int:
        step = self.steps.first_open()
        while self.steps.below(step) is not None or not self._would_take(step, worker):
            step += 1
        return step

    def _would_take(self, step: int, worker: str) -> bool:
        open_step = self.steps.open.get(step)
        return open_step is None or self._takes(open_step, worker)

    def _roster(self, open_step: OpenStep) -> tuple[str, ...] | None:
        return open_step.roster(self.members.seated(), self.policy.seats)

    def _takes(self, open_step: OpenStep, worker: str) -> bool:
        """Whether an open step takes this worker's update (a vacant place is for who joins)."""
        roster = self._roster(open_step)
        joining = self.members.vacant() > 0 and not self.members.has_joined(worker)
        return roster is None or worker in roster or joining

    def _is_due(self, step: int, now: float) -> bool:
        open_step = self.steps.open[step]
        roster = self._roster(open_step)
        if roster is None or not open_step.standing:
            return False
        expected = len(roster) + self.members.vacant()
        if len(open_step.standing) >= expected:
            return True
        deadline_at = open_step.opened.deadline_at
        late = deadline_at is not None and now >= deadline_at
        return late and len(open_step.standing) >= (self.policy.minimum or expected)

    def refuses(
        self,
        step: int,
        worker: str,
        *,
        incarnation: int | None,
        run: str | None,
        closed: StepClosed | None,
    ) -> bool:
        """Whether an update would be refused, whatever is in it and whatever its attempt."""
        push = Push(step, worker, "", Signature(()), incarnation=incarnation, run=run)
        return refused_outright(self._situation(push, closed))

    def _situation(self, push: Push, closed: StepClosed | None) -> Situation:
        below = self.steps.below(push.step)
        return Situation(
            push=push,
            run=self.run,
            stranger=self._stranger(push, over=below is not None),
            incarnation=self.members.incarnation(push.worker),
            closed=closed,
            below=below,
            beyond=self.steps.beyond(push.step),
            standing=self.steps.standing(push.step, push.worker),
            signature=self._expected_signature(push),
            rejects_nonfinite=self.policy.on_nonfinite == "reject",
        )

    def _stranger(self, push: Push, *, over: bool) -> str | None:
        """Why the step does not take an update of this worker; None if it does."""
        reason = self.members.no_place(push.worker) or self.members.no_life(
            push.worker, push.incarnation
        )
        if reason is not None:
            return reason
        needs_join = self.policy.roster is not None and self.policy.names is None
        if needs_join and not self.members.has_joined(push.worker):
            return "it has not joined"
        if over:
            return None
        open_step = self.steps.open.get(push.step)
        if open_step is None:
            left = self.members.has_left(push.worker)
            return "it has left; a new life of it may join" if left else None
        if self._takes(open_step, push.worker):
            return None
        return (
            f"who step {push.step} waits for was fixed without it when the step opened; the first "
            f"step that takes its update is {self._first_open_step(push.worker)}"
        )

    def _expected_signature(self, push: Push) -> tuple[Signature, str] | None:
        if self.policy.signature is not None:
            return self.policy.signature, "the policy"
        if self._first_signature is not None:
            fixed = self._first_signature
            return fixed.signature, f"step {fixed.step}, the first that closed"
        others = [
            (contribution.arrival, step, contribution)
            for step, contribution in self.steps.all_standing()
            if (step, contribution.worker) != (push.step, push.worker)
        ]
        if not others:
            return None
        _, step, first = min(others, key=lambda other: other[0])
        return first.signature, f"worker {first.worker!r} at step {step}, the earliest that stands"

    def _changes(self, push: Push, receipt: Receipt, now: float) -> Iterator[Change]:
        open_step = self.steps.open.get(push.step)
        if receipt.status in (Status.MISMATCH, Status.NONFINITE) and open_step is not None:
            note = f"refused: {receipt.status}: {receipt.reason}"
            if push.worker in (self._roster(open_step) or ()) and (
                open_step.refusals.get(push.worker) != note
            ):
                yield RefusalNoted(push.step, push.worker, note)
        if receipt.status not in (Status.ACCEPTED, Status.REPLACED):
            return
        if (push.incarnation or 0) > self.members.incarnation(push.worker):
            yield IncarnationSeen(push.worker, push.incarnation or 0)
        if open_step is None:
            seconds = self.policy.deadline_seconds
            deadline_at = None if seconds is None else now + seconds
            roster, vacant = self.members.next_roster(), self.members.vacant()
            yield StepOpened(push.step, roster, now, deadline_at, vacant)
        yield Contributed(push.step, Contribution.of(push, arrival=self._arrivals + 1))
