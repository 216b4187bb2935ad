"""Whether a lock keeps its promises for an archive: an answer in sentences, one a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from failuremap.splits.components import components
from failuremap.splits.facts import CaseFacts, archive_digest, by_id
from failuremap.splits.lock import Lock, LockedComponent
from failuremap.splits.quarantine import crossings, quarantined

__all__ = ["verify"]


def verify(facts: Iterable[CaseFacts], lock: Lock, *, earlier: Lock | None = None) -> list[str]:
    """The problems of a lock, in an order that only they decide; empty if there are none.

    Args:
        facts: The cases of the archive, in any order.
        lock: The lock to be checked.
        earlier: The lock of an earlier release, against which no case may have moved.

    Raises:
        SplitError: Two cases have one id.
    """
    cases = by_id(facts)
    problems = [
        *_digests(cases, lock),
        *_ids(cases, lock),
        *([] if earlier is None else _moves(lock, earlier)),
    ]
    crossing = crossings(cases.values(), lock.cases)
    # Where locked cases cross, nobody can tell a bridge from what it joins.
    return problems + (crossing or list(_components(cases, lock)))


def _digests(cases: Mapping[str, CaseFacts], lock: Lock) -> Iterator[str]:
    if lock.digest != lock.right_digest:
        yield (
            f"lock: expected the digest {lock.right_digest}, got {lock.digest}: it was changed "
            "after it was written; restore it from version control"
        )
    digest = archive_digest(cases.values())
    if lock.archive != digest:
        yield (
            f"lock: it was made from the archive {lock.archive}, this one is {digest}; "
            "make it anew with failuremap split"
        )


def _ids(cases: Mapping[str, CaseFacts], lock: Lock) -> Iterator[str]:
    for case in sorted((lock.cases.keys() | lock.quarantine.keys()) - cases.keys()):
        yield f"{case}: the lock has it, the archive does not; withdraw a case, never remove it"
    for case in sorted(cases.keys() - lock.cases.keys() - lock.quarantine.keys()):
        yield f"{case}: it has no place and is not quarantined; run failuremap split"
    for case in sorted(lock.cases.keys() & lock.quarantine.keys()):
        yield f"{case}: it is in {lock.cases[case]} and in quarantine; expected one of the two"
    for case, split in sorted(lock.cases.items()):
        if split not in lock.ratios:
            yield f"{case}: it is in {split!r}, expected one of {', '.join(sorted(lock.ratios))}"


def _moves(lock: Lock, earlier: Lock) -> Iterator[str]:
    for case, split in sorted(earlier.cases.items()):
        now = lock.cases.get(case, "quarantine" if case in lock.quarantine else "no place at all")
        if now != split:
            yield f"{case}: it was in {split} before and is in {now} now; locked cases never move"
    for name in ("salt", "ratios"):
        if getattr(lock, name) != getattr(earlier, name):
            yield f"lock: expected the {name} of the earlier lock, got other; they stay for good"


def _components(cases: Mapping[str, CaseFacts], lock: Lock) -> Iterator[str]:
    """Whether components and quarantine are those that the archive has, given the places."""
    known = [fact for case, fact in cases.items() if case in lock.cases or case in lock.quarantine]
    bridging = quarantined(known, lock.cases)
    for case in sorted(lock.quarantine.keys() & cases.keys() - bridging.keys()):
        yield f"{case}: it is in quarantine and bridges nothing; run failuremap split to place it"
    actual = {
        LockedComponent(part.cases, lock.cases[part.cases[0]])
        for part in components(fact for fact in known if fact.id in lock.cases)
    }
    differing = set(lock.components) ^ actual
    for part in sorted(differing, key=lambda part: (part.cases, part.split)):
        here, there = ("archive", "lock") if part in actual else ("lock", "archive")
        yield (
            f"{part.cases[0]}: the {here} has the component {', '.join(part.cases)} in "
            f"{part.split}, the {there} does not; run failuremap split"
        )
