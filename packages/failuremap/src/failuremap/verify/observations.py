"""Observations: what the programs of a case did, recorded once an environment and never rewritten.

``observations/<case digest>/<environment>.json`` holds the verdicts of every role. A case whose
sources, fixtures or contract change has another digest, so an old record never speaks for it. The
record's own digest covers everything but the times.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from failuremap.archive import Case
from failuremap.digests import document_digest
from failuremap.documents import case_digest, open_roles
from failuremap.errors import ArchiveError
from failuremap.fixtures import Fixture
from failuremap.programs.render import program_digest
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.running import HASH_SEEDS, REPEATS, Run
from failuremap.runner.verdicts import Verdict
from failuremap.values import tag
from failuremap.verify.cache import RUNNER

__all__ = ["Observation", "compare", "observation_document", "read_observations", "record"]

SCHEMA = 1
_TIMES = ("started_at", "duration_seconds", "digest")


@dataclass(frozen=True, slots=True)
class Observation:
    """A recorded file: its environment and its document."""

    environment: str
    document: Mapping[str, object]


def observation_document(
    case: Case,
    fixtures: list[Fixture],
    runs: Mapping[str, Run],
    interpreter: Interpreter,
    *,
    started_at: str,
    duration_seconds: float,
) -> dict[str, object]:
    """The record of one environment: every role's verdicts, tagged.

    A repair that is held apart from its open family is left out: its digest and its answers would
    confirm guesses.
    """
    shown = case.family.roles if case.tier == "held-group" else open_roles(case)
    document: dict[str, object] = {
        "schema": SCHEMA,
        "case": case.id,
        "case_digest": case_digest(case),
        "runner": RUNNER,
        "environment": {
            "implementation": interpreter.implementation,
            "version": interpreter.version,
            "system": interpreter.system,
            "machine": interpreter.machine,
        },
        "hash_seeds": list(HASH_SEEDS),
        "repeats": REPEATS,
        "isolation": list(next(iter(runs.values())).isolation),
        "roles": {
            role: _role(case, role, fixtures, run) for role, run in runs.items() if role in shown
        },
        "started_at": started_at,
        "duration_seconds": round(duration_seconds, 3),
    }
    return {**document, "digest": record_digest(document)}


def record_digest(document: Mapping[str, object]) -> str:
    """SHA-256 of a record without its times."""
    return document_digest({k: v for k, v in document.items() if k not in _TIMES})


def _role(case: Case, role: str, fixtures: list[Fixture], run: Run) -> dict[str, object]:
    return {
        "source": program_digest(case, role),
        "exit_code": run.exit_code,
        "observations": [
            _observed(fixture, verdict)
            for fixture, verdict in zip(fixtures, run.verdicts, strict=True)
        ],
    }


def _observed(fixture: Fixture, verdict: Verdict) -> dict[str, object]:
    return {
        "check": fixture.label,
        "status": verdict.status,
        "actual": tag(verdict.actual) if verdict.answered else None,
        "expected": tag(fixture.expected),
        "message": "" if verdict.answered else verdict.message,
    }


def _folder(case: Case) -> Path:
    """Beside the family: the records of a held group are held with it."""
    return case.family.folder.parents[1] / "observations" / case_digest(case)


def read_observations(case: Case) -> list[Observation]:
    """The records of a case as it is now, one an environment; a record must have its own digest."""
    found = []
    for file in sorted(_folder(case).glob("*.json")):
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
            sound = document["digest"] == record_digest(document)
            named = environment_name(document["environment"])
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise ArchiveError(f"{file}: not an observation: {error}") from None
        if not sound or document["case_digest"] != case_digest(case):
            raise ArchiveError(f"{file}: changed since it was recorded: its digest differs")
        if named != file.stem:
            raise ArchiveError(f"{file}: expected the name of its environment, {named}.json")
        found.append(Observation(file.stem, document))
    return found


def environment_name(environment: Mapping[str, str]) -> str:
    """What a record's file is called."""
    return "-".join(environment[n] for n in ("implementation", "version", "system", "machine"))


def lasting(runs: Mapping[str, Run]) -> bool:
    """Whether runs may be recorded: the machine was well, and they agreed."""
    statuses = {verdict.status for run in runs.values() for verdict in run.verdicts}
    return not statuses & {"infra", "flaky"}


def compare(recorded: Observation, now: Mapping[str, object]) -> list[str]:
    """What a run shows otherwise than a record of the same case, in words; empty if nothing."""
    theirs, ours = recorded.document["roles"], now["roles"]
    assert isinstance(theirs, dict)
    assert isinstance(ours, dict)
    differences = []
    for role in sorted(theirs.keys() | ours.keys()):
        if theirs.get(role) == ours.get(role):
            continue
        labels = _differing(theirs.get(role), ours.get(role))
        differences.append(f"{role} differs from the record of {recorded.environment}: {labels}")
    return differences


def _differing(theirs: object, ours: object) -> str:
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return "one of them has no such role"
    pairs = zip(theirs["observations"], ours["observations"], strict=False)
    labels = [repr(b["check"]) for a, b in pairs if a != b]
    return ", ".join(labels) or "another source or number of fixtures"


def record(case: Case, interpreter: Interpreter, document: object) -> Path:
    """Write a record where there is none yet: beside its place, then renamed."""
    file = _folder(case) / f"{interpreter.environment}.json"
    beside = file.with_suffix(f".{os.getpid()}.tmp")
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        raise ArchiveError(f"{file} cannot be recorded: {error}") from None
    return file
