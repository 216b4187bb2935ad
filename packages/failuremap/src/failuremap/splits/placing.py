"""Which split each component goes to, and why the obvious ways are wrong.

Hashing each component to a split needs no lock, but components differ in size a hundredfold and the
shares come out as luck has it. Filling splits in turn depends on the order of the cases. So:

1. Places in the lock stand. A component with cases locked in one split joins that split.
2. A component with cases locked in several splits was bridged by newcomers: they are quarantined
   (:mod:`~failuremap.splits.quarantine`) and belong to no split; the locked cases stay.
3. All other components are placed, the largest first, each into the split that is furthest below
   its target (its ratio of the cases that have a place), in whole cases. Ties between components,
   and between splits, are settled by SHA-256 of the salt and the component's id.
4. No split stays empty: once as many components are left as there are empty splits, the next goes
   to one of these, again the furthest below.

Without a lock no split ends above its target by as much as the largest component, hence none
below it by as much as the largest for each other split (longest processing time first; Graham,
"Bounds on multiprocessing timing anomalies", 1969, has the argument).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from failuremap.digests import document_digest
from failuremap.errors import SplitError
from failuremap.splits.components import Component, coincidences, components
from failuremap.splits.facts import CaseFacts, archive_digest, by_id
from failuremap.splits.lock import Lock, LockedComponent
from failuremap.splits.quarantine import quarantined
from failuremap.splits.ratios import Ratio, exact_ratios

__all__ = ["Placement", "SplitPlan", "plan"]


@dataclass(frozen=True, slots=True)
class Placement:
    """A component, the split that it is in, and how many of its cases are new to the lock."""

    component: Component
    split: str
    new_count: int


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """What was decided.

    Attributes:
        lock: The lock that says so, to be written in place of the one that was given.
        placements: The components of the cases that have a place, by the first of their ids.
        warnings: Coincidences to look at; they changed nothing.
    """

    lock: Lock
    placements: tuple[Placement, ...]
    warnings: tuple[str, ...]

    @property
    def effective_n(self) -> int:
        """How many independent samples there are: components, not cases."""
        return len(self.placements)

    @property
    def case_counts(self) -> dict[str, int]:
        """How many cases each split has."""
        counts = Counter(self.lock.cases.values())
        return {split: counts[split] for split in self.lock.ratios}

    @property
    def component_counts(self) -> dict[str, int]:
        """How many components each split has: its own effective n."""
        counts = Counter(placement.split for placement in self.placements)
        return {split: counts[split] for split in self.lock.ratios}


def plan(
    facts: Iterable[CaseFacts],
    ratios: Mapping[str, Ratio],
    *,
    salt: str,
    lock: Lock | None = None,
) -> SplitPlan:
    """Give every case its split, keeping what the lock has decided.

    Args:
        facts: The cases, in any order.
        ratios: The share of each split, which add up to 1.
        salt: What settles ties; another salt is another choice among equals.
        lock: What was decided before; None for the first time.

    Raises:
        SplitError: Fewer components than splits; ratios that are none; an id twice; or a lock with
            another salt or ratios, a wrong digest, cases that are gone, or components that cross.
    """
    cases, shares = by_id(facts), exact_ratios(ratios)
    locked = {} if lock is None else dict(lock.cases)
    if lock is not None:
        _check_lock(lock, salt, shares)
        _check_cases(lock, cases)
    quarantine = quarantined(cases.values(), locked)
    found = components(fact for fact in cases.values() if fact.id not in quarantine)
    if len(found) < len(shares):
        raise SplitError(
            f"expected at least {len(shares)} components for the splits {', '.join(shares)}, got "
            f"{len(found)} ({len(cases)} cases, {len(quarantine)} of them quarantined); relatives "
            "stay together, so add families that share nothing, or ask for fewer splits"
        )
    splits = _place(found, shares, salt, locked)
    placed = [(part, split) for part, split in zip(found, splits, strict=True)]
    new_lock = Lock(
        archive=archive_digest(cases.values()),
        salt=salt,
        ratios=shares,
        cases=dict(sorted((case, split) for part, split in placed for case in part.cases)),
        components=tuple(LockedComponent(part.cases, split) for part, split in placed),
        quarantine=dict(sorted(quarantine.items())),
    )
    return SplitPlan(
        lock=new_lock.sealed(),
        placements=tuple(
            Placement(part, split, sum(case not in locked for case in part.cases))
            for part, split in placed
        ),
        warnings=tuple(coincidences(cases.values())),
    )


def _place(
    found: list[Component], shares: Mapping[str, Fraction], salt: str, locked: Mapping[str, str]
) -> list[str]:
    """The split of each component, in the order given."""
    placed_count = sum(len(component.cases) for component in found)
    missing = {split: share * placed_count for split, share in shares.items()}
    splits: dict[Component, str] = {}
    for component in found:
        held = {locked[case] for case in component.cases if case in locked}
        if held:
            (splits[component],) = held
            missing[splits[component]] -= len(component.cases)
    waiting = sorted(
        (component for component in found if component not in splits),
        key=lambda component: (-len(component.cases), _lot(salt, component)),
    )
    for position, component in enumerate(waiting):
        empty = shares.keys() - set(splits.values())
        choices = empty if len(waiting) - position <= len(empty) else shares.keys()
        most = max(missing[split] for split in choices)
        furthest = [split for split in choices if missing[split] == most]
        split = min(furthest, key=lambda name: _lot(salt, component, name))
        splits[component] = split
        missing[split] -= len(component.cases)
    return [splits[component] for component in found]


def _lot(salt: str, component: Component, split: str = "") -> str:
    """What settles a tie: of components, or of the splits that one could go to."""
    return document_digest([salt, component.id, split])


def _check_lock(lock: Lock, salt: str, shares: Mapping[str, Fraction]) -> None:
    if lock.digest != lock.right_digest:
        raise SplitError(
            f"lock: expected the digest {lock.right_digest}, got {lock.digest}: it was changed "
            "after it was written; restore it from version control"
        )
    if lock.salt != salt:
        raise SplitError(
            f"lock: it was made with the salt {lock.salt!r}, not {salt!r}; keep that salt, or "
            "start a new lock, which may move every case"
        )
    if dict(lock.ratios) != shares:
        made = ", ".join(f"{name}={share}" for name, share in lock.ratios.items())
        asked = ", ".join(f"{name}={share}" for name, share in shares.items())
        raise SplitError(
            f"lock: it was made with the ratios {made}, not {asked}; keep those ratios, or start "
            "a new lock, which may move every case"
        )
    stray = sorted(set(lock.cases.values()) - shares.keys())
    if stray:
        raise SplitError(
            f"lock: expected places in {', '.join(shares)} only, got {', '.join(stray)}; restore "
            "it from version control"
        )


def _check_cases(lock: Lock, cases: Mapping[str, CaseFacts]) -> None:
    gone = sorted((lock.cases.keys() | lock.quarantine.keys()) - cases.keys())
    if gone:
        raise SplitError(
            f"lock: expected every case of it in the archive, but {', '.join(gone)} "
            f"{'is' if len(gone) == 1 else 'are'} gone; withdraw a case, never remove it"
        )
