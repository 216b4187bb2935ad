"""A disk that is full, fails or must not be written to: told clearly, and survived."""

from __future__ import annotations

import errno
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from struck import Blow, StruckFiles

from onefold.aggregator import Aggregator
from onefold.client import connect
from onefold.errors import NotYet, StoreError
from onefold.policy import Policy
from onefold.server import Server
from onefold.store import DirectoryStore
from onefold.testing.support import number, one, wait_in_thread, who

AB = Policy(roster=["a", "b"], sync_each_push=True, keep_steps=1)
STEPS = 2

ERRORS = [errno.ENOSPC, errno.EROFS, errno.EIO]
ADVICE = {
    errno.ENOSPC: "make room on the disk",
    errno.EROFS: "let this process write",
    errno.EIO: "see that the disk is well",
}


class Full(StruckFiles):
    """A disk that fails from an operation on, until there is space again."""

    def __init__(self, code: int, at: int | None) -> None:
        super().__init__(self._struck)
        self.code = code
        self.at = at
        self.failures = 0

    def _struck(self, _: StruckFiles, __: str) -> Blow | None:
        if self.at is None or len(self.done) < self.at:
            return None
        self.failures += 1
        return Blow("within", OSError(self.code, f"injected {errno.errorcode[self.code]}"))

    def half_done(self, what: str, do: Callable[[], object]) -> None:
        """A statement that fails has changed nothing."""


def steps_of_a_run(aggregator: Aggregator) -> list[Callable[[], Any]]:
    """Every kind of write, each a call that may be made again."""
    calls: list[Callable[[], Any]] = [
        aggregator.open,
        lambda: aggregator.join("a", "life a"),
        lambda: aggregator.join("b", "life b"),
    ]
    for step in range(STEPS):
        for worker, value in (("a", 2), ("b", 5)):

            def push(step: int = step, worker: str = worker, value: int = value) -> None:
                receipt = aggregator.push(step, worker, one(value), attempt=0, incarnation=1)
                assert receipt.stands, receipt

            calls.append(push)
        calls.append(lambda step=step: aggregator.pull(step))
    calls.append(lambda: aggregator.leave("b", 1))
    return calls


def made(call: Callable[[], Any], disk: Full) -> None:
    """Make a call; if the disk is full it says so, and there is room before it is made again."""
    try:
        call()
    except (StoreError, NotYet) as error:
        if isinstance(error, StoreError):
            assert ADVICE[disk.code] in str(error)  # noqa: PT017
        assert disk.failures
        disk.at = None
        call()


def checked(aggregator: Aggregator) -> None:
    """The run is what it would have been."""
    aggregate = aggregator.pull(STEPS - 1)
    assert (number(aggregate), who(aggregate)) == (7, ["a", "b"])
    assert aggregator.status().open_steps == ()
    receipt = aggregator.push(0, "a", one(2), attempt=0, incarnation=1)
    assert receipt.counted


def operations(directory: Path) -> int:
    """How many operations the run takes."""
    disk = Full(errno.ENOSPC, None)
    aggregator = Aggregator(directory, AB)
    aggregator._store.files = disk
    for call in steps_of_a_run(aggregator):
        call()
    aggregator.shutdown()
    return len(disk.done)


@pytest.mark.parametrize(
    ("code", "first", "stride"),
    [
        *((errno.ENOSPC, first, 4) for first in range(1, 5)),
        *((code, 1 + first, 8) for first in (0, 4) for code in ERRORS[1:]),
    ],
)
def test_a_full_disk_is_told_and_survived_at_every_operation(
    tmp_path: Path, code: int, first: int, stride: int
) -> None:
    """Whichever operation is the first that fails: an error that says what to do, and once there
    is room the same call succeeds, nothing is lost and nothing is counted twice."""
    for at in range(first, operations(tmp_path / "whole") + 1, stride):
        directory = tmp_path / str(at)
        disk = Full(code, at)
        aggregator = Aggregator(directory, AB)
        aggregator._store.files = disk
        for call in steps_of_a_run(aggregator):
            made(call, disk)
        disk.at = None
        checked(aggregator)
        aggregator.shutdown()
        with Aggregator(directory, AB) as again:
            checked(again)
            assert again.status().staged_bytes == 0  # what could not be removed has been swept
        kept = {path.name for path in (directory / "aggregates").iterdir()}
        assert kept - {str(STEPS - 2)} == {str(STEPS - 1)}  # the last pruning may have failed
        shutil.rmtree(directory)


@pytest.mark.parametrize("code", ERRORS, ids=[errno.errorcode[code] for code in ERRORS])
def test_an_opening_on_a_full_disk_can_be_repeated(tmp_path: Path, code: int) -> None:
    """Opening a run that is there: told at every operation, and afterwards all is there."""
    whole = tmp_path / "whole"
    operations(whole)
    (whole / f"staged/9-{'0' * 32}.arrow").write_text("to be swept")
    (whole / "aggregates/0").mkdir()
    count = Full(code, None)
    shutil.copytree(whole, tmp_path / "count")
    store = DirectoryStore(tmp_path / "count", count)
    store.open()
    store.close()
    assert len(count.done) > 3
    for at in range(1, len(count.done) + 1):
        directory = tmp_path / str(at)
        shutil.copytree(whole, directory)
        disk = Full(code, at)
        aggregator = Aggregator(directory, AB)
        aggregator._store.files = disk
        try:
            aggregator.open()
        except StoreError as error:
            assert ADVICE[code] in str(error)  # noqa: PT017
        disk.at = None
        aggregator.open()
        checked(aggregator)
        aggregator.shutdown()


def test_a_ledger_that_reaches_its_limit_is_told(tmp_path: Path) -> None:
    """SQLite's own "full": the push is refused with what to do, and goes through afterwards."""
    with Aggregator(tmp_path / "run", AB) as aggregator:
        aggregator.push(0, "a", one(2), attempt=0)
        database = aggregator._store._open_tables._database
        (pages,) = database.execute("pragma page_count").fetchone()
        database.execute(f"pragma max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"ledger\.sqlite cannot be written.*make room"):
            _join_for_ever(aggregator)
        database.execute("pragma max_page_count = 1000000")
        aggregator.push(0, "b", one(5), attempt=0)
        assert number(aggregator.pull(0)) == 7


def _join_for_ever(aggregator: Aggregator) -> None:
    for life in range(1000):
        aggregator.join("a", f"life {life} {'x' * 200}")


LIMITED = """
import resource, signal, sys
import numpy as np
from onefold.aggregator import Aggregator
from onefold.errors import StoreError
from onefold.policy import Policy

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
aggregator = Aggregator(sys.argv[1], Policy(roster=["a", "b"])).open()
aggregator.push(0, "a", np.ones(50_000), attempt=0)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
try:
    aggregator.push(0, "b", np.ones(50_000), attempt=0)
except StoreError as error:
    print("told:", error)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
aggregator.push(0, "b", np.ones(50_000), attempt=0)
print(aggregator.pull(0).tensor.sum())
aggregator.shutdown()
"""


def test_a_real_limit_of_file_sizes_is_told_and_survived(tmp_path: Path) -> None:
    """The system's own refusal to write more, in a process of its own."""
    assert resource.RLIMIT_FSIZE is not None
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told, total = done.stdout.splitlines()
    assert "cannot be staged" in told
    assert "make room on the disk" in told
    assert total == "100000.0"


def test_a_server_whose_disk_is_full_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """Clients try again until it is done; every step counts each worker once."""
    disk = Full(errno.ENOSPC, None)
    aggregator = Aggregator(tmp_path / "run", AB)
    aggregator._store.files = disk
    with aggregator:
        server = Server(aggregator, "127.0.0.1:0", warm_up=False)
        server.start()
        try:
            with (
                connect(server.address, "a", timeout_seconds=60) as a,
                connect(server.address, "b", timeout_seconds=60) as b,
            ):
                for step in range(STEPS):
                    disk.failures = 0
                    disk.at = len(disk.done) + 1 + 3 * step
                    calls = [
                        wait_in_thread(lambda client=client, step=step: client.reduce(step, one(3)))
                        for client in (a, b)
                    ]
                    _until(lambda: disk.failures > 2)
                    disk.at = None
                    for call in calls:
                        aggregate = call.result()
                        assert (number(aggregate), who(aggregate)) == (6, ["a", "b"])
        finally:
            server.stop(drain_seconds=1)


def _until(condition: Callable[[], bool]) -> None:
    moment = threading.Event()
    for _ in range(3000):
        if condition():
            return
        moment.wait(0.01)
    pytest.fail("it never came")
