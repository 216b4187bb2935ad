"""Whole runs from seeds, and that they find what is wrong."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from multiprocessing import Pipe
from pathlib import Path

import pytest
from planted_bugs import PLANTS
from typer.testing import CliRunner

import onefold
from onefold.cli import app
from onefold.simulation import campaign
from onefold.simulation.campaign import Campaign, Tally, traced
from onefold.simulation.choices import Choices
from onefold.simulation.processes import main
from onefold.simulation.scenario import FAULTS, Scenario
from onefold.simulation.shrinking import shrunk
from onefold.simulation.tasks import Killed, Scheduler, Task
from onefold.simulation.world import Outcome, simulate

SEEDS = 200
SEEDS_PER_TEST = 20
SEEDS_TO_FIND_A_BUG_MAX = 1000
BOUND_SECONDS = 120


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Faults are no news."""
    logger = logging.getLogger("onefold")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something, within bounds."""
    waiting = threading.Event()
    for _ in range(BOUND_SECONDS * 100):
        if is_so():
            return
        waiting.wait(0.01)
    raise AssertionError(f"waited for {BOUND_SECONDS} s in vain")


def first_violation(directory: Path) -> Outcome:
    """What the first seed that breaks a guarantee came to."""
    for seed in range(SEEDS_TO_FIND_A_BUG_MAX):
        outcome = simulate(Scenario.of(seed), directory)
        if outcome.violation is not None:
            return outcome
    raise AssertionError(f"no guarantee was broken within {SEEDS_TO_FIND_A_BUG_MAX} seeds")


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_the_guarantees_hold(first: int) -> None:
    """Whatever a seed lets go wrong, no guarantee is broken, and all workers come to their end."""
    tally = Campaign(first, SEEDS_PER_TEST).run_here()
    assert tally.violations == {}
    assert tally.seeds == SEEDS_PER_TEST
    assert tally.steps > SEEDS_PER_TEST


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these mistakes breaks a guarantee within a thousand seeds."""
    PLANTS[bug](monkeypatch)
    first_violation(tmp_path)


def test_every_kind_of_fault_strikes() -> None:
    """No kind is listed that never happens."""
    tally = Campaign(0, 40).run_here()
    assert set(tally.faults) == set(FAULTS)


def test_a_seed_is_a_run(tmp_path: Path) -> None:
    """Two processes, in which sets have other orders, do the same from the same seed."""
    code = (
        "from onefold.simulation.campaign import Campaign, traced\n"
        "for seed in (3, 5, 93): print(*traced(Campaign(0, 1).scenario(seed), is_shrunk=False)"
        ".trace, sep='\\n')"
    )
    traces = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "TMPDIR": str(tmp_path)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert len(traces[0].splitlines()) > 300
    assert traces[0] == traces[1]


def test_a_violation_is_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left breaks the same guarantee, by faults none of which can be left out."""
    PLANTS["join_not_synced"](monkeypatch)
    outcome = first_violation(tmp_path)
    short = shrunk(outcome, tmp_path, lambda: False)
    assert outcome.violation is not None
    assert short.violation is not None
    assert short.violation.guarantee == outcome.violation.guarantee
    assert short.trace
    assert 0 < len(short.faults) < len(outcome.faults)
    for left_out in short.faults:
        kept = set(short.faults) - {left_out}
        fewer = simulate(short.scenario, tmp_path, allowed=kept).violation
        assert fewer is None or fewer.guarantee != outcome.violation.guarantee


def test_shrinking_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it returns the shortest run that it has: here the first."""
    PLANTS["join_not_synced"](monkeypatch)
    outcome = first_violation(tmp_path)
    short = shrunk(outcome, tmp_path, lambda: True)
    assert short.violation is not None
    assert short.scenario == outcome.scenario
    assert short.faults == outcome.faults
    assert short.trace


def test_leaving_out_a_fault_moves_no_other() -> None:
    """What is decided does not depend on what was decided before."""
    all_ = Choices(7)
    struck = [name for name in map(str, range(100)) if all_.strikes(0.3, "lose", name)]
    fewer = Choices(7, [f"lose {name}" for name in struck[1:]])
    assert [name for name in map(str, range(100)) if fewer.strikes(0.3, "lose", name)] == struck[1:]
    fewer.calm()
    assert not fewer.strikes(1.0, "lose", struck[1])


class TestCommand:
    """``onefold simulate``."""

    def test_all_is_well(self) -> None:
        """Exit status 0, with how much was tried."""
        result = CliRunner().invoke(app, ["simulate", "--seeds", "12", "--jobs", "1"])
        assert result.exit_code == 0
        assert "12 seeds:" in result.output
        assert "guarantees broken: 0" in result.output

    def test_a_guarantee_is_broken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit status 1, the seed, a trace, and how to see the whole."""
        PLANTS["deadline_ignored"](monkeypatch)
        monkeypatch.setattr(Campaign, "run", lambda self, *_: iter([self.run_here()]))
        result = CliRunner().invoke(app, ["simulate", "--seeds", "30", "--workers", "3"])
        assert result.exit_code == 1
        assert "breaks a guarantee: Once: step" in result.output
        assert "BROKEN  Once: step" in result.output
        assert " --seeds 1 --workers 3 --trace" in result.output

    def test_a_trace_is_printed(self) -> None:
        """With ``--trace`` each seed's events are shown as they come."""
        result = CliRunner().invoke(app, ["simulate", "--seeds", "2", "--seed", "3", "--trace"])
        assert result.exit_code == 0
        assert "seed 3: " in result.output
        assert "seed 4: " in result.output
        assert "joined as incarnation 1" in result.output
        assert result.output.count("faults of this seed: ") == 2
        assert "\n2 seeds: " in result.output
        assert result.output.endswith("guarantees broken: 0\n")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_an_interruption_ends_it(
        self, tmp_path: Path, jobs: int, number: signal.Signals
    ) -> None:
        """With what the seeds so far came to, and nothing left; the whole group gets the signal."""
        command = (sys.executable, "-m", "onefold", "simulate", "--seeds", "1000000")
        with subprocess.Popen(
            (*command, "--jobs", str(jobs)),
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            until(lambda: any(tmp_path.iterdir()))
            os.killpg(process.pid, number)
            out, err = process.communicate(timeout=BOUND_SECONDS)
        assert process.returncode == 128 + number, err
        assert "guarantees broken: 0" in out
        assert err.rstrip().endswith("interrupted; of the seeds so far:")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--workers", "x"], ["--steps", "-1"]])
    def test_wrong_options_are_refused(self, arguments: list[str]) -> None:
        """Exit status 2."""
        assert CliRunner().invoke(app, ["simulate", *arguments]).exit_code == 2


def test_tallies_add_up() -> None:
    """What several processes ran is counted as if one had."""
    one, two, both = Campaign(0, 2).run_here(), Campaign(2, 2).run_here(), Tally()
    both.add(one)
    both.add(two)
    assert both == Campaign(0, 4).run_here()


class TestProcesses:
    """Processes that call what they are sent."""

    def test_several_run_what_one_would(self) -> None:
        """The same comes out, in whatever order."""
        campaign, total = Campaign(0, 25, workers=2, steps=2), Tally()
        for tally in campaign.run(2, lambda: False):
            total.add(tally)
        here = campaign.run_here()
        assert total.seconds == pytest.approx(here.seconds)  # added up in another order
        total.seconds = here.seconds
        assert total == here

    def test_one_that_ends_is_missed(self) -> None:
        """Nobody waits for what it would have sent."""
        broken = Campaign(0, 1, workers="none")  # type: ignore[arg-type] # so that it fails there
        with pytest.raises(onefold.OnefoldError, match="has ended before it had run"):
            list(broken.run(1, lambda: False))

    def test_one_that_a_signal_has_ended_is_not_missed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is sent to all of a terminal, and reaches a process before it has a session."""

        class Gone:
            def send(self, _call: object) -> None:
                raise BrokenPipeError

        monkeypatch.setattr(campaign, "calling", lambda: nullcontext(Gone()))
        assert list(Campaign(0, 1).run(1, lambda: True)) == []
        with pytest.raises(onefold.OnefoldError, match="has ended before it had run"):
            list(Campaign(0, 1).run(1, lambda: False))

    def test_it_ends_when_nobody_is_left_to_send_anything(self) -> None:
        """As when whoever started it was killed."""
        ours, theirs = Pipe()
        number = os.dup(theirs.fileno())
        theirs.close()
        ours.close()
        main(number)


class TestTasks:
    """Threads of which one runs at a time."""

    def test_a_task_runs_only_when_resumed(self) -> None:
        """It stops where it parks, and goes on from there."""
        seen: list[str] = []

        def body() -> None:
            seen.append("first")
            task.park()
            seen.append("second")

        task = Task("t", body)
        assert seen == []
        task.resume()
        assert (seen, task.has_ended) == (["first"], False)
        task.resume()
        assert (seen, task.has_ended) == (["first", "second"], True)

    def test_a_killed_task_ends_where_it_is_parked(self) -> None:
        """As a process does, but for what it tidies up."""
        seen: list[str] = []

        def body() -> None:
            try:
                task.park()
                seen.append("never")
            except Killed:
                seen.append("killed")
                raise

        task = Task("t", body)
        task.resume()
        task.kill()
        assert (seen, task.has_ended, task.error) == (["killed"], True, None)

    def test_an_error_is_kept(self) -> None:
        """Whoever made the task looks at it."""

        def body() -> None:
            raise ValueError("wrong")

        task = Task("t", body)
        task.resume()
        assert isinstance(task.error, ValueError)

    def test_time_is_that_of_what_comes_next(self) -> None:
        """Things happen by their times, and at one time in the order of their entry."""
        seen: list[tuple[float, str]] = []
        scheduler = Scheduler(lambda: None)
        for seconds, name in ((2.0, "c"), (1.0, "a"), (1.0, "b")):
            scheduler.after(seconds, lambda name=name: seen.append((scheduler.now, name)))
        while scheduler.step():
            pass
        assert seen == [(1.0, "a"), (1.0, "b"), (2.0, "c")]


def test_a_traced_run_is_the_same_run() -> None:
    """Looking on changes nothing."""
    scenario = Scenario.of(11)
    outcome = traced(scenario, is_shrunk=True)
    assert outcome.violation is None
    assert outcome.faults.keys() == traced(scenario, is_shrunk=False).faults.keys()
