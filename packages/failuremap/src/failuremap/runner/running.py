"""Run a program against fixtures."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from failuremap.errors import InfraError
from failuremap.fixtures import Fixture
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Answer, Child, Load
from failuremap.runner.verdicts import Verdict, agreed, judge

__all__ = ["HASH_SEEDS", "REPEATS", "Run", "run_fixtures", "run_repeatedly"]

_TOO_LATE = "not asked: the time for all of them is used up"
HASH_SEEDS = (0, 1, 2)
REPEATS = 2


@dataclass(frozen=True, slots=True)
class Run:
    """The verdicts on a program's fixtures, in their order, and the isolation that applied."""

    verdicts: tuple[Verdict, ...]
    isolation: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every fixture passed."""
        return all(verdict.status == "pass" for verdict in self.verdicts)

    @property
    def exit_code(self) -> int:
        """What the stand-alone program would exit with."""
        return 0 if self.passed else 1


def run_fixtures(
    load: Load,
    fixtures: Sequence[Fixture],
    interpreter: Interpreter,
    limits: Limits,
    *,
    hash_seed: int = 0,
    deadline: float | None = None,
) -> Run:
    """Ask every fixture's question, in order; a child that ends is followed by a fresh one.

    A question without an answer in time is asked once more with more time, because a busy machine
    must not look like a program that does not end. Trouble with the machine is tried once more and
    then recorded as ``infra``. After the deadline (of ``time.monotonic``) nothing more is asked.
    """
    verdicts: list[Verdict] = []
    isolation: tuple[str, ...] = ()
    troubles = 0
    patient = False
    while len(verdicts) < len(fixtures):
        rest = fixtures[len(verdicts) :]
        if deadline is not None and time.monotonic() >= deadline:
            verdicts += [Verdict(f.label, "timeout", message=_TOO_LATE) for f in rest]
            break
        allowed = limits.with_more_time() if patient else limits
        try:
            with Child(load, interpreter, allowed, hash_seed=hash_seed) as child:
                isolation = child.isolation
                answers = _answers(child, rest[:1] if patient else rest)
                late = _judge_until_late(answers, verdicts, patient=patient)
            patient = late
        except InfraError as error:
            troubles += 1
            if troubles > 1:
                rest = fixtures[len(verdicts) :]
                verdicts += [Verdict(f.label, "infra", message=str(error)) for f in rest]
    return Run(tuple(verdicts), isolation)


def _judge_until_late(
    answers: Iterator[tuple[Fixture, Answer]], verdicts: list[Verdict], *, patient: bool
) -> bool:
    """Append verdicts; whether the last answer was late and is worth asking for again."""
    for fixture, answer in answers:
        if answer.outcome == "timeout" and not patient:
            return True
        verdicts.append(judge(fixture, answer))
    return False


def _answers(child: Child, fixtures: Sequence[Fixture]) -> Iterator[tuple[Fixture, Answer]]:
    """Answers until the child has ended; a source that did not load answers every question."""
    for fixture in fixtures:
        yield fixture, child.ask(fixture.question)
        if child.ended and child.failed is None:
            return


def run_repeatedly(
    load: Load, fixtures: Sequence[Fixture], interpreter: Interpreter, limits: Limits
) -> Run:
    """Across hash seeds and repeats: what all runs agree on, ``flaky`` where they do not."""
    runs = [
        run_fixtures(load, fixtures, interpreter, limits, hash_seed=seed)
        for seed in HASH_SEEDS
        for _ in range(REPEATS)
    ]
    return Run(tuple(agreed([run.verdicts for run in runs])), runs[0].isolation)
