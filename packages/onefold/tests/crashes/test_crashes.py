"""Runs on a disk that forgets what was not synced; ``crash.py`` does more of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from crash import one_run, one_server_run
from disk import Disk
from model import Run
from planted import PLANTED
from struck import Blow, Crash

from onefold.aggregator import Aggregator
from onefold.policy import Policy

SEED = 5000
CHUNK = 10
PLANTED_SEED = 9000
PLANTED_RUNS = 100


@pytest.mark.parametrize("first", range(SEED, SEED + 100, CHUNK))
def test_whatever_was_acknowledged_survives(first: int) -> None:
    """Killed or cut off anywhere, any number of times: nothing acknowledged is lost, nothing is
    counted twice, no aggregate that was read changes, and every sum is exact."""
    for seed in range(first, first + CHUNK):
        _, wrong = one_run(seed)
        assert not wrong, f"crash.py --seed {seed} --runs 1\n{wrong}"


def opened(disk: Disk, policy: Policy = Policy()) -> Aggregator:  # noqa: B008 - frozen
    aggregator = Aggregator(disk.root, policy)
    aggregator._store.files = disk
    return aggregator.open()


def survived(tmp_path: Path, seed: int, call: Callable[[Aggregator], object]) -> Disk:
    """``call`` is killed within its commit, made again and answered; then the power is cut."""
    root = tmp_path / f"{seed}"
    root.mkdir()
    (root / "a").mkdir()
    disk = Disk(root / "a")
    aggregator = opened(disk)
    disk.strike = lambda _, what: Blow("within", Crash()) if what == "commit" else None
    with pytest.raises(Crash):
        call(aggregator)
    killed = disk.after_kill(root / "b", None, seed)
    aggregator._store.close()
    disk.bury()
    again = opened(killed)
    call(again)
    killed.dead = True
    cut = killed.after_power_cut(root / "c", None, seed, Random(seed))
    again._store.close()
    killed.bury()
    return cut


@pytest.mark.parametrize("seed", range(10))
def test_what_a_restart_repeats_has_reached_the_disk(tmp_path: Path, seed: int) -> None:
    """What a killed process had written and not synced is synced before it is told to anybody."""
    cut = survived(tmp_path, seed, lambda aggregator: aggregator.join("a", "life"))
    aggregator = opened(cut)
    assert aggregator.join("a", "another life").incarnation == 2
    aggregator.shutdown()


@pytest.mark.parametrize("seed", range(10))
def test_a_power_cut_does_not_hide_where_the_run_began(tmp_path: Path, seed: int) -> None:
    """Who joins after it is told to begin with the step that others still have to contribute to."""
    (tmp_path / "a").mkdir()
    disk = Disk(tmp_path / "a")
    aggregator = opened(disk, Policy(roster=["a", "b"]))
    for step in (0, 1):
        assert aggregator.push(step, "a", {"w": np.ones(3)}).stands
    disk.dead = True
    cut = disk.after_power_cut(tmp_path / "b", None, seed, Random(seed))
    aggregator._store.close()
    disk.bury()
    aggregator = opened(cut, Policy(roster=["a", "b"]))
    aggregator.push(1, "a", {"w": np.ones(3)})
    assert aggregator.join("b", "life").first_open_step == 0
    aggregator.shutdown()


@pytest.mark.parametrize("seed", range(2))
def test_a_server_that_is_killed_at_any_instant_goes_on(seed: int) -> None:
    """Each worker counts once in every step, to the bit, and what was pulled never changes."""
    counts, wrong = one_server_run(seed)
    assert not wrong, f"crash.py --seed {seed} --runs 0 --servers 1\n{wrong}"
    assert counts["server kills"] >= 2


@pytest.mark.parametrize("bug", sorted(PLANTED))
def test_the_model_finds_what_is_planted(bug: str) -> None:
    """Each of these bugs breaks a promise within so many runs, or the model could not find any."""
    disk, plant = PLANTED[bug]
    for seed in range(PLANTED_SEED, PLANTED_SEED + PLANTED_RUNS):
        with plant():
            _, wrong = one_run(seed, lambda seed, base: Run(seed, base, disk))
        if wrong:
            return
    pytest.fail(f"{bug}: not found in {PLANTED_RUNS} runs")
