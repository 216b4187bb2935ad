"""The facts of an archive's cases."""

from __future__ import annotations

from failuremap.archive import Archive, Case
from failuremap.digests import source_digest
from failuremap.fixtures import fixtures_digest
from failuremap.splits.facts import CaseFacts
from failuremap.splits.trees import trees_of

__all__ = ["facts_of", "unseen"]


def unseen(archive: Archive) -> list[str]:
    """Cases of which something that could make them relatives is not at hand."""
    held = [case.id for case in archive.cases.values() if "repair" not in case.family.roles]
    return sorted([*held, *archive.held])


def facts_of(archive: Archive) -> list[CaseFacts]:
    """What the splits know of each case. A held repair counts by its commitment only."""
    return [_facts(case) for case in archive.cases.values()]


def _facts(case: Case) -> CaseFacts:
    family = case.family
    linking, small = trees_of(family.implementations.values())
    repair = family.implementations.get("repair")
    return CaseFacts(
        id=case.id,
        family=family.slug,
        evaluation_groups=frozenset(family.evaluation_groups),
        contract_digest=source_digest(family.contract),
        fixtures_digest=fixtures_digest(case.fixtures()),
        implementations=linking,
        small_implementations=small,
        repair_digest=source_digest(repair) if repair is not None else case.commitment,
        aliases=frozenset(case.supersedes),
        withdrawn=case.withdrawn is not None,
    )
