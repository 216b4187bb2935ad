"""Run somebody's function against a case: its fixtures, then generated inputs, then shrinking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from failuremap.archive import Case
from failuremap.errors import InfraError, UsageError
from failuremap.fixtures import Fixture, Question, question_of
from failuremap.runner.interpreters import this_interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Answer, Child
from failuremap.runner.verdicts import Verdict, judge
from failuremap.trying.shrink import shrink
from failuremap.trying.target import Target
from failuremap.values import same, untag
from failuremap.verify.contract import Contract

__all__ = ["GENERATED", "CaseTry", "Smallest", "check_target", "equal", "try_case"]

GENERATED = 200
LATE_MAX = 5
"""Calls of one case that may be waited for in vain."""
_INPUT = "a generated input"


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest failing input found: what must come out, and what came."""

    arguments: tuple[object, ...]
    expected: object
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class CaseTry:
    """What trying a function on one case came to."""

    case: Case
    verdicts: tuple[Verdict, ...]
    generated: int
    smallest: Smallest | None
    only_types: bool = False
    """Whether all that is wrong is types: every value that came is equal to the expected one."""

    @property
    def status(self) -> str:
        """``pass``, ``fail`` or ``infra``."""
        statuses = {verdict.status for verdict in self.verdicts}
        if "infra" in statuses:
            return "infra"
        return "pass" if statuses <= {"pass"} and self.smallest is None else "fail"


class _Subject:
    """The function under trial in a child that is started again whenever it has ended."""

    def __init__(self, target: Target, *, by_value: bool) -> None:
        self._target = target
        self._by_value = by_value
        self._child: Child | None = None

    def judge(self, fixture: Fixture) -> Verdict:
        answer = self._running().ask(fixture.question)
        if self._by_value and answer.outcome == "value" and equal(answer.value, fixture.expected):
            answer = Answer("value", fixture.expected, answer.inputs)
        return judge(fixture, answer)

    def _running(self) -> Child:
        """A child that has the function; ``UsageError`` where it cannot be had."""
        if self._child is None or self._child.ended:
            self.end()
            self._child = self._target.child().__enter__()
        if self._child.failed is not None:
            raise UsageError(f"{self._target.name} cannot be loaded: {self._child.failed.message}")
        return self._child

    def check(self) -> None:
        """``UsageError`` where the function cannot be loaded."""
        self._running()

    def end(self) -> None:
        if self._child is not None:
            self._child.end()


def check_target(target: Target) -> None:
    """``UsageError`` says why a function cannot be tried."""
    subject = _Subject(target, by_value=False)
    try:
        subject.check()
    finally:
        subject.end()


def try_case(
    case: Case,
    target: Target,
    *,
    by_value: bool = False,
    generated: int = GENERATED,
    progress: Callable[[], None] = lambda: None,
) -> CaseTry:
    """Try a function on a case. Trouble with the machine gives ``infra`` verdicts.

    Raises:
        UsageError: The function cannot be imported.
    """
    subject = _Subject(target, by_value=by_value)
    fixtures = case.fixtures()
    verdicts: list[Verdict] = []
    smallest: Smallest | None = None
    count = 0
    try:
        with Contract(case, this_interpreter(), Limits()) as contract:
            for fixture in fixtures:
                verdicts.append(_patiently(subject, fixture, verdicts))
                progress()
            if _late(verdicts) < LATE_MAX:
                failing, count = _failing_input(
                    case, contract, subject, verdicts, generated, progress
                )
                if failing is not None:
                    smallest = _smallest(contract, subject, failing)
    except InfraError as error:
        missing = fixtures[len(verdicts) :] or fixtures[-1:]
        verdicts = verdicts[: len(fixtures) - len(missing)]
        verdicts += [Verdict(f.label, "infra", message=str(error)) for f in missing]
    finally:
        subject.end()
    wrong = [*verdicts, *([smallest.verdict] if smallest else [])]
    expected = [*(f.expected for f in fixtures), *([smallest.expected] if smallest else [])]
    return CaseTry(case, tuple(verdicts), count, smallest, _only_types(wrong, expected))


def _late(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.status == "timeout" for verdict in verdicts)


def _patiently(subject: _Subject, fixture: Fixture, verdicts: Sequence[Verdict]) -> Verdict:
    """A verdict; none is waited for once too many calls have had no answer."""
    if _late(verdicts) >= LATE_MAX:
        words = f"not called: {LATE_MAX} calls before had no answer in time"
        return Verdict(fixture.label, "timeout", message=words)
    return subject.judge(fixture)


def _failing_input(
    case: Case,
    contract: Contract,
    subject: _Subject,
    verdicts: Sequence[Verdict],
    generated: int,
    progress: Callable[[], None],
) -> tuple[tuple[object, ...] | None, int]:
    """The first generated input that fails, else a failing fixture's own; and how many were run."""
    for index in range(generated):
        arguments = contract.generate(f"{case.family.slug}/{index}")
        if isinstance(arguments, str):
            raise InfraError(arguments)
        fixture = _asked(contract, arguments)
        progress()
        if fixture is not None and subject.judge(fixture).status != "pass":
            return arguments, index + 1
    for fixture, verdict in zip(case.fixtures(), verdicts, strict=True):
        if verdict.status != "pass" and (own := _arguments(fixture.question)) is not None:
            return own, generated
    return None, generated


def _arguments(question: Question) -> tuple[object, ...] | None:
    """The arguments of a question that is one plain call."""
    kind, content = question.template
    if kind != "call" or question.names or not isinstance(content, list):
        return None
    return tuple(untag(template[1]) for template in content)


def _asked(contract: Contract, arguments: tuple[object, ...]) -> Fixture | None:
    """Arguments as a fixture with the oracle's answer; None where they are not valid."""
    if contract.problem_with(arguments):
        return None
    question = question_of(arguments)
    wanted = contract.oracle(question)
    if wanted.outcome != "value":
        raise InfraError(f"the oracle of the archive failed: {wanted.message}")
    return Fixture(_INPUT, question, wanted.value)


def _smallest(contract: Contract, subject: _Subject, arguments: tuple[object, ...]) -> Smallest:
    """Shrink a failing input; what is reported is judged afresh."""
    late = 0

    def fails(candidate: tuple[object, ...]) -> bool:
        nonlocal late
        fixture = _asked(contract, candidate)
        if fixture is None or late >= LATE_MAX:
            return False
        status = subject.judge(fixture).status
        late += status == "timeout"
        return status != "pass"

    best = shrink(arguments, fails)
    fixture = _asked(contract, best)
    assert fixture is not None, "shrinking left the contract's domain"
    verdict = subject.judge(fixture)
    if verdict.status == "pass":
        verdict = Verdict(verdict.label, "flaky", message="it failed before and passes now")
    return Smallest(best, fixture.expected, verdict)


def equal(left: object, right: object) -> bool:
    """Equal by value: numbers of any type, lists and tuples alike; NaN equals itself."""
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right or same(left, right)


def _only_types(verdicts: Sequence[Verdict], expected: Sequence[object]) -> bool:
    wrong = [(v, e) for v, e in zip(verdicts, expected, strict=True) if v.status != "pass"]
    return bool(wrong) and all(
        v.status == "fail" and v.answered and not v.equal and equal(v.actual, e) for v, e in wrong
    )
