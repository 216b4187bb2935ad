"""Do published programs do what their page says? Digests first, then every fixture again.

Nothing is taken on trust and nothing is rounded up: a program whose digest could not be checked
does not pass, even if all of its observations reproduce.

A published ``check`` compares with ``==``, ours type by type. Where the two differ (5 and 5.0), a
recorded outcome of either kind reproduces; the value itself must be the recorded one all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from failuremap.errors import FailureMapError
from failuremap.fixtures import Fixture, parse_fixtures
from failuremap.importing.model import (
    DigestStatus,
    PublishedCase,
    PublishedObservation,
    PublishedProgram,
)
from failuremap.runner.interpreters import this_interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Load
from failuremap.runner.running import run_fixtures
from failuremap.runner.verdicts import Verdict
from failuremap.values import json_view, same, shown
from failuremap.verify.standalone import run_program

__all__ = ["SECONDS", "Reproduction", "Row", "reproduce"]

SECONDS = 120.0
"""For all programs of one file: a stranger's page cannot keep us for longer."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fixture: whether its recorded observation reproduces, and in what way it does not."""

    label: str
    reproduces: bool
    words: str = ""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """One program run again; ``problem`` says what stands in the way of the whole of it."""

    program: PublishedProgram
    rows: tuple[Row, ...]
    problem: str = ""
    infra: bool = False

    @property
    def good(self) -> bool:
        """Whether the digest checks and every observation reproduces."""
        matches = self.program.status is DigestStatus.MATCHES
        return matches and not self.problem and all(row.reproduces for row in self.rows)


def reproduce(case: PublishedCase, *, seconds: float = SECONDS) -> list[Reproduction]:
    """Run every program of a published case again, in confined children, for so long at most."""
    deadline = time.monotonic() + seconds
    return [_reproduced(program, deadline) for program in case.programs]


def _reproduced(program: PublishedProgram, deadline: float) -> Reproduction:
    try:
        parts = program.split()
        fixtures = parse_fixtures(parts.fixtures, parts.params, file=program.where)
    except FailureMapError as error:
        return Reproduction(program, (), f"it cannot be run fixture by fixture: {error}")
    load = Load.source(parts.implementation, parameters=dict(parts.params))
    run = run_fixtures(load, fixtures, this_interpreter(), Limits(), deadline=deadline)
    infra = any(verdict.status == "infra" for verdict in run.verdicts)
    rows = tuple(_rows(program.observations, fixtures, run.verdicts))
    problem = ""
    exit_code = 0 if all(o.passed for o in program.observations) else 1
    if program.exit_code is not None and program.exit_code != exit_code:
        problem = f"Exit {program.exit_code} is published, its own table says {exit_code}"
    elif all(row.reproduces for row in rows):
        problem = _whole_problem(program, exit_code, deadline)
    return Reproduction(program, rows, problem, infra)


def _whole_problem(program: PublishedProgram, exit_code: int, deadline: float) -> str:
    """How the program, run whole with its own ``check``, differs from its table."""
    if time.monotonic() >= deadline:
        return "it was not run whole: the time for this file is used up"
    found = run_program(program.source, this_interpreter())
    if isinstance(found, str):
        return f"run whole, {found}"
    status, printed = found
    if status != exit_code:
        return f"run whole, it exits {status}, not {exit_code}"
    table = [
        {
            "check": row.label,
            "actual": json_view(row.actual),
            "expected": json_view(row.expected),
            "passed": row.passed,
        }
        for row in program.observations
    ]
    return "" if printed == table else "run whole, it prints other observations than its table"


def _rows(
    recorded: Sequence[PublishedObservation],
    fixtures: Sequence[Fixture],
    verdicts: Sequence[Verdict],
) -> Iterator[Row]:
    """Fixtures of the program in their order, then rows of the table that are no fixture."""
    by_label = {observation.label: observation for observation in recorded}
    for fixture, verdict in zip(fixtures, verdicts, strict=True):
        observation = by_label.pop(fixture.label, None)
        words = (
            "the table has no such row"
            if observation is None
            else _difference(observation, fixture, verdict)
        )
        yield Row(fixture.label, not words, words)
    for label, observation in by_label.items():
        yield Row(label, reproduces=False, words=f"no such fixture ({observation.where})")


def _difference(observation: PublishedObservation, fixture: Fixture, verdict: Verdict) -> str:
    """How an observation differs from what was seen now; empty if it does not."""
    if not _alike(observation.expected, fixture.expected):
        return (
            f"the table expects {shown(observation.expected)}, the program"
            f" {shown(fixture.expected)}"
        )
    if not verdict.answered:
        return f"now {verdict.status}: {verdict.message}"
    if not _alike(observation.actual, verdict.actual):
        return f"recorded {shown(observation.actual)}, now {shown(verdict.actual)}"
    loosely = verdict.actual == fixture.expected
    exactly = same(verdict.actual, fixture.expected)
    if observation.passed not in (loosely, exactly):
        return f"recorded as {'pass' if observation.passed else 'fail'}, now the other"
    return ""


def _alike(published: object, seen: object) -> bool:
    """A page or a document writes tuples as lists as often as not."""
    return same(json_view(published), json_view(seen))
