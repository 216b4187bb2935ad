"""The repair against the contract: seeded inputs, all valid, all answered as the oracle answers.

The contract runs in a child of its own, so that archive code never runs in the parent, and so that
the child with the repair never holds an expected value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from failuremap.archive import Case
from failuremap.fixtures import Fixture, Question, question_of
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Answer, Child, Load
from failuremap.runner.verdicts import changed
from failuremap.values import same, shown

__all__ = ["GENERATED", "Contract", "check_contract"]

GENERATED = 200
"""Generated inputs that a repair must answer as the oracle does."""
DISTINCT_MIN = 40
"""Of them, those that differ from all others: a generator that repeats itself shows nothing."""
PROBLEMS_MAX = 5


class Contract:
    """A case's contract in its child; it sees the parameters as the implementations do."""

    def __init__(self, case: Case, interpreter: Interpreter, limits: Limits) -> None:
        load = Load.source(
            case.family.contract,
            functions=("valid", "generate", "oracle"),
            parameters=case.parameters,
            file=str(case.family.folder / "contract.py"),
        )
        self._family = case.family
        self._new_child = partial(Child, load, interpreter, limits)
        self._child: Child | None = None

    def __enter__(self) -> Contract:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.end()

    def _running(self) -> Child:
        if self._child is None or self._child.ended:
            self._child = self._new_child().__enter__()
        return self._child

    def valid(self, question: Question) -> Answer:
        """Whether the arguments of a question are in the contract's domain."""
        return self._running().ask(question, function="valid")

    def oracle(self, question: Question) -> Answer:
        """What must come out."""
        return self._running().ask(question, function="oracle")

    def generate(self, seed: str) -> tuple[object, ...] | str:
        """The arguments of one seeded input, or what is wrong with the generator."""
        answer = self._running().generate(seed)
        if answer.outcome != "value":
            return f"generate failed for seed {seed!r}: {answer.outcome}: {answer.message}"
        wanted = len(self._family.arguments)
        if not isinstance(answer.value, tuple) or len(answer.value) != wanted:
            return f"generate must give a tuple of {wanted} arguments, gave {shown(answer.value)}"
        return answer.value

    def problem_with(self, arguments: Sequence[object]) -> str:
        """Why arguments are outside the domain; empty where they are in it."""
        answer = self.valid(question_of(arguments))
        if answer.outcome == "value" and answer.value is True:
            return ""
        said = shown(answer.value) if answer.outcome == "value" else answer.message
        return f"valid says {said} of {shown(tuple(arguments))}"


@dataclass(frozen=True, slots=True)
class ContractReport:
    """How many generated inputs were answered, and what went wrong (the first few)."""

    generated: int
    problems: tuple[str, ...]


def check_contract(
    case: Case,
    repair: Load,
    fixtures: Sequence[Fixture],
    interpreter: Interpreter,
    limits: Limits,
) -> ContractReport:
    """Check fixtures against contract and oracle, then the repair against generated inputs."""
    problems: list[str] = []
    seen: set[str] = set()
    generated = 0
    with Contract(case, interpreter, limits) as contract:
        for fixture in fixtures:
            problems += _fixture_problems(contract, fixture)
        with Child(repair, interpreter, limits) as child:
            for index in range(GENERATED):
                if len(problems) >= PROBLEMS_MAX or child.ended:
                    break
                arguments = contract.generate(f"{case.family.slug}/{index}")
                seen.add(repr(arguments))
                problems += _generated_problems(contract, child, arguments)
                generated += 1
    if not problems and len(seen) < DISTINCT_MIN:
        problems.append(f"generate made {len(seen)} different inputs in {generated}")
    return ContractReport(generated, tuple(problems[:PROBLEMS_MAX]))


def _fixture_problems(contract: Contract, fixture: Fixture) -> list[str]:
    """A fixture asks only for what is valid, and expects what the oracle gives."""
    problems = []
    for arguments in _calls(fixture.question):
        answer = contract.valid(arguments)
        if answer.outcome != "value" or answer.value is not True:
            said = shown(answer.value) if answer.outcome == "value" else answer.message
            problems.append(f"fixture {fixture.label!r}: valid says {said}")
    answer = contract.oracle(fixture.question)
    if answer.outcome != "value":
        problems.append(f"fixture {fixture.label!r}: the oracle failed: {answer.message}")
    elif not same(answer.value, fixture.expected):
        wanted = f"expects {shown(fixture.expected)}, the oracle gives {shown(answer.value)}"
        problems.append(f"fixture {fixture.label!r} {wanted}")
    return problems


def _calls(question: Question) -> list[Question]:
    """Each call of a question as a question of its own."""
    kind, content = question.template
    if kind == "call":
        return [question]
    if kind in ("l", "t"):
        return [
            call
            for template in content  # type: ignore[attr-defined]
            for call in _calls(Question(question.names, template))
        ]
    return []


def _generated_problems(
    contract: Contract, child: Child, arguments: tuple[object, ...] | str
) -> list[str]:
    if isinstance(arguments, str):
        return [arguments]
    made = f"generated input {shown(arguments)}"
    if problem := contract.problem_with(arguments):
        return [f"{made}: {problem}"]
    question = question_of(arguments)
    wanted, came = contract.oracle(question), child.ask(question)
    if wanted.outcome != "value":
        return [f"{made}: the oracle failed: {wanted.message}"]
    if came.outcome != "value":
        return [f"{made}: the repair: {came.outcome}: {came.message}"]
    if not same(wanted.value, came.value):
        gave = f"the repair gives {shown(came.value)}, the oracle {shown(wanted.value)}"
        return [f"{made}: {gave}"]
    if changed(question, came):
        return [f"{made}: the repair changed it"]
    return []
