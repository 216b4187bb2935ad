"""Newcomers that bridge splits: a component of theirs holds locked cases of more than one.

Putting a bridge into either split would leak, and moving what it joins would break the promise that
places are for good. So all newcomers of such a component get no place, until the link is mended:
also those which are relatives of one side only, and only through the others. They are judged anew
each time, from the facts and the places alone, so that it makes no difference how often a plan is
made. A withdrawn newcomer to such a component is set aside first and the others are judged without
it: to withdraw the bridge is the way out where the link is no mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from failuremap.errors import SplitError
from failuremap.splits.components import Component, components
from failuremap.splits.facts import CaseFacts, by_id

__all__ = ["crossings", "quarantined"]

_SET_ASIDE = "withdrawn while it joined cases that are locked in different splits"


def crossings(facts: Iterable[CaseFacts], locked: Mapping[str, str]) -> list[str]:
    """What to say of each component of locked cases that lies in more than one split."""
    standing = [fact for fact in facts if fact.id in locked]
    return [
        _crossing_in_words(component, locked)
        for component in components(standing)
        if len({locked[case] for case in component.cases}) > 1
    ]


def quarantined(facts: Iterable[CaseFacts], locked: Mapping[str, str]) -> dict[str, str]:
    """The cases that bridge splits, with the reason, given which cases are locked in which split.

    Raises:
        SplitError: Locked cases of different splits are joined without any newcomer.
    """
    cases = by_id(facts)
    if not locked:
        return {}
    for crossing in crossings(cases.values(), locked):
        raise SplitError(f"lock: {crossing}")
    return dict(_judged(cases.values(), locked))


def _judged(facts: Iterable[CaseFacts], locked: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    cases = by_id(facts)
    for component in components(cases.values()):
        if len({locked[case] for case in component.cases if case in locked}) <= 1:
            continue
        newcomers = [case for case in component.cases if case not in locked]
        aside = {case for case in newcomers if cases[case].withdrawn}
        if aside:
            yield from ((case, _SET_ASIDE) for case in aside)
            yield from _judged((cases[c] for c in component.cases if c not in aside), locked)
        else:
            reason = _bridge_in_words(component, locked)
            yield from ((case, reason) for case in newcomers)


def _bridge_in_words(component: Component, locked: Mapping[str, str]) -> str:
    """How newcomers join cases of several splits: one link into each split."""
    into: dict[str, str] = {}
    for link in component.links:
        newcomers = [case for case in link.cases if case not in locked]
        for case in link.cases:
            if newcomers and case in locked:
                words = f"{link} joins {newcomers[0]} to {case} ({locked[case]})"
                into.setdefault(locked[case], words)
    return f"bridges {' and '.join(sorted(into))}: {'; '.join(into[s] for s in sorted(into))}"


def _crossing_in_words(component: Component, locked: Mapping[str, str]) -> str:
    splits = sorted({locked[case] for case in component.cases})
    crossing = [
        f"{link} joins {', '.join(f'{case} ({locked[case]})' for case in link.cases)}"
        for link in component.links
        if len({locked[case] for case in link.cases}) > 1
    ]
    return (
        f"the component of {component.cases[0]} crosses {' and '.join(splits)}: "
        f"{'; '.join(crossing)}; locked cases never move, so undo the change that joined them, or "
        "start a new lock"
    )
