"""A program as it was found, made a published program: restored, labelled, of this case."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from failuremap.errors import ImportFailure
from failuremap.importing.model import PublishedObservation, PublishedProgram
from failuremap.importing.restore import restore
from failuremap.importing.tables import published_label

__all__ = ["FoundProgram", "published"]

_ID = re.compile(r"\bFA-\d{5,9}\b")
_HEAD = re.compile(r"(?s)\W*(.{0,2000}?)(?:\"{3}|'{3}|”””|\nimport |$)")


@dataclass(frozen=True, slots=True)
class FoundProgram:
    """What stands in a section, or under a role, before anything is made of it."""

    role: str
    text: str
    digest: str | None
    exit_code: int | None
    observations: tuple[PublishedObservation, ...]
    where: str


def published(found: FoundProgram, case: str) -> PublishedProgram:
    """The program with its digest compared; ``ImportFailure`` if it says it is of another case."""
    head = _HEAD.match(found.text)
    named = _ID.findall(head[1]) if head else []
    if named and case not in named:
        raise ImportFailure(
            f"{found.where}: the case is {case}, and this program says that it is of {named[0]}; "
            "give one case, as it was published"
        )
    outcome = restore(found.text, found.digest)
    return PublishedProgram(
        role=found.role,
        source=outcome.source,
        digest=found.digest,
        status=outcome.status,
        restored=outcome.restored,
        note=outcome.note,
        exit_code=found.exit_code,
        observations=tuple(
            replace(row, label=published_label(row.label, outcome.source))
            for row in found.observations
        ),
        where=found.where,
    )
