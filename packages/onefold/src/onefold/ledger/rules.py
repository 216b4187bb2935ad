"""The receipts as one table: the first rule that applies decides what becomes of a push.

Each rule looks at a :class:`Situation` and returns a reason in words if it applies, else None.
:data:`RULES` is their order, and the whole policy of which contribution counts can be read there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onefold.ledger.events import Contribution, Push, StepClosed
from onefold.receipt import Status
from onefold.update import Signature

__all__ = ["RULES", "Situation", "decide", "refused_outright"]


@dataclass(frozen=True, slots=True)
class Situation:
    """A push and all that is known when it is judged.

    Attributes:
        push: The push.
        run: The run that this ledger keeps.
        stranger: Why the worker is not one whose update this step takes; None if it is.
        incarnation: The newest incarnation known of the worker.
        closed: What the step closed with, where it did.
        below: Why the step, not open, can no longer open; None if it is open or can.
        beyond: Why the step is too far ahead to open; None if it is open or can.
        standing: The worker's contribution to this step so far.
        signature: What the update must look like, and whose word that is; None if it is free.
        rejects_nonfinite: Whether the policy rejects NaN and infinity.
    """

    push: Push
    run: str
    stranger: str | None
    incarnation: int
    closed: StepClosed | None
    below: str | None
    beyond: str | None
    standing: Contribution | None
    signature: tuple[Signature, str] | None
    rejects_nonfinite: bool


def _other_run(at: Situation) -> str | None:
    if at.push.run in (None, at.run):
        return None
    return (
        f"the push is for run {at.push.run}, this is run {at.run}; connect again to join this run"
    )


def _unknown_worker(at: Situation) -> str | None:
    return at.stranger


def _fenced(at: Situation) -> str | None:
    if at.push.incarnation is None or at.push.incarnation >= at.incarnation:
        return None
    return (
        f"incarnation {at.push.incarnation} is over: incarnation {at.incarnation} of this worker "
        "has taken its place"
    )


def _closed(at: Situation) -> str | None:
    if at.closed is None:
        return at.below
    if at.closed.counted(at.push):
        return "the step is closed, and this update counted"
    if any(contributor.worker == at.push.worker for contributor in at.closed.contributors):
        return "the step is closed, and another update of this worker counted"
    for excluded in at.closed.excluded:
        if excluded.worker == at.push.worker:
            return f"the step is closed without this worker: {excluded.reason}"
    return "the step is closed without this worker"


def _too_far(at: Situation) -> str | None:
    return at.beyond


def _mismatch(at: Situation) -> str | None:
    if at.signature is None:
        return None
    expected, whose = at.signature
    difference = expected.difference(at.push.signature)
    return None if difference is None else f"{difference}, by the signature of {whose}"


def _nonfinite(at: Situation) -> str | None:
    if not at.rejects_nonfinite or at.push.nonfinite is None:
        return None
    return f"{at.push.nonfinite}; the policy rejects what is not finite"


def _conflict(at: Situation) -> str | None:
    if at.standing is None:
        return None
    if (at.standing.attempt is None) != (at.push.attempt is None):
        return (
            "for one worker and step either every sending states its attempt or none does; "
            f"the one that stands has attempt {at.standing.attempt}, this one {at.push.attempt}"
        )
    if at.push.attempt is not None and at.push.order == at.standing.order:
        same = at.standing.digest == at.push.digest
        return (
            None
            if same
            else f"attempt {at.push.attempt} was sent before with other content "
            f"(digest {at.standing.digest}, now {at.push.digest}); "
            "a recomputed update takes the next attempt"
        )
    return None


def _duplicate(at: Situation) -> str | None:
    if at.standing is None or at.standing.digest != at.push.digest:
        return None
    if at.push.attempt is not None and at.push.order != at.standing.order:
        return None
    return "this update is the one that stands already"


def _superseded(at: Situation) -> str | None:
    if at.standing is None or at.push.attempt is None or at.push.order >= at.standing.order:
        return None
    return (
        f"a later sending stands: incarnation {at.standing.incarnation}, "
        f"attempt {at.standing.attempt}"
    )


def _replaced(at: Situation) -> str | None:
    if at.standing is None:
        return None
    return (
        f"it takes the place of incarnation {at.standing.incarnation}, "
        f"attempt {at.standing.attempt}"
        if at.push.attempt is not None
        else "it takes the place of this worker's earlier update"
    )


def _accepted(_at: Situation) -> str | None:
    return "it is this worker's contribution to the step"


RULES: tuple[tuple[Status, Callable[[Situation], str | None]], ...] = (
    (Status.OTHER_RUN, _other_run),
    (Status.UNKNOWN_WORKER, _unknown_worker),
    (Status.FENCED, _fenced),
    (Status.CLOSED, _closed),
    (Status.TOO_FAR, _too_far),
    (Status.MISMATCH, _mismatch),
    (Status.NONFINITE, _nonfinite),
    (Status.CONFLICT, _conflict),
    (Status.DUPLICATE, _duplicate),
    (Status.SUPERSEDED, _superseded),
    (Status.REPLACED, _replaced),
    (Status.ACCEPTED, _accepted),
)


_OUTRIGHT = RULES[: [status for status, _ in RULES].index(Status.MISMATCH)]
"""The rules that look at who sends an update and to which step, but not at what is in it."""


def refused_outright(at: Situation) -> bool:
    """Whether the push is refused whatever is in it."""
    return any(rule(at) is not None for _, rule in _OUTRIGHT)


def decide(at: Situation) -> tuple[Status, str]:
    """The status of a push and the reason, in words."""
    for status, rule in RULES:
        reason = rule(at)
        if reason is not None:
            return status, reason
    raise AssertionError("the last rule applies always")
