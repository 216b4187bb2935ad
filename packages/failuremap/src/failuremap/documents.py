"""A case as JSON: what its digest covers, and the document that is published.

The case digest is SHA-256 over canonical JSON of what makes the case what it is, with no times in
it: schema, id, family, variant, parameters, groups, the source digests of the open roles, the
digests of fixtures and contract, and the commitment to what is held.

The published document (``schemas/case-1.json`` describes it) adds what a reader needs: the prose,
the sources as stand-alone programs, the fixtures with their tagged values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources

import jsonschema

from failuremap.archive import Case
from failuremap.digests import canonical, commitment, document_digest, source_digest
from failuremap.errors import ImportFailure, UsageError
from failuremap.fixtures import fixtures_digest
from failuremap.programs.render import program_digest, render
from failuremap.values import json_view, tag, untag

__all__ = [
    "SCHEMA",
    "case_digest",
    "case_document",
    "case_schema",
    "digest_of_document",
    "digested",
    "held_problem",
    "observed_where",
    "open_roles",
    "recorded",
    "validate_document",
]

SCHEMA = 1
_DIGESTED = (
    *("schema", "id", "family", "variant", "params", "groups", "sources", "fixtures"),
    *("contract", "held"),
)


def open_roles(case: Case) -> list[str]:
    """The roles whose sources may be shown."""
    if case.tier == "open":
        return list(case.family.roles)
    if case.tier == "held-repair":
        return [role for role in case.family.roles if role != "repair"]
    return []


def digested(case: Case) -> dict[str, object]:
    """The document that the case digest covers."""
    return {
        "schema": SCHEMA,
        "id": case.id,
        "family": case.family.slug,
        "variant": case.variant,
        "params": {name: tag(value) for name, value in case.parameters.items()},
        "groups": sorted(case.family.evaluation_groups),
        "sources": {role: program_digest(case, role) for role in open_roles(case)},
        "fixtures": fixtures_digest(case.fixtures()),
        "contract": source_digest(case.family.contract),
        "held": case.commitment,
    }


def held_problem(case: Case) -> str:
    """Why the commitment of a held case is not that of the held files; empty if it is.

    A held repair is committed to as it lies; a held group as the document that its digest covers.
    """
    if case.tier == "open":
        return ""
    if case.family.nonce is None:
        return "the commitment cannot be checked: expected a nonce beside the held files"
    if case.tier == "held-group":
        held = canonical({**digested(case), "held": None}).decode()
    else:
        held = case.implementation("repair")
    found = commitment(held, case.family.nonce)
    return "" if found == case.commitment else f"the held files come to the commitment {found}"


def case_digest(case: Case) -> str:
    """The digest (hex) of a case."""
    return document_digest(digested(case))


def case_document(case: Case, record: Mapping[str, object] | None = None) -> dict[str, object]:
    """The published document of a case: nothing held is in it.

    A case of which the whole group is held has none. ``record`` is one environment's observations;
    with it, each program has its exit code and its table, in plain JSON.
    """
    if case.tier == "held-group":
        raise UsageError(f"{case.id}: all of its group is held for members: nothing is published")
    family = case.family
    withdrawn = case.withdrawn
    return {
        **digested(case),
        "digest": case_digest(case),
        "tier": case.tier,
        "title": family.title,
        "domain": family.domain,
        "prose": dict(family.prose),
        "arguments": list(family.arguments),
        "compare": family.compare,
        "citations": list(family.sources),
        "supersedes": list(case.supersedes),
        "withdrawn": {"at": withdrawn.at, "reason": withdrawn.reason} if withdrawn else None,
        "contract_source": family.contract,
        "programs": {
            role: {
                "source": render(case, role),
                "sha256": program_digest(case, role),
                **(recorded(record, role) if record is not None else {}),
            }
            for role in open_roles(case)
        },
        "checks": [fixture.document() for fixture in case.fixtures()],
        "observed": observed_where(record) if record is not None else None,
    }


def observed_where(record: Mapping[str, object]) -> dict[str, object]:
    """Where and when the observations were recorded."""
    return {name: record[name] for name in ("environment", "started_at", "runner", "digest")}


def recorded(record: Mapping[str, object], role: str) -> dict[str, object]:
    """A program's exit code and table, as the program itself prints it."""
    roles: Mapping[str, Mapping[str, object]] = record["roles"]  # type: ignore[assignment]
    rows: list[Mapping[str, object]] = roles[role]["observations"]  # type: ignore[assignment]
    return {
        "exit_code": roles[role]["exit_code"],
        "observations": [
            {
                "check": row["check"],
                "actual": json_view(untag(row["actual"])) if row["actual"] is not None else None,
                "expected": json_view(untag(row["expected"])),
                "passed": row["status"] == "pass",
            }
            for row in rows
        ],
    }


def digest_of_document(document: Mapping[str, object]) -> str:
    """The case digest that a published document comes to, from its own fields."""
    return document_digest({name: document[name] for name in _DIGESTED})


def case_schema() -> dict[str, object]:
    """The JSON Schema (2020-12) of the published document."""
    text = resources.files("failuremap").joinpath("schemas/case-1.json").read_text("utf-8")
    schema: dict[str, object] = json.loads(text)
    return schema


def validate_document(document: object, *, name: str = "case.json") -> None:
    """``ImportFailure`` says which field of a document is not what the schema says."""
    validator = jsonschema.Draft202012Validator(case_schema())
    problem = next(iter(sorted(validator.iter_errors(document), key=lambda e: e.json_path)), None)
    if problem is not None:
        raise ImportFailure(f"{name}: {problem.json_path}: {problem.message[:300]}")
