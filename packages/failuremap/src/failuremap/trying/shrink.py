"""The smallest input that still fails.

A failing input from a generator has accidents in it: rows that do not matter, big numbers, odd
names. Greedy shrinking takes them away one by one, keeping what still fails and is still valid,
until no single step makes it simpler. Simpler means: fewer parts; then smaller numbers and shorter
names. A worker that appears in three rows is renamed in all of them at once, or the rows would fall
apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

__all__ = ["complexity", "shrink"]

TRIES_MAX = 3000
_NAMES = ("a", "b", "c", "d")

Arguments = tuple[object, ...]


def shrink(
    arguments: Arguments, fails: Callable[[Arguments], bool], *, tries_max: int = TRIES_MAX
) -> Arguments:
    """The simplest arguments reached for which ``fails`` still holds; it holds for those given."""
    best = arguments
    tries = 0
    improved = True
    while improved and tries < tries_max:
        improved = False
        for candidate in _simpler(best):
            if complexity(candidate) >= complexity(best):
                continue
            tries += 1
            if fails(candidate):
                best, improved = candidate, True
                break
            if tries >= tries_max:
                break
    return best


def complexity(value: object) -> tuple[int, float, str]:
    """Parts, then size of what is in them, then text: what shrinking makes smaller."""
    parts, size = _measured(value)
    return parts, size, repr(value)


def _measured(value: object) -> tuple[int, float]:
    if isinstance(value, list | tuple):
        measured = [_measured(item) for item in value]
        own = 0.25 if isinstance(value, tuple) else 0.0
        return 1 + sum(parts for parts, _ in measured), own + sum(size for _, size in measured)
    if isinstance(value, str):
        return 1, 1 + len(value) + (0 if value in _NAMES else 2)
    if isinstance(value, bool) or value is None:
        return 1, 0
    if isinstance(value, int):
        return 1, value.bit_length() + (1 if value < 0 else 0) + (0 if abs(value) < 2 else 0.5)
    if isinstance(value, float):
        if not math.isfinite(value):
            return 1, 2.0**12
        size = min(abs(value), 2.0**20) ** 0.5 + (2 if value.is_integer() else 4)
        return 1, size + (0.5 if value < 0 else 0)
    return 1, 8


def _simpler(arguments: Arguments) -> Iterator[Arguments]:
    yield from _without_parts(arguments)
    for path, items in _lists(arguments):
        if isinstance(items, tuple):
            yield _replaced(arguments, path, list(items))  # type: ignore[misc]
    yield from _renamed(arguments)
    yield from _with_one_simpler(arguments)


def _without_parts(value: object) -> Iterator[Arguments]:
    """Lists within with a run of items cut out, the longest runs first."""
    for path, items in _lists(value):
        size = len(items)
        run = size
        while run >= 1:
            for start in range(0, size, run):
                cut = type(items)((*items[:start], *items[start + run :]))
                yield _replaced(value, path, cut)  # type: ignore[misc]
            run //= 2


def _renamed(value: object) -> Iterator[Arguments]:
    """One scalar exchanged for a simpler one wherever it stands."""
    for scalar in sorted(_scalars(value), key=complexity, reverse=True):
        for other in _simpler_scalars(scalar):
            yield _exchanged(value, scalar, other)  # type: ignore[misc]


def _with_one_simpler(value: object, path: tuple[int, ...] = ()) -> Iterator[Arguments]:
    """One scalar exchanged in one place."""
    for place, scalar in _leaves(value, path):
        for other in _simpler_scalars(scalar):
            yield _replaced(value, place, other)  # type: ignore[misc]


def _simpler_scalars(scalar: object) -> list[object]:
    if isinstance(scalar, bool) or scalar is None:
        return []
    if isinstance(scalar, str):
        return [*_NAMES, scalar[: len(scalar) // 2]]
    if isinstance(scalar, int):
        towards = [scalar // 2 if scalar > 0 else -(-scalar // 2), scalar - (scalar > 0)]
        return [0, 1, 2, 3, -1, -scalar, *towards, scalar + (scalar < 0)]
    if isinstance(scalar, float):
        halved = scalar / 2 if math.isfinite(scalar) else 4.0
        whole = [int(scalar)] if scalar.is_integer() else []
        return [*whole, 0.0, 1.0, 0.5, 2.0, -scalar, float(round(halved)), halved]
    return []


def _lists(
    value: object, path: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], list[object] | tuple[object, ...]]]:
    """Lists and tuples within, outermost first, with where they stand; not the arguments' own."""
    if isinstance(value, list | tuple):
        if path:
            yield path, value
        for index, item in enumerate(value):
            yield from _lists(item, (*path, index))


def _leaves(value: object, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], object]]:
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _scalars(value: object) -> list[object]:
    """The distinct scalars, by type and value."""
    return list({(type(leaf), repr(leaf)): leaf for _, leaf in _leaves(value)}.values())


def _replaced(value: object, path: tuple[int, ...], new: object) -> object:
    if not path:
        return new
    items = list(value)  # type: ignore[call-overload]
    items[path[0]] = _replaced(items[path[0]], path[1:], new)
    return type(value)(items)  # type: ignore[call-arg]


def _exchanged(value: object, old: object, new: object) -> object:
    if isinstance(value, list | tuple):
        return type(value)(_exchanged(item, old, new) for item in value)
    return new if type(value) is type(old) and repr(value) == repr(old) else value
