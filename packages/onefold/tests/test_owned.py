"""Temporary directories of clients: who is killed leaves one behind, and not for long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import onefold
from onefold.client.owned import OwnedDirectory, remove_orphans
from onefold.errors import StoreError
from onefold.policy import Policy
from onefold.server import Server

KILLED = """
import os, signal, sys
from onefold.client.owned import OwnedDirectory
owned = OwnedDirectory("onefold-spool-", sys.argv[1])
(owned.path / "part").write_text("numbers")
print(owned.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def orphan(parent: Path) -> Path:
    """A directory whose owner was killed."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(parent)], stdout=subprocess.PIPE, check=False, text=True
    )
    assert done.returncode == -signal.SIGKILL
    path = Path(done.stdout.strip())
    assert (path / "part").exists()
    return path


def test_orphans_go_and_the_living_stay(tmp_path: Path) -> None:
    """By the lock alone: age, names and content do not matter."""
    dead, living = orphan(tmp_path), OwnedDirectory("onefold-spool-", tmp_path)
    other = tmp_path / "somebody-elses"
    other.mkdir()
    (tmp_path / "onefold-spool-file").write_text("no directory")
    remove_orphans("onefold-spool-", tmp_path)
    assert not dead.exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        *(living.path.name, "somebody-elses", "onefold-spool-file"),
    }
    living.remove()
    assert not living.path.exists()
    living.remove()


def test_what_is_another_users_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary places are shared."""
    dead, user = orphan(tmp_path), os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    remove_orphans("onefold-spool-", tmp_path)
    assert dead.exists()


def test_a_directory_taken_for_an_orphan_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tidies up between the making and the locking takes that one, not the next."""
    import tempfile

    made: list[str] = []
    mkdtemp = tempfile.mkdtemp

    def swept(prefix: str, dir: str) -> str:  # noqa: A002 - as it is called
        made.append(mkdtemp(prefix=prefix, dir=dir))
        if len(made) == 1:
            remove_orphans(prefix, dir)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", swept)
    owned = OwnedDirectory("onefold-spool-", str(tmp_path))
    assert [str(path) for path in tmp_path.iterdir()] == [str(owned.path)] == made[1:]


def test_a_client_that_connects_tidies_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it keeps its own updates, which the environment may say."""
    spools = tmp_path / "spools"
    spools.mkdir()
    dead = orphan(spools)
    monkeypatch.setenv("ONEFOLD_SPOOL_DIRECTORY", str(spools))
    with (
        onefold.Aggregator(policy=Policy(roster=["a"])) as aggregator,
        Server(aggregator) as server,
        onefold.connect(server.address, "a"),
    ):
        assert not dead.exists()
        assert len(list(spools.iterdir())) == 1
    assert list(spools.iterdir()) == []


def test_a_place_that_is_none_is_told(tmp_path: Path) -> None:
    """StoreError, with the place."""
    with (
        onefold.Aggregator(policy=Policy(roster=["a"])) as aggregator,
        Server(aggregator) as server,
        pytest.raises(StoreError, match="nowhere"),
    ):
        onefold.connect(server.address, "a", spool_directory=tmp_path / "nowhere")


def test_it_is_found_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative parent is that of the directory at the time."""
    (tmp_path / "spools").mkdir()
    monkeypatch.chdir(tmp_path)
    owned = OwnedDirectory("onefold-", "spools")
    monkeypatch.chdir("/")
    (owned.path / "file").touch()
    owned.remove()
    assert list((tmp_path / "spools").iterdir()) == []
