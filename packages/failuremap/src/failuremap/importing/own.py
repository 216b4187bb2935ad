"""Our own document of a case: everything that it states about itself must be so.

A document in another form is read for its programs and observations only. One that says ``schema``
and ``checks`` as ours do is held to all of it: the schema, the case digest from its own fields, the
digests of contract and fixtures from what they cover, each program from its source.
"""

from __future__ import annotations

from collections.abc import Mapping

from failuremap.digests import document_digest, source_digest
from failuremap.documents import digest_of_document, validate_document
from failuremap.errors import FailureMapError, ImportFailure
from failuremap.programs.split import split_program
from failuremap.values import tag

__all__ = ["check_own_document", "is_own"]


def is_own(document: object) -> bool:
    """Whether a document claims to be of our form."""
    return isinstance(document, dict) and {"schema", "checks", "programs"} <= document.keys()


def check_own_document(document: Mapping[str, object], name: str) -> None:
    """``ImportFailure`` names the first statement that is not so."""
    try:
        _check(document, name)
    except FailureMapError:
        raise
    except (ValueError, RecursionError) as error:  # numbers that canonical JSON cannot have
        raise ImportFailure(f"{name}: expected a document that has a digest: {error}") from None


def _check(document: Mapping[str, object], name: str) -> None:
    validate_document(document, name=name)
    stated: list[tuple[str, object, object]] = [
        ("digest", document["digest"], digest_of_document(document)),
        ("contract", document["contract"], source_digest(str(document["contract_source"]))),
        ("fixtures", document["fixtures"], document_digest(document["checks"])),  # type: ignore[arg-type]
    ]
    programs: Mapping[str, Mapping[str, str]] = document["programs"]  # type: ignore[assignment]
    sources: Mapping[str, str] = document["sources"]  # type: ignore[assignment]
    if programs.keys() != sources.keys() or not {"failure", "attempt-1"} <= programs.keys():
        raise ImportFailure(
            f"{name}: programs: expected failure, attempt-1 and the others that sources lists"
        )
    for role, program in programs.items():
        stated.append((f"programs.{role}.sha256", program["sha256"], sources[role]))
        stated.append((f"sources.{role}", sources[role], source_digest(program["source"])))
        parts = split_program(program["source"], name=f"{name}: {role}")
        params = {key: tag(value) for key, value in parts.params.items()}
        stated.append(("params", document["params"], params))
    for field, says, comes_to in stated:
        if says != comes_to:
            raise ImportFailure(f"{name}: {field}: states {says}, comes to {comes_to}")
