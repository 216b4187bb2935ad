"""The small worlds, and how large each is: ``python small_worlds.py`` prints the table.

The first of them are all that up to three workers, two steps and two attempts can do under each
policy; the others bring in what else a push can be, with as many workers as leave them small.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from small_explorer import Joins, Leaves, World, explore, signature
from small_model import Sent

from onefold.policy import Policy

ABC = ("a", "b", "c")
AB = ("a", "b")


def each(
    workers: Iterable[str],
    steps: Iterable[int] = (1, 2),
    attempts: Iterable[int | None] = (1, 2),
    incarnations: Iterable[int | None] = (None,),
    contents: Iterable[str] = ("x",),
) -> tuple[Sent, ...]:
    """Every message that can be made up of these."""
    combined = itertools.product(workers, steps, attempts, incarnations, contents)
    return tuple(itertools.starmap(Sent, combined))


def also(messages: Sequence[Sent], **fields: object) -> tuple[Sent, ...]:
    """The messages, and each of them once more with other fields."""
    return (*messages, *(one._replace(**fields) for one in messages))


def joining(workers: Iterable[str], lives: str = "1") -> tuple[Joins, ...]:
    """Every life of every worker."""
    return tuple(Joins(worker, life) for worker in workers for life in lives)


def leaving(workers: Iterable[str]) -> tuple[Leaves, ...]:
    """Every worker leaves."""
    return tuple(map(Leaves, workers))


def late(names: Sequence[str], minimum: int, window: int = 2) -> Policy:
    """A list of names, and a deadline."""
    return Policy(roster=names, minimum=minimum, deadline_seconds=10, open_steps_max=window)


LIST = Policy(roster=ABC)
PAIR = Policy(roster=AB)
HAND = Policy()

WORLDS = (
    World("a list of names", LIST, each(ABC)),
    World("a list, one step at a time", replace(LIST, open_steps_max=1), each(ABC)),
    World("closed by hand", HAND, each(ABC), by_hand=True),
    World("by hand, one step at a time", replace(HAND, open_steps_max=1), each(ABC), by_hand=True),
    World("a deadline, two of three", late(ABC, 2, window=1), each(ABC)),
    World("two steps to a deadline", late(ABC, 2), each(ABC, attempts=[1])),
    World("joined", Policy(roster="joined"), each(ABC), before=joining(ABC)),
    World("the first three", Policy(roster=3), each(ABC, attempts=[1]), before=joining(ABC)),
    World("lost numbers", PAIR, each(AB), lossy=True),
    World("comings", Policy(roster="joined"), each(ABC, attempts=[1]), joining(ABC)),
    World(
        "comings and goings",
        Policy(roster="joined"),
        each(AB, attempts=[1]),
        joining(AB) + leaving(AB),
    ),
    World("the first two", Policy(roster=2), each(ABC, attempts=[1]), joining(ABC) + leaving("a")),
    World("a list, and goings", LIST, each(ABC, attempts=[1]), joining("a") + leaving("ab")),
    World("incarnations", PAIR, each(AB, incarnations=(1, 2))),
    World("three with incarnations", LIST, each(ABC, [1], incarnations=(None, 1, 2))),
    World(
        "lives",
        PAIR,
        each("a", attempts=[1], incarnations=(1, 2)) + each("b", attempts=[1]),
        (*joining("a", "12"), Leaves("a", 1), Leaves("a", 2)),
    ),
    World("two contents", PAIR, each(AB, attempts=[1], contents="xy")),
    World("three with two contents", LIST, each(ABC, [1], contents="xy"), lossy=True),
    World("without attempts", LIST, each(ABC, attempts=[None], contents="xy")),
    World("some without attempts", LIST, each(ABC, [1], [None, 1, 2], contents="xy"), by_hand=True),
    World("two signatures", PAIR, also(each(AB, attempts=[1]), shape=2), lossy=True),
    World(
        "three with two signatures", LIST, also(each(ABC, [1], [1]) + each("a", [2], [1]), shape=2)
    ),
    World(
        "a signature given",
        replace(LIST, signature=signature(1)),
        also(each(ABC, [1]), shape=2),
        by_hand=True,
    ),
    *(
        World(f"a NaN, {what}", replace(LIST, on_nonfinite=what), messages, by_hand=True)
        for what in ("reject", "skip", "propagate")
        for messages in [also(each(ABC, [1]), nonfinite=True)]
    ),
    World("weight 0", LIST, also(each(ABC, attempts=[1]), weight=0)),
    World(
        "weight 0 and a NaN",
        replace(PAIR, on_nonfinite="skip"),
        also(each(AB, [1], [1]), weight=0) + also(each(AB, [1], [2]), nonfinite=True),
        by_hand=True,
    ),
    World("another run", PAIR, also(also(each(AB, [1]), run="other"), run="run")),
    World("a stranger", PAIR, each(ABC), joining("ac")),
    World("three steps", PAIR, each(AB, [1, 2, 3], [1]), by_hand=True),
    World("three steps, four attempts", Policy(roster=("a",)), each("a", [1, 2, 3], [0, 1, 2, 3])),
    World(
        "all at once",
        late(AB, 1),
        (
            *each("a", [1], [1, 2], [1, 2]),
            *each("b", [1], [1]),
            Sent("a", 1, 3, 1, shape=2),
            Sent("b", 1, 2, weight=0),
        ),
        joining("a") + leaving("a"),
        by_hand=True,
        lossy=True,
    ),
)
LARGER = (
    World("larger: a deadline", late(ABC, 2), each(ABC)),
    World("larger: one suffices", late(ABC, 1, window=1), each(ABC)),
    World("larger: lost numbers", LIST, each(ABC), lossy=True),
    World(
        "larger: comings and goings",
        Policy(roster="joined"),
        each(AB),
        joining(AB, "12") + leaving(AB),
    ),
)
SIZES = {
    "a list of names": (1_225, 15_260, 560),
    "a list, one step at a time": (341, 4_172, 80),
    "closed by hand": (2_809, 36_464, 2_756),
    "by hand, one step at a time": (1_457, 18_212, 728),
    "a deadline, two of three": (2_157, 28_833, 792),
    "two steps to a deadline": (676, 5_044, 312),
    "joined": (1_225, 15_260, 560),
    "the first three": (81, 504, 18),
    "lost numbers": (400, 4_000, 160),
    "comings": (1_672, 15_774, 726),
    "comings and goings": (596, 5_144, 376),
    "the first two": (422, 4_412, 192),
    "a list, and goings": (1_808, 16_938, 666),
    "incarnations": (1_681, 28_208, 1_312),
    "three with incarnations": (559, 10_278, 216),
    "lives": (1_774, 18_816, 1_076),
    "two contents": (169, 1_456, 104),
    "three with two contents": (280, 3_856, 64),
    "without attempts": (1_225, 15_260, 560),
    "some without attempts": (685, 12_672, 342),
    "two signatures": (1_248, 12_472, 416),
    "three with two signatures": (321, 2_616, 48),
    "a signature given": (235, 3_028, 208),
    "a NaN, reject": (235, 3_028, 208),
    "a NaN, skip": (152, 1_948, 124),
    "a NaN, propagate": (249, 3_112, 124),
    "weight 0": (1_225, 15_260, 560),
    "weight 0 and a NaN": (34, 296, 24),
    "another run": (29, 480, 16),
    "a stranger": (338, 4_940, 208),
    "three steps": (217, 1_500, 198),
    "three steps, four attempts": (441, 5_704, 412),
    "all at once": (991, 11_638, 744),
}
"""Of each world: how many states, transitions and closings of a step it has."""

BY_NAME = {world.name: world for world in (*WORLDS, *LARGER)}


def main(names: Sequence[str]) -> None:
    """Explore the worlds of these names, or all but the larger, and say how large they are."""
    together = [0, 0, 0]
    for world in [BY_NAME[name] for name in names] or WORLDS:
        explored = explore(world)
        together = [one + more for one, more in zip(together, explored.size, strict=True)]
        say(world.name, explored.size)
    say("together", together)


def say(name: str, size: Sequence[int]) -> None:
    """A line of the table."""
    states, transitions, closings = size
    sys.stdout.write(f"{name:<32}{states:>9,} states{transitions:>12,} transitions")
    sys.stdout.write(f"{closings:>9,} closings\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
