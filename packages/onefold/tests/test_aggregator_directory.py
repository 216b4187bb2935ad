"""The contract of the aggregator on a directory, and crashes of its process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import onefold
from onefold.aggregator import Aggregator
from onefold.errors import NotYet
from onefold.ledger import Status
from onefold.policy import Policy
from onefold.testing import DurableContract, MakeAggregator, OpenRun
from onefold.testing.support import number, one, who


class OpenDirectory:
    """Opens one directory again and again, as a restarted server does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open: Aggregator | None = None

    def __call__(
        self,
        policy: Policy = Policy(),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.time,
    ) -> Aggregator:
        self.shutdown()
        self._open = Aggregator(self.directory, policy, clock=clock)
        self._open.open()
        return self._open

    def shutdown(self) -> None:
        if self._open is not None:
            self._open.shutdown()


class TestDirectory(DurableContract):
    """SQLite for the ledger, Arrow files for the numbers."""

    @pytest.fixture
    def make_aggregator(self, tmp_path: Path) -> Iterator[MakeAggregator]:
        numbers = count()
        with ExitStack() as stack:

            def make(
                policy: Policy = Policy(),  # noqa: B008 - frozen
                clock: Callable[[], float] = time.time,
            ) -> Aggregator:
                directory = tmp_path / f"run{next(numbers)}"
                return stack.enter_context(Aggregator(directory, policy, clock=clock))

            yield make

    @pytest.fixture
    def open_run(self, tmp_path: Path) -> Iterator[OpenRun]:
        opener = OpenDirectory(tmp_path / "run")
        yield opener
        opener.shutdown()


AB = Policy(roster=["a", "b"])

DIES = """
import os, signal, sys
from onefold.aggregator import Aggregator
from onefold.policy import Policy
from onefold.testing.support import one

aggregator = Aggregator(sys.argv[1], Policy(roster=["a", "b"]))
aggregator.open()
for step in range(3):
    aggregator.push(step, "a", one(2), attempt=0, incarnation=1)
    if step < 2:
        aggregator.push(step, "b", one(5), attempt=0, incarnation=1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(script: str, directory: Path) -> None:
    """Run ``script``, which kills its own process, on ``directory``."""
    source = str(Path(onefold.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": source}
    command = [sys.executable, "-c", script, str(directory)]
    done = subprocess.run(
        command, env=environment, timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == -9, done.stderr


def test_a_killed_process_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    """After SIGKILL closed steps are closed, open ones whole, and the lock is free."""
    killed(DIES, tmp_path / "run")
    with Aggregator(tmp_path / "run", AB) as aggregator:
        for step in (0, 1):
            assert number(aggregator.pull(step, timeout_seconds=0)) == 7
            assert aggregator.push(step, "b", one(5), attempt=0, incarnation=1).counted
        with pytest.raises(NotYet):
            aggregator.pull(2, timeout_seconds=0)
        repeat = aggregator.push(2, "a", one(2), attempt=0, incarnation=1)
        assert repeat.status is Status.DUPLICATE
        aggregator.push(2, "b", one(5), attempt=0, incarnation=1)
        aggregate = aggregator.pull(2, timeout_seconds=0)
        assert (number(aggregate), who(aggregate)) == (7, ["a", "b"])


def test_a_killed_opening_can_be_repeated(tmp_path: Path) -> None:
    """Being killed again and again on the same directory changes no answer."""
    for _ in range(3):
        killed(DIES, tmp_path / "run")
    with Aggregator(tmp_path / "run", AB) as aggregator:
        assert [number(aggregator.pull(step, timeout_seconds=0)) for step in (0, 1)] == [7, 7]


def test_a_push_that_was_never_committed_leaves_no_trace(tmp_path: Path) -> None:
    """Parts that were staged and not committed are swept at the next start."""
    from onefold.parts import encode

    def files() -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}

    with Aggregator(tmp_path / "run", AB) as aggregator:
        aggregator.push(7, "a", one(2), attempt=0)
    before = files()
    with Aggregator(tmp_path / "run", AB) as aggregator:
        for schema, batches in encode(one(5)):
            aggregator.stage(7, schema, batches)
    with Aggregator(tmp_path / "run", AB):
        pass
    assert files() == before


def test_replaced_numbers_do_not_pile_up(tmp_path: Path) -> None:
    """What no longer stands is not kept for ever: as many files as after one push."""

    def count_files(attempts: int) -> int:
        directory = tmp_path / f"run{attempts}"
        with Aggregator(directory, AB) as aggregator:
            for attempt in range(attempts):
                aggregator.push(7, "a", one(attempt), attempt=attempt)
        with Aggregator(directory, AB):
            return len([path for path in directory.rglob("*") if path.is_file()])

    assert count_files(20) == count_files(1)


def test_a_run_keeps_its_id(tmp_path: Path) -> None:
    """Each directory has one run id, and another directory another."""
    with Aggregator(tmp_path / "one", AB) as first:
        run = first.run
    with Aggregator(tmp_path / "one", AB) as again, Aggregator(tmp_path / "two", AB) as other:
        assert again.run == run
        assert other.run != run


def test_numbers_that_rot_before_the_close_are_not_summed(tmp_path: Path) -> None:
    """A bit that flips between commit and close takes the update out; sent again, it counts."""
    with Aggregator(tmp_path / "run", AB) as aggregator:
        aggregator.push(7, "a", one(1234.5), attempt=0)
        marked = np.float64(1234.5).tobytes()
        (path,) = (tmp_path / "run/staged").iterdir()
        data = bytearray(path.read_bytes())
        data[data.index(marked)] ^= 1
        path.write_bytes(data)
        aggregator.push(7, "b", one(5), attempt=0)
        with pytest.raises(NotYet):
            aggregator.pull(7)
        assert not aggregator.stands(7, "a", None, 0)
        assert aggregator.stands(7, "b", None, 0)
        aggregator.push(7, "a", one(1234.5), attempt=0)
        assert number(aggregator.pull(7)) == 1239.5
