"""What a published case says, whatever form it came in.

A program's ``source`` is the text that its digest confirms. Where nothing is confirmed it is the
text as it was read, and ``status`` says so: only ``MATCHES`` is ever a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from failuremap.programs.split import SplitProgram, split_program

__all__ = ["DigestStatus", "PublishedCase", "PublishedObservation", "PublishedProgram"]


class DigestStatus(StrEnum):
    """What became of the comparison with the published SHA-256 of a source."""

    MATCHES = "digest matches"
    DIFFERS = "digest differs"
    """The text is whole, as far as can be seen, and hashes to something else."""
    UNCHECKED = "digest cannot be checked"
    """No digest was published, or the text has lost whitespace that could not be restored."""


@dataclass(frozen=True, slots=True)
class PublishedObservation:
    """One row of a published table; ``where`` says where it stands."""

    label: str
    actual: object
    expected: object
    passed: bool
    where: str


@dataclass(frozen=True, slots=True)
class PublishedProgram:
    """A published program with what was observed of it.

    Attributes:
        role: ``failure``, ``attempt-1``, ``attempt-2``, ... or ``repair``.
        source: The text that the digest confirms, else the text as it was read.
        digest: The published SHA-256, in lower case; None where none is published.
        status: What became of the comparison.
        restored: What was put back before the digest matched, in words; empty if nothing was.
        note: Why the digest differs or cannot be checked, and what to do; empty if it matches.
        exit_code: The published exit status; None where none is published.
        observations: The published table, labels unique, at least one row.
        where: Where the program begins.
    """

    role: str
    source: str
    digest: str | None
    status: DigestStatus
    restored: tuple[str, ...]
    note: str
    exit_code: int | None
    observations: tuple[PublishedObservation, ...]
    where: str

    def split(self) -> SplitProgram:
        """The program in parts; ``ImportFailure`` names the first line that has no place."""
        return split_program(self.source, name=f"the {self.role} program ({self.where})")


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """A published case.

    Attributes:
        id: ``FA-`` and at least five digits.
        domain: As published; empty where a document does not say.
        tier: As published; empty where a document does not say.
        title: Without the number of the variant.
        variant: The number of the variant; None where a document does not say.
        texts: The prose by heading: ``root_cause``, ``failure``, ``attempt``, ``contract``,
            ``why``, ``scope`` and whatever else was published, in the order of the page.
        programs: In the order of the page.
        held: The roles that are named without a program.
        case_digest: The published digest of the case, not checked here.
        interpreter: The version of Python that the observations were recorded with.
        recorded_at: When, as published.
        form: A page states values as Python literals; in JSON a tuple has become a list.
    """

    id: str
    domain: str
    tier: str
    title: str
    variant: int | None
    texts: tuple[tuple[str, str], ...]
    programs: tuple[PublishedProgram, ...]
    held: tuple[str, ...]
    case_digest: str | None
    interpreter: str | None
    recorded_at: str | None
    form: Literal["page", "json"]

    def text(self, name: str) -> str:
        """The prose under a heading; empty where there is none."""
        return dict(self.texts).get(name, "")

    def program(self, role: str) -> PublishedProgram | None:
        """The program of a role; None where there is none."""
        return next((program for program in self.programs if program.role == role), None)
