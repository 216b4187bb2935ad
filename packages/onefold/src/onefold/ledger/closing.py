"""What a step closes with: who is summed, who is not and why, and whether it is skipped."""

from __future__ import annotations

from onefold.ledger.events import Closing, Contribution, Contributor, Excluded, StepClosed
from onefold.ledger.steps import OpenStep
from onefold.policy import Policy

__all__ = ["conclude"]


def conclude(
    step: int,
    open_step: OpenStep,
    roster: tuple[str, ...] | None,
    policy: Policy,
    now: float,
) -> Closing:
    """What ``open_step`` closes with at ``now``, with at least one contribution standing.

    Weight 0 selects out, whatever the operation. If nothing is left the step is skipped, as it is
    for a non-finite value under ``on_nonfinite="skip"``: no tensors, and the reasons.
    """
    standing = [open_step.standing[worker] for worker in sorted(open_step.standing)]
    selected = tuple(contribution for contribution in standing if contribution.weight > 0)
    reasons = dict.fromkeys(roster or (), "nothing had come when the step closed")
    reasons |= open_step.refusals
    reasons |= {contribution.worker: "its weight is 0" for contribution in standing}
    skip = _reason_to_skip(selected, policy)
    if skip is None:
        for contribution in selected:
            del reasons[contribution.worker]
    else:
        reasons |= {
            contribution.worker: contribution.nonfinite or skip for contribution in selected
        }
        selected = ()
    closed = StepClosed(
        step=step,
        outcome="skipped" if skip else "update",
        contributors=tuple(_contributor(contribution) for contribution in selected),
        excluded=tuple(Excluded(worker, reasons[worker]) for worker in sorted(reasons)),
        closed_at=now,
    )
    return Closing(selected, closed)


def _reason_to_skip(selected: tuple[Contribution, ...], policy: Policy) -> str | None:
    if not selected:
        return "the step was skipped: every contribution has weight 0"
    if policy.on_nonfinite != "skip":
        return None
    for contribution in selected:
        if contribution.nonfinite is not None:
            return f"the step was skipped: worker {contribution.worker!r}, {contribution.nonfinite}"
    return None


def _contributor(contribution: Contribution) -> Contributor:
    return Contributor(
        worker=contribution.worker,
        incarnation=contribution.incarnation,
        attempt=contribution.attempt,
        weight=contribution.weight,
        digest=contribution.digest,
    )
