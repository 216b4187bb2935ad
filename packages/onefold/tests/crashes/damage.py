"""Directories that have been damaged, and what is then told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from expected import Wrong, bits_of, some_update

from onefold.aggregator import Aggregator
from onefold.errors import Expired, NotYet, StoreError
from onefold.policy import Policy

__all__ = ["POLICY", "Known", "example", "judged", "known"]

POLICY = Policy(roster=["a", "b"], open_steps_max=4, keep_steps=2)

Known = dict[object, object]
"""Everything that a directory tells, by what was asked."""


def example(directory: Path, seed: int = 0) -> None:
    """A run with closed, pruned and open steps, refusals, a replacement and several lives."""
    from random import Random

    rng = Random(seed)
    names = ["dense", "sparse", "whole"]
    with Aggregator(directory, POLICY, clock=lambda: 5.0) as aggregator:
        for worker in ("a", "b", "a"):
            aggregator.join(worker, f"life {rng.getrandbits(32)}")
        for step in range(3):
            for worker in ("a", "b"):
                aggregator.push(step, worker, some_update(rng, names), attempt=0, incarnation=2)
        for attempt in (0, 1):
            aggregator.push(3, "a", some_update(rng, names), attempt=attempt, incarnation=2)
        aggregator.push(3, "b", {"other": 1.0 * some_update(rng, ["whole"]).tensors["whole"]})
        aggregator.push(4, "b", some_update(rng, names), attempt=0, incarnation=2)
        aggregator.leave("b")


def known(aggregator: Aggregator) -> Known:
    """All that can be asked of :func:`example`."""
    answers: Known = {"run": aggregator.run}
    status = aggregator.status()
    answers["status"] = (status.roster, status.highest_closed, status.open_steps)
    for step in range(6):
        try:
            aggregate = aggregator.pull(step)
        except (NotYet, Expired) as error:
            answers[step] = type(error).__name__
        else:
            told = (aggregate.contributors, aggregate.excluded, aggregate.digest)
            answers[step] = (told, bits_of(aggregate.tensors))
    ledger = aggregator._register._ledger
    for worker in ("a", "b"):
        answers[worker] = (ledger.members.incarnation(worker), ledger.members.has_left(worker))
        for step in (3, 4):
            answers[worker, step] = ledger.steps.standing(step, worker)
    return answers


def judged(whole: Path, place: Path, damage: Callable[[Path], None], before: Known) -> str:
    """What became of a copy that was damaged: ``harmless``, or the error, in words.

    Raises:
        Wrong: It was opened and tells something else.
    """
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, place)
    damage(place)
    try:
        with Aggregator(place, POLICY, clock=lambda: 5.0) as aggregator:
            now = known(aggregator)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    if now != before:
        changed = [key for key in before if now.get(key) != before[key]]
        raise Wrong(f"it tells something else of {changed}")
    return "harmless"
