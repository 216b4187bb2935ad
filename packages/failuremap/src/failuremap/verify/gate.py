"""The mutation gate and the controls: do the fixtures notice what is wrong?

Wrong implementations written by hand, and every syntax-tree mutant of the repair and of the
attempts, must each be killed by a fixture. A survivor needs a new fixture, or an ``equivalent``
entry in ``family.toml`` that says why no input can tell it from its source.

Controls are programs that know nothing: one that does nothing, one that always gives the commonest
expected value, one whose answer equals everything, one that exits with status 0. One that passes
means that the fixtures, or the runner, are worth nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from failuremap.archive import Case, Family
from failuremap.fixtures import Fixture
from failuremap.mutation import mutants
from failuremap.runner.running import Run
from failuremap.verify.contract import ContractReport
from failuremap.verify.work import Work

__all__ = ["Gate", "Suspect", "Trial", "begin_gate", "controls", "finish_gate", "suspects"]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A program that the fixtures must notice: a wrong implementation, a mutant, a control."""

    kind: str
    name: str
    source: str
    excused: str = ""
    """Why no fixture can notice it, from an ``equivalent`` entry."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The kill matrix: for every suspect, the labels of the fixtures that noticed it."""

    kills: Mapping[Suspect, tuple[str, ...]]
    infra: tuple[Suspect, ...]
    complaints: tuple[tuple[Suspect, str], ...] = ()
    """Suspects that are not what they are kept for, and why."""

    @property
    def survivors(self) -> list[Suspect]:
        """Suspects that no fixture noticed and no entry excuses."""
        return [s for s, labels in self.kills.items() if not labels and not s.excused]

    @property
    def wrongly_excused(self) -> list[Suspect]:
        """Suspects that are said to be equivalent and were noticed all the same."""
        return [s for s, labels in self.kills.items() if labels and s.excused]

    @property
    def counted(self) -> tuple[int, int]:
        """How many suspects were killed, of how many that could be."""
        able = [labels for suspect, labels in self.kills.items() if not suspect.excused]
        return sum(bool(labels) for labels in able), len(able)

    def matrix(self) -> list[dict[str, object]]:
        """The kill matrix as JSON."""
        return [
            {
                "kind": suspect.kind,
                "name": suspect.name,
                "killed_by": list(labels),
                **({"equivalent": suspect.excused} if suspect.excused else {}),
            }
            for suspect, labels in self.kills.items()
        ]


def suspects(family: Family, fixtures: Sequence[Fixture]) -> list[Suspect]:
    """All that the fixtures of a family must notice."""
    excuses = {entry.digest: entry.reason for entry in family.equivalents}
    found = [Suspect("wrong", name, source) for name, source in family.wrong.items()]
    for role in family.roles:
        if role == "failure":
            continue
        for mutant in mutants(family.implementations[role]):
            excuse = excuses.get(mutant.digest, "")
            found.append(Suspect(f"mutant of {role}", mutant.name, mutant.source, excuse))
    return [*found, *controls(fixtures)]


def controls(fixtures: Sequence[Fixture]) -> Iterator[Suspect]:
    """Programs that know nothing."""
    head = "def solve(*arguments):\n"
    values = Counter(repr(fixture.expected) for fixture in fixtures)
    commonest = values.most_common(1)[0][0]
    always = (
        "class Always:\n"
        "    def __eq__(self, other):\n        return True\n\n"
        "    __hash__ = None\n\n\n"
    )
    programs = {
        "does nothing": f"{head}    return None\n",
        "gives the commonest expected value": f"{head}    return {_literal(commonest)}\n",
        "equals everything": f"{always}{head}    return Always()\n",
        "exits with status 0": f"import os\n\n\n{head}    os._exit(0)\n",
        "raises SystemExit(0)": f"{head}    raise SystemExit(0)\n",
        "gives back its first argument": f"{head}    return arguments[0]\n",
    }
    for name, source in programs.items():
        yield Suspect("control", name, source)


def _literal(text: str) -> str:
    return text.replace("nan", 'float("nan")').replace("inf", 'float("inf")')


@dataclass(frozen=True, slots=True)
class Trial:
    """A suspect being run: against the fixtures and, if it is excused, against the contract."""

    suspect: Suspect
    run: Future[Run]
    contract: Future[ContractReport] | None


def begin_gate(work: Work, case: Case, fixtures: Sequence[Fixture]) -> list[Trial]:
    """Have every suspect run against the fixtures, and those that are excused on inputs, too."""
    return [
        Trial(
            suspect,
            work.run_once(case, suspect.source, fixtures),
            work.check_contract(case, suspect.source, fixtures) if suspect.excused else None,
        )
        for suspect in suspects(case.family, fixtures)
    ]


def finish_gate(trials: Sequence[Trial]) -> Gate:
    """The kill matrix of what was begun."""
    kills: dict[Suspect, tuple[str, ...]] = {}
    infra = []
    complaints = []
    for trial in trials:
        suspect = trial.suspect
        verdicts = trial.run.result().verdicts
        kills[suspect] = tuple(v.label for v in verdicts if v.status not in ("pass", "infra"))
        if any(verdict.status == "infra" for verdict in verdicts):
            infra.append(suspect)
        if suspect.kind == "wrong" and not any(verdict.status == "pass" for verdict in verdicts):
            complaints.append((suspect, f"passes no fixture: {verdicts[0].message}"))
        if trial.contract is not None and (problems := trial.contract.result().problems):
            complaints.append((suspect, f"is not equivalent: {problems[0]}"))
    return Gate(kills, tuple(infra), tuple(complaints))


def stale_excuses(family: Family) -> list[str]:
    """Equivalent entries that no mutant has any more."""
    known = {
        mutant.digest
        for role in family.roles
        if role != "failure"
        for mutant in mutants(family.implementations[role])
    }
    return [entry.mutant for entry in family.equivalents if entry.digest not in known]
