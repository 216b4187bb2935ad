"""Cases that are relatives, found by union-find.

A random split of cases leaks: five variants of one family, or one repair under two slugs, end up on
both sides, and a model is graded on what it has seen. So the unit of a split is the component:
cases joined, directly or through others, by anything that :class:`Link` knows. How many components
there are is the honest sample size, the *effective n*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from failuremap.digests import document_digest
from failuremap.splits.facts import CaseFacts, by_id

__all__ = ["Component", "Link", "coincidences", "components"]

_IN_WORDS = {
    "family": "the family {value!r}",
    "group": "the evaluation group {value!r}",
    "alias": "the name {value}",
    "contract": "the same contract",
    "fixtures": "the same fixtures",
    "tree": "the same implementation up to names",
    "repair": "the same repair",
}


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """One thing that several cases share.

    Attributes:
        kind: ``family``, ``group``, ``contract``, ``fixtures``, ``tree``, ``repair`` or ``alias``.
        value: The name or digest that they share.
        cases: Those that share it, ascending.
    """

    kind: str
    value: str
    cases: tuple[str, ...]

    def __str__(self) -> str:
        """What is shared, in words. A digest is not told: it might be that of a held file."""
        return _IN_WORDS[self.kind].format(value=self.value)


@dataclass(frozen=True, slots=True)
class Component:
    """Cases that have to stay together, and why.

    Attributes:
        cases: Their ids, ascending.
        links: What joins them, ascending; empty for a case that stands alone.
    """

    cases: tuple[str, ...]
    links: tuple[Link, ...]

    @property
    def id(self) -> str:
        """SHA-256 (hex) of the ids of its cases: the same in whatever order they came."""
        return document_digest(list(self.cases))


def components(facts: Iterable[CaseFacts]) -> list[Component]:
    """The components of an archive, by the first of their ids.

    Raises:
        SplitError: Two cases have one id.
    """
    cases = by_id(facts)
    sharing = _sharing(cases.values())
    leader = {case: case for case in cases}
    for together in sharing.values():
        for case in together[1:]:
            leader[_find(leader, case)] = _find(leader, together[0])
    members: dict[str, list[str]] = {}
    for case in cases:
        members.setdefault(_find(leader, case), []).append(case)
    links: dict[str, list[Link]] = {first: [] for first in members}
    for (kind, value), together in sorted(sharing.items()):
        if len(together) > 1:
            links[_find(leader, together[0])].append(Link(kind, value, tuple(together)))
    return [Component(tuple(found), tuple(links[first])) for first, found in members.items()]


def coincidences(facts: Iterable[CaseFacts]) -> list[str]:
    """Warnings: small implementations that are equal in cases which nothing else joins."""
    cases = by_id(facts)
    sharing: dict[str, list[str]] = {}
    for case, fact in cases.items():
        for digest in fact.small_implementations:
            sharing.setdefault(digest, []).append(case)
    several = [together for together in sharing.values() if len(together) > 1]
    if not several:
        return []
    home = {case: part.cases for part in components(cases.values()) for case in part.cases}
    apart = {
        tuple(dict.fromkeys(cases[case].family for case in together)): together[0]
        for together in several
        if len({home[case] for case in together}) > 1
    }
    return [
        f"{', '.join(families)}: have a small implementation in common up to names (see {case}); "
        "too small to join them, so look whether one is a copy of the other"
        for families, case in sorted(apart.items())
    ]


def _sharing(facts: Iterable[CaseFacts]) -> dict[tuple[str, str], list[str]]:
    sharing: dict[tuple[str, str], list[str]] = {}
    for fact in facts:
        for key in _keys(fact):
            sharing.setdefault(key, []).append(fact.id)
    return sharing


def _keys(fact: CaseFacts) -> Iterator[tuple[str, str]]:
    """Everything that would make another case, sharing it, a relative."""
    yield "family", fact.family
    yield from (("group", group) for group in fact.evaluation_groups)
    yield "contract", fact.contract_digest
    yield "fixtures", fact.fixtures_digest
    yield from (("tree", digest) for digest in fact.implementations)
    if fact.repair_digest is not None:
        yield "repair", fact.repair_digest
    # A case goes by its own id, and so does whatever names it: also two that name the same third.
    yield from (("alias", name) for name in fact.aliases | {fact.id})


def _find(leader: dict[str, str], case: str) -> str:
    while leader[case] != case:
        leader[case] = leader[leader[case]]
        case = leader[case]
    return case
