"""The ledger and its store say the same, whatever comes between a decision and its writing down."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import onefold
from onefold import aggregator as aggregator_module
from onefold.aggregator import Aggregator
from onefold.errors import StoreError, SumOverflow
from onefold.policy import Policy
from onefold.receipt import Status
from onefold.testing.support import number, one, wait_in_thread, who

AB = Policy(roster=["a", "b"])
BOUND_SECONDS = 30.0
Open = Callable[..., Aggregator]


@pytest.fixture(params=["memory", "directory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens an aggregator that is shut down at the end."""
    with ExitStack() as stack:

        def opened(policy: Policy = AB) -> Aggregator:
            directory = None if request.param == "memory" else tmp_path / "run"
            return stack.enter_context(Aggregator(directory, policy))

        yield opened


def interrupt(target: object, name: str, monkeypatch: pytest.MonkeyPatch, *, after: bool) -> None:
    """Let a Ctrl-C come once, before or after a method has done its work."""
    method = getattr(target, name)

    def interrupted(*arguments: object, **named: object) -> None:
        monkeypatch.undo()
        if after:
            method(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(target, name, interrupted)


@pytest.mark.parametrize("after", [False, True])
class TestInterrupted:
    """A Ctrl-C at a write: what was written is what is known, and nothing is held for ever."""

    def test_a_push(self, opened: Open, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
        """Pushed again it is a duplicate if it was written, and accepted if not; it counts once."""
        aggregator = opened()
        interrupt(aggregator._store, "commit", monkeypatch, after=after)
        with pytest.raises(KeyboardInterrupt):
            aggregator.push(7, "a", one(2), attempt=0)
        receipt = aggregator.push(7, "a", one(2), attempt=0)
        assert receipt.status is (Status.DUPLICATE if after else Status.ACCEPTED)
        aggregator.push(7, "b", one(5), attempt=0)
        assert number(aggregator.pull(7)) == 7

    def test_a_close(self, opened: Open, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
        """The step is closed if it was written, and closes at the next call if not."""
        aggregator = opened()
        aggregator.push(7, "a", one(2), attempt=0)
        interrupt(aggregator._store, "close_step", monkeypatch, after=after)
        with pytest.raises(KeyboardInterrupt):
            aggregator.push(7, "b", one(5), attempt=0)
        assert aggregator.push(7, "a", one(9), attempt=1).status is Status.CLOSED
        assert number(aggregator.pull(7)) == 7

    def test_a_join(self, opened: Open, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
        """The same life has one incarnation, and the next life the next."""
        aggregator = opened()
        interrupt(aggregator._store, "commit", monkeypatch, after=after)
        with pytest.raises(KeyboardInterrupt):
            aggregator.join("a", "1")
        lives = [aggregator.join("a", life).incarnation for life in ("1", "2", "1")]
        assert lives == [1, 2, 1]


def test_a_claim_ends_with_the_call_that_made_it(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ctrl-C between the claim and the sum leaves nobody waiting, and the step closes later."""
    aggregator = opened()
    aggregator.push(7, "a", one(2), attempt=0)
    claim_due = aggregator._register.claim_due

    def claimed_and_interrupted(besides: set[int]) -> None:
        if claim_due(besides) is not None:
            monkeypatch.undo()
            raise KeyboardInterrupt

    monkeypatch.setattr(aggregator._register, "claim_due", claimed_and_interrupted)
    with pytest.raises(KeyboardInterrupt):
        aggregator.push(7, "b", one(5), attempt=0)
    late = wait_in_thread(lambda: aggregator.push(7, "b", one(5), attempt=0))
    assert late.result().counted
    assert wait_in_thread(aggregator.shutdown).result() is None


def test_what_cannot_be_cleaned_up_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails after the step has closed opens nothing again, then or at a restart."""
    unlink = Path.unlink

    def failing(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".arrow":
            raise OSError(errno.EIO, "Input/output error", str(path))
        unlink(path, missing_ok=missing_ok)

    with Aggregator(tmp_path / "run") as aggregator:
        aggregator.push(7, "a", one(1), attempt=1)
        monkeypatch.setattr(Path, "unlink", failing)
        aggregator.push(7, "a", one(2), attempt=2)
        assert number(aggregator.close(7)) == 2
        monkeypatch.undo()
        assert aggregator.push(7, "b", one(5), attempt=1).status is Status.CLOSED
    with Aggregator(tmp_path / "run") as aggregator:
        assert who(aggregator.pull(7)) == ["a"]
        assert list((tmp_path / "run/staged").iterdir()) == []


def test_a_write_that_fails_changes_nothing(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at a push and at a close: as if they had not been, and later they succeed."""
    aggregator = opened()

    def full(*_arguments: object, **_named: object) -> None:
        raise StoreError("the disk is full")

    aggregator.push(7, "a", one(2), attempt=0)
    monkeypatch.setattr(aggregator._store, "commit", full)
    with pytest.raises(StoreError, match="full"):
        aggregator.push(7, "b", one(5), attempt=0)
    monkeypatch.undo()
    monkeypatch.setattr(aggregator._store, "close_step", full)
    assert aggregator.push(7, "b", one(5), attempt=0).status is Status.ACCEPTED
    with pytest.raises(StoreError, match="full"):
        aggregator.pull(7)
    monkeypatch.undo()
    assert number(aggregator.pull(7)) == 7


def test_two_first_steps_close_at_once(opened: Open) -> None:
    """Both may fix the signature; the first does, and both close."""
    aggregator = opened(Policy())
    for step in (0, 1):
        aggregator.push(step, "a", one(step))
    closings = [aggregator._register.claim(step) for step in (0, 1)]
    for closing in closings:
        assert closing is not None
        aggregator._finish(closing)
    aggregator._register.release()
    assert [number(aggregator.pull(step)) for step in (0, 1)] == [0, 1]
    assert aggregator.push(2, "a", np.zeros(2)).reason.endswith("step 0, the first that closed")


def test_who_waits_is_not_told_of_a_failure_that_is_being_tried_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The problem of a step is forgotten when it is claimed again."""
    aggregator = opened()

    def failing(*_arguments: object, **_named: object) -> None:
        problems.append(aggregator.status().open_steps[0].problem)
        raise StoreError("the disk is full")

    problems: list[str | None] = []
    monkeypatch.setattr(aggregator_module, "write_aggregate", failing)
    for worker in ("a", "b"):
        aggregator.push(7, worker, one(1), attempt=0)
    for _ in range(2):
        assert aggregator.status().open_steps[0].problem == "the disk is full"
        aggregator.tick()
    assert problems == [None] * 3


def test_a_failure_is_raised_anew(opened: Open) -> None:
    """What keeps a step from closing is told each time, and does not grow from being told."""
    aggregator = opened()
    for worker in ("a", "b"):
        aggregator.push(7, worker, one(100, "int8"), attempt=0)
    raised = []
    for _ in range(3):
        with pytest.raises(SumOverflow, match="coordinate 0") as caught:
            aggregator.wait(7, 0)
        raised.append(caught)
    assert len({len(caught.traceback) for caught in raised}) == 1
    assert {caught.value.coordinate for caught in raised} == {0}
    assert len({id(caught.value) for caught in raised}) == 3


def test_it_opens_by_itself_once(opened: Open) -> None:
    """After a shutdown a late call is refused; an explicit open goes on."""
    aggregator = opened()
    aggregator.push(7, "a", one(2), attempt=0)
    aggregator.shutdown()
    for late in (
        lambda: aggregator.push(7, "b", one(5)),
        lambda: aggregator.pull(7),
        lambda: aggregator.join("a", "life"),
        aggregator.status,
        aggregator.tick,
    ):
        with pytest.raises(StoreError, match="shut down"):
            late()
    aggregator.open()
    aggregator.push(7, "b", one(5), attempt=0)
    assert number(aggregator.pull(7)) == 7


FORKS = """
import os, sys, time
from onefold.aggregator import Aggregator
from onefold.errors import StoreError
from onefold.testing.support import one

directory = None if sys.argv[1] == "memory" else sys.argv[1]
aggregator = Aggregator(directory).open()
aggregator.push(7, "a", one(2))
ready, done = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    try:
        aggregator.push(7, "b", one(5))
    except StoreError as error:
        os.write(ready[1], str(error).encode())
    aggregator.shutdown()
    os.read(done[0], 1)
    os._exit(0)
print(os.read(ready[0], 1000).decode())
print(aggregator.close(7).tensor)
aggregator.shutdown()
if directory is not None:
    print(Aggregator(directory).pull(7).tensor)
os.write(done[1], b".")
os.waitpid(child, 0)
"""


@pytest.mark.parametrize("place", ["memory", "directory"])
def test_a_fork_has_no_part_in_it(tmp_path: Path, place: str) -> None:
    """It is refused, changes nothing, and keeps no lock when its parent has given that back."""
    directory = place if place == "memory" else str(tmp_path / "run")
    environment = os.environ | {"PYTHONPATH": str(Path(onefold.__file__).parents[1])}
    command = [sys.executable, "-c", FORKS, directory]
    done = subprocess.run(
        command, env=environment, timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "a fork of it" in lines[0]
    assert lines[1:] == ["[2.]"] * (1 if place == "memory" else 2)


def test_a_push_that_completes_nothing_wakes_nobody(opened: Open) -> None:
    """Who waits looks at the ledger when its step opens and when it is complete, not each time."""
    names = [f"w{number}" for number in range(20)]
    aggregator = opened(Policy(roster=names))
    looks = 0
    begun = threading.Event()

    def look() -> None:
        nonlocal looks
        looks += 1
        begun.set()
        aggregator.tick()

    waiting = wait_in_thread(
        lambda: aggregator._register.wait_closed(7, time.monotonic() + BOUND_SECONDS, look)
    )
    assert begun.wait(BOUND_SECONDS)
    for name in names:
        aggregator.push(7, name, one(1), attempt=0)
    closed = waiting.result()
    assert closed is not None
    assert len(closed.contributors) == len(names)
    assert looks <= 5


def test_the_last_push_wakes_who_waits_though_it_is_interrupted(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Ctrl-C between the record and the close leaves the close to those who wait."""
    aggregator = opened()
    aggregator.push(7, "a", one(2), attempt=0)
    begun = threading.Event()
    register = aggregator._register

    def look() -> None:
        aggregator.tick()
        begun.set()

    end = time.monotonic() + BOUND_SECONDS
    waiting = wait_in_thread(lambda: register.wait_closed(7, end, look))
    assert begun.wait(BOUND_SECONDS)
    interrupt(register, "record", monkeypatch, after=True)
    with pytest.raises(KeyboardInterrupt):
        aggregator.push(7, "b", one(5), attempt=0)
    assert waiting.result() is not None
    assert time.monotonic() < end  # when its time is up it looks in any case
    assert number(aggregator.pull(7)) == 7
