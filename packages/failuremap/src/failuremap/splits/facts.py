"""What the splits know of a case: that which could make it a relative of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from failuremap.digests import document_digest
from failuremap.errors import SplitError

__all__ = ["CaseFacts", "archive_digest", "by_id"]


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """A case, as far as the splits are concerned.

    Attributes:
        id: The case's id, for example ``FA-99296``.
        family: The slug of its family.
        evaluation_groups: Groups that are evaluated as one.
        contract_digest: SHA-256 of the contract.
        fixtures_digest: SHA-256 of the fixtures, as its variant has them.
        implementations: Digests of the normalised trees that link (see ``trees_of``).
        repair_digest: SHA-256 of the repair, held or not; None where there is none yet. It never
            leaves this room: a lock that is published says nothing that would confirm a guess.
        aliases: Ids of cases that are this one under another name: what it supersedes.
        withdrawn: Whether it was withdrawn. It keeps its place and its links all the same.
        small_implementations: Digests of trees too small to link, which only warn.

    Raises:
        SplitError: An id, a slug or a digest is the empty text, which would link all that lack it.
    """

    id: str
    family: str
    evaluation_groups: frozenset[str]
    contract_digest: str
    fixtures_digest: str
    implementations: frozenset[str] = frozenset()
    repair_digest: str | None = None
    aliases: frozenset[str] = frozenset()
    withdrawn: bool = False
    small_implementations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        several = (
            self.evaluation_groups,
            self.implementations,
            self.aliases,
            self.small_implementations,
        )
        words = (self.id, self.family, self.contract_digest, self.fixtures_digest)
        if not all(words) or "" in frozenset().union(*several) or self.repair_digest == "":
            raise SplitError(
                f"case {self.id!r}: expected an id, a family, and digests and names that are not "
                f"empty, got {self}; leave out what is not known"
            )


def by_id(facts: Iterable[CaseFacts]) -> dict[str, CaseFacts]:
    """The cases by id, ascending.

    Raises:
        SplitError: Two cases have one id.
    """
    found: dict[str, CaseFacts] = {}
    for fact in sorted(facts, key=lambda fact: fact.id):
        if fact.id in found:
            raise SplitError(
                f"case {fact.id}: expected one case of this id, got two (families "
                f"{found[fact.id].family!r} and {fact.family!r}); ids are never reused"
            )
        found[fact.id] = fact
    return found


def archive_digest(facts: Iterable[CaseFacts]) -> str:
    """SHA-256 (hex) of the archive that a lock was made from, in any order of its cases.

    It covers what anybody may see and what decides a place. Repairs and trees are not in it: this
    digest is published, and with all else known it would confirm a guess at a held repair; what
    they join is in the lock's components. That a case was withdrawn is not in it either, since
    withdrawing changes no place.
    """
    return document_digest(
        [
            [
                fact.id,
                fact.family,
                sorted(fact.evaluation_groups),
                fact.contract_digest,
                fact.fixtures_digest,
                sorted(fact.aliases),
            ]
            for fact in by_id(facts).values()
        ]
    )
