"""Where blank lines can have stood in a program that lost them, likeliest first.

A careful author separates the same things in the same way all through a file, so a choice is made
once for each kind of gap (between two functions, between imports and ``N``, ...). A few habits are
the starting points; every departure from one, for a kind of gap, costs one, and a single blank line
where the habit has none (or none where it has some) costs three.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from failuremap.importing.scan import Place, Scanned

__all__ = ["COST_MAX", "Gaps", "gaps_of"]

COST_MAX = 12
_EXCEPTION_COST = 3
_EXCEPTIONS_MAX = 2
_LISTED_DEPARTURES_MAX = 2
"""Up to here the choices are few, and asked for once for every guess at the indentation."""

Kind = tuple[str, str]
"""What stands before a gap and what after it; ``("in", ...)`` for gaps inside a block."""

_DEFINITIONS = ("def", "class", "@")


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps between a program's lines: ``kinds[i]`` is that of the gap above line ``i + 1``."""

    kinds: tuple[Kind, ...]

    def choices(self, cost: int) -> Iterator[tuple[int, ...]]:
        """The numbers of blank lines, gap by gap, of all choices that cost exactly this much."""
        classes = tuple(sorted({kind for kind in self.kinds if _values(kind)}))
        index = {kind: position for position, kind in enumerate(classes)}
        # One more choice at the end, always 0, is that of the gaps that are not chosen.
        members = [index.get(kind, len(classes)) for kind in self.kinds]
        for exceptions in range(min(cost // _EXCEPTION_COST, _EXCEPTIONS_MAX) + 1):
            departures = cost - exceptions * _EXCEPTION_COST
            few = departures <= _LISTED_DEPARTURES_MAX
            for chosen in (_listed if few else _choices)(classes, departures):
                gaps = tuple([chosen[member] for member in members])
                if exceptions:
                    yield from _excepted(gaps, exceptions)
                else:
                    yield gaps


def gaps_of(lines: Sequence[Scanned], levels: Mapping[int, int], words: Mapping[int, str]) -> Gaps:
    """The gaps between lines.

    Args:
        lines: The lines, none of them blank outside of strings.
        levels: The level of each line that begins a statement, or is a comment, by its index.
        words: For the same lines, what kind of thing they begin; a comment has its statement's.
    """
    kinds: list[Kind] = []
    before: dict[int, str] = {}
    for index, line in enumerate(lines):
        kind: Kind = ("in", "line")
        if index in levels:
            level = levels[index]
            attached = index > 0 and lines[index - 1].place is Place.COMMENT
            if index and (attached or words.get(index - 1) == "@"):
                kind = ("in", "comment")
            elif level == 0:
                kind = (before.get(0, "start"), words[index])
            elif before.get(level) in _DEFINITIONS or words[index] in _DEFINITIONS:
                kind = ("in", "def" if level in before else "first")
            elif before.get(level) == "docstring":
                kind = ("in", "after docstring")
            before = {k: word for k, word in before.items() if k < level}
            before[level] = words[index]
        elif line.place is Place.STRING and lines[index - 1].place is Place.STATEMENT:
            kind = ("in", "string")
        kinds.append(kind)
    return Gaps(tuple(kinds[1:]))


def _values(kind: Kind) -> tuple[int, ...]:
    """The numbers of blank lines that a kind of gap can have; none where it is not chosen."""
    before, after = kind
    if before == "in":
        return (0, 1) if after in ("def", "first", "after docstring", "string") else ()
    if (
        before in _DEFINITIONS
        or after in _DEFINITIONS
        or before in ("docstring", "future", "import", "N")
    ):
        return (0, 1, 2)
    return (0, 1)


def _standard(kind: Kind) -> int:
    """As PEP 8 and its formatters have it."""
    before, after = kind
    if before == "in":
        return 1 if after in ("def", "string") else 0
    if before in _DEFINITIONS or after in _DEFINITIONS:
        return 2
    return (
        1 if before in ("docstring", "future") or (before == "import" and after != "import") else 0
    )


def _paragraphs(kind: Kind) -> int:
    """The same, with a blank line wherever one thing ends and another begins."""
    before, after = kind
    if before in ("in", after) or (before, after) == ("print", "raise"):
        return _standard(kind)
    return max(1, _standard(kind))


def _single(kind: Kind) -> int:
    """One blank line where the standard has any."""
    return min(1, _standard(kind))


def _none(_kind: Kind) -> int:
    return 0


_HABITS = (_standard, _paragraphs, _single, _none)


def _choices(classes: tuple[Kind, ...], departures: int) -> Iterator[tuple[int, ...]]:
    """The choices, kind by kind and a final 0, at this many departures from the nearest habit."""
    habits = [tuple(habit(kind) for kind in classes) for habit in _HABITS]
    for number, habit in enumerate(habits):
        for chosen in _departed(classes, habit, departures):
            if not _told_earlier(chosen, habits, number, departures):
                yield (*chosen, 0)


@lru_cache(maxsize=64)
def _listed(classes: tuple[Kind, ...], departures: int) -> tuple[tuple[int, ...], ...]:
    return tuple(_choices(classes, departures))


def _departed(
    classes: Sequence[Kind], habit: tuple[int, ...], departures: int
) -> Iterator[tuple[int, ...]]:
    for places in itertools.combinations(range(len(classes)), departures):
        others = [[v for v in _values(classes[p]) if v != habit[p]] for p in places]
        for values in itertools.product(*others):
            chosen = list(habit)
            for place, value in zip(places, values, strict=True):
                chosen[place] = value
            yield tuple(chosen)


def _told_earlier(
    chosen: tuple[int, ...], habits: list[tuple[int, ...]], number: int, departures: int
) -> bool:
    """Whether another habit comes to the same choice at less cost, or earlier at the same."""
    for other, habit in enumerate(habits):
        distance = sum(map(operator.ne, chosen, habit))
        if distance < departures or (distance == departures and other < number):
            return True
    return False


def _excepted(gaps: tuple[int, ...], exceptions: int) -> Iterator[tuple[int, ...]]:
    for places in itertools.combinations(range(len(gaps)), exceptions):
        changed = list(gaps)
        for place in places:
            changed[place] = 0 if changed[place] else 1
        yield tuple(changed)
