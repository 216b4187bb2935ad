"""Verify one case: everything that *verified* means, as a list of shortfalls.

============  =====================================================================================
recorded      there is a record of its observations
executed      the failure fails; each attempt fails, and fixes something; the repair passes; every
              label is reported once, by the runner and by the stand-alone program
reproduced    another environment (interpreter, version, system or machine) shows the same
adequate      the repair answers generated inputs as the oracle does; every wrong implementation,
              mutant and control is noticed; nothing is flaky
============  =====================================================================================

Only an adequate case is *verified*.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from failuremap.archive import Case
from failuremap.archive.new import UNFILLED
from failuremap.documents import held_problem
from failuremap.fixtures import Fixture
from failuremap.programs.render import render
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.running import Run
from failuremap.verify.contract import GENERATED, ContractReport
from failuremap.verify.gate import Gate, Suspect, begin_gate, finish_gate, stale_excuses
from failuremap.verify.observations import (
    Observation,
    compare,
    lasting,
    observation_document,
    read_observations,
    record,
)
from failuremap.verify.standalone import standalone_problems
from failuremap.verify.work import Work

__all__ = ["LEVELS", "CaseReport", "Verification"]

LEVELS = ("none", "recorded", "executed", "reproduced", "adequate")


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What verifying a case came to."""

    case: Case
    level: str
    fixtures: int
    gate: Gate | None
    shortfalls: tuple[str, ...]
    seconds: float
    infra: bool = False

    @property
    def verified(self) -> bool:
        """Whether the case may be called verified."""
        return self.level == LEVELS[-1]

    def document(self) -> dict[str, object]:
        """As JSON, with the kill matrix."""
        return {
            "case": self.case.id,
            "family": self.case.family.slug,
            "level": self.level,
            "fixtures": self.fixtures,
            "shortfalls": list(self.shortfalls),
            "seconds": round(self.seconds, 3),
            "kill_matrix": self.gate.matrix() if self.gate is not None else [],
        }


@dataclass(slots=True)
class _Shortfalls:
    """What each level above *recorded* lacks."""

    executed: list[str] = field(default_factory=list)
    reproduced: list[str] = field(default_factory=list)
    adequate: list[str] = field(default_factory=list)


class Verification:
    """One case being verified: the constructor submits the runs, ``finish`` judges them."""

    def __init__(self, work: Work, case: Case) -> None:
        self._work = work
        self._case = case
        self._started = time.monotonic()
        self._started_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._fixtures: list[Fixture] = case.fixtures()
        self._interpreters = work.settings.interpreters
        self._roles: dict[tuple[str, Interpreter], Future[Run]] = {
            (role, interpreter): work.run_repeatedly(
                case, case.implementation(role), self._fixtures, interpreter
            )
            for role in case.family.roles
            for interpreter in self._interpreters
        }
        self._whole = {role: work.run_whole(case, render(case, role)) for role in case.family.roles}
        self._gate = begin_gate(work, case, self._fixtures)
        self._contract: Future[ContractReport] | None = None
        if "repair" in case.family.roles:
            self._contract = work.check_contract(
                case, case.implementation("repair"), self._fixtures
            )

    def finish(self, *, write: bool = False) -> CaseReport:
        """Wait for the runs and judge them; ``write`` records environments without a record."""
        roles = self._case.family.roles
        runs = {
            interpreter: {role: self._roles[role, interpreter].result() for role in roles}
            for interpreter in self._interpreters
        }
        short = _Shortfalls()
        own = runs[self._interpreters[0]]
        self._judge_roles(own, short)
        gate = finish_gate(self._gate)
        self._judge_gate(gate, short)
        self._judge_contract(short)
        records = self._judge_environments(runs, short, write=write)
        infra = bool(gate.infra) or any(
            verdict.status == "infra"
            for by_role in runs.values()
            for run in by_role.values()
            for verdict in run.verdicts
        )
        return self._report(gate, short, records, infra=infra)

    def _judge_roles(self, runs: Mapping[str, Run], short: _Shortfalls) -> None:
        failed = _unpassed(runs["failure"])
        if not failed:
            short.executed.append("the failure passes every fixture")
        for role in self._case.family.attempts:
            still = _unpassed(runs[role])
            if not still:
                short.executed.append(f"{role} passes every fixture")
            if not failed - still:
                short.executed.append(f"{role} fixes nothing that the failure fails")
        if "repair" not in runs:
            short.executed.append("the repair is held: name its root with --private")
        elif problem := held_problem(self._case):
            short.executed.append(problem)
        elif unpassed := _unpassed(runs["repair"]):
            short.executed.append(f"the repair fails {', '.join(sorted(unpassed))}")
        for role, run in runs.items():
            found = self._whole[role].result()
            problems = standalone_problems(found, self._fixtures, run)
            short.executed += [f"{role}: {problem}" for problem in problems]

    def _judge_environments(
        self, runs: Mapping[Interpreter, Mapping[str, Run]], short: _Shortfalls, *, write: bool
    ) -> list[Observation]:
        """Compare what every environment showed, now and on record."""
        documents = {
            interpreter: observation_document(
                self._case,
                self._fixtures,
                by_role,
                interpreter,
                started_at=self._started_at,
                duration_seconds=time.monotonic() - self._started,
            )
            for interpreter, by_role in runs.items()
        }
        records = read_observations(self._case)
        on_file = {observation.environment for observation in records}
        for interpreter, document in documents.items():
            if write and interpreter.environment not in on_file and lasting(runs[interpreter]):
                record(self._case, interpreter, document)
        if write:
            records = read_observations(self._case)
        own = documents[self._interpreters[0]]
        shown = [Observation(i.environment, d) for i, d in documents.items()]
        for observation in [*shown, *records]:
            short.reproduced += compare(observation, own)
        environments = {observation.environment for observation in [*shown, *records]}
        if len(environments) == 1:
            short.reproduced.append("seen in one environment only: run it on another Python")
        flaky = {
            f"{role}: {verdict.label}: {verdict.message}"
            for by_role in runs.values()
            for role, run in by_role.items()
            for verdict in run.verdicts
            if verdict.status == "flaky"
        }
        short.adequate += [f"flaky: {words}" for words in sorted(flaky)]
        return records

    def _judge_contract(self, short: _Shortfalls) -> None:
        if self._contract is None:
            return
        report = self._contract.result()
        short.adequate += report.problems
        if not report.problems and report.generated < GENERATED:
            short.adequate.append(f"{report.generated} of {GENERATED} generated inputs were run")

    def _judge_gate(self, gate: Gate, short: _Shortfalls) -> None:
        family = self._case.family
        short.adequate += [f"{_said(suspect)} {words}" for suspect, words in gate.complaints]
        short.adequate += [f"no fixture notices {_said(suspect)}" for suspect in gate.survivors]
        short.adequate += [
            f"{_said(suspect)} is said to be equivalent, and a fixture notices it"
            for suspect in gate.wrongly_excused
        ]
        short.adequate += [
            f"family.toml excuses a mutant that there is not: {name}"
            for name in stale_excuses(family)
        ]
        sources = [family.contract, family.fixtures, *family.prose.values()]
        sources += [*family.implementations.values(), *family.wrong.values()]
        if any(UNFILLED in text for text in sources):
            short.adequate.append(f"a file of the family still says {UNFILLED}")
        if not family.wrong:
            short.adequate.append("there is no wrong implementation under wrong/")

    def _report(
        self, gate: Gate, short: _Shortfalls, records: Sequence[Observation], *, infra: bool
    ) -> CaseReport:
        level = LEVELS[0]
        reached = [
            ("recorded", [] if records else ["no observations on record: verify with --record"]),
            ("executed", short.executed),
            ("reproduced", short.reproduced),
            ("adequate", short.adequate),
        ]
        for name, lacking in reached:
            if lacking:
                break
            level = name
        if level == "none" and not short.executed:
            level = "executed"  # a new case runs before it is recorded
        if infra:
            level = LEVELS[0]
        return CaseReport(
            self._case,
            level,
            len(self._fixtures),
            gate,
            tuple(words for _, lacking in reached for words in lacking),
            self._work.seconds[self._case.id],
            infra,
        )


def _unpassed(run: Run) -> set[str]:
    return {verdict.label for verdict in run.verdicts if verdict.status != "pass"}


def _said(suspect: Suspect) -> str:
    return f"the {suspect.kind} {suspect.name!r}"
