"""Programs that want a pass without being right, or want out of their process, get neither."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import tempfile
from pathlib import Path

import pytest
from hostile_programs import HOSTILE

from failuremap.runner.process import Child, Load
from failuremap.runner.running import run_fixtures

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_MILLISECONDS = 5000


def children() -> dict[int, str]:
    """Our children by process id, with their command lines; orphans of theirs have become ours."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # it has ended in between
        if int(status.rpartition(")")[2].split()[1]) == os.getpid():
            found[int(folder.name)] = command or status
    return found


def still_there(process: int) -> bool:
    """Whether a child goes on, after the moment that dying takes; a dead one is buried."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(PATIENCE_MILLISECONDS):
            return True
    finally:
        os.close(handle)
    os.waitpid(process, 0)
    return False


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """After the test there is no process and no file that was not there before."""
    folders = [tmp_path / "temporary", tmp_path / "here"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders[0]))
    monkeypatch.chdir(folders[1])
    on_linux = sys.platform == "linux"
    if on_linux:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = children() if on_linux else {}
    yield tmp_path
    if on_linux:
        left = {p: c for p, c in children().items() if p not in before and still_there(p)}
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        assert left == {}
    assert [file for folder in folders for file in folder.rglob("*")] == []
    assert not Path("/dev/shm/failuremap-mark").exists()


@pytest.fixture(scope="module")
def isolation(interpreter, quick):
    """What is confined on this machine."""
    with Child(Load.source("def solve(): pass"), interpreter, quick) as child:
        return child.isolation


def need(words: str, isolation: tuple[str, ...]) -> None:
    if words and words not in isolation:
        pytest.skip(f"this machine does not apply {words!r} to children")


@pytest.mark.parametrize("program", HOSTILE, ids=lambda program: program.name.replace(" ", "-"))
def test_a_hostile_program_gets_its_status_and_leaves_nothing(
    program, interpreter, quick, sums, isolation, nothing_left
):
    """No pass on the first fixture nor on the whole, the status that it deserves, no remains."""
    need(program.needs, isolation)
    marks, witness = nothing_left / "marks", nothing_left / "witness"
    witness.write_text("as it was")
    before = witness.stat()
    source = program.source.replace("{marks}", str(marks)).replace("{witness}", str(witness))
    goes_on = {"fail", "error"} & set(program.statuses) or "forge" in source
    asked = sums if goes_on else sums[:1]  # a child that ends is followed by one that does, too
    run = run_fixtures(Load.source(source), asked, interpreter, quick)
    assert [verdict.label for verdict in run.verdicts] == [fixture.label for fixture in asked]
    assert run.verdicts[0].status in program.statuses, run.verdicts[0]
    assert not run.passed
    assert run.exit_code == 1
    assert not marks.exists()
    assert witness.read_text() == "as it was"
    assert witness.stat().st_mode == before.st_mode
