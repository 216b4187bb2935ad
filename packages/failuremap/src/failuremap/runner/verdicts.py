"""What a fixture's answer is worth.

===========  ==============================================================================
pass         the value is the expected one, type by type and bit by bit, and no input changed
fail         another value, or an input that the call changed
error        ``solve`` raised (``SystemExit`` included), or the source did not load
timeout      no answer in time
crash        the process ended (``os._exit``, a signal, the end of its stack)
protocol     what came back is no plain value, or no answer at all
infra        the machine failed; says nothing about the program and is never a verdict
flaky        runs that should agree do not
===========  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from failuremap.fixtures import Fixture, Question
from failuremap.runner.process import Answer
from failuremap.values import same, shown

__all__ = ["STATUSES", "Verdict", "agreed", "judge"]

STATUSES = ("pass", "fail", "error", "timeout", "crash", "protocol", "infra", "flaky")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of one fixture, with the value that came (``answered``) or words about it."""

    label: str
    status: str
    answered: bool = False
    actual: object = None
    message: str = ""

    @property
    def equal(self) -> bool:
        """Whether the value was the expected one, as a program that checks only that would say."""
        return self.status == "pass" or (self.status == "fail" and self.message == _CHANGED)


_CHANGED = "the right value, but the call changed its input"


def judge(fixture: Fixture, answer: Answer) -> Verdict:
    """The verdict on one answer."""
    if answer.outcome != "value":
        return Verdict(fixture.label, answer.outcome, message=answer.message)
    equal = same(answer.value, fixture.expected)
    if not equal:
        message = f"got {shown(answer.value)}, expected {shown(fixture.expected)}"
        return Verdict(fixture.label, "fail", answered=True, actual=answer.value, message=message)
    status, message = ("fail", _CHANGED) if changed(fixture.question, answer) else ("pass", "")
    return Verdict(fixture.label, status, answered=True, actual=answer.value, message=message)


def changed(question: Question, answer: Answer) -> bool:
    """Whether an input is not as it was before the call."""
    return list(question.inputs()) != answer.inputs


def agreed(runs: Sequence[Sequence[Verdict]]) -> list[Verdict]:
    """One verdict a fixture from several runs: the common one, or ``flaky``."""
    return [_common(verdicts) for verdicts in zip(*runs, strict=True)]


def _common(verdicts: Sequence[Verdict]) -> Verdict:
    first = verdicts[0]
    for other in verdicts[1:]:
        if other.status != first.status or not same(other.actual, first.actual):
            said = " / ".join(
                f"{v.status} {shown(v.actual, 60) if v.answered else v.message}"
                for v in (first, other)
            )
            return Verdict(first.label, "flaky", message=f"runs disagree: {said}")
    return first
