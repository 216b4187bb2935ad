"""Kernels are compiled once, kept whole, and loaded without Numba."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from onefold.exact import kernels
from onefold.exact.kernels import loading
from onefold.exact.kernels.loading import Kernel

ADD = """
import sys
import numpy as np
import onefold
total = onefold.sum_dense([np.array([2**62, 5]), np.array([-(2**62), 6])])
print(total.tolist(), "numba" in sys.modules)
"""


def run(**environment: str) -> str:
    """What the program prints, in a process of its own."""
    return run_whole(ADD, **environment).stdout.strip()


def run_whole(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True
    )


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr(loading, "cache_directory", lambda: tmp_path)
    return tmp_path


class Compiler:
    """Stands in for the compiler, and counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        monkeypatch.setattr(Kernel, "_compile", lambda _kernel, _signature: self.compile())

    def compile(self) -> tuple[str, bytes]:
        """Some code."""
        self.calls += 1
        return "symbol", b"code\nof several lines\n"


def test_a_later_process_loads_no_numba():
    """With a warm cache the first sum needs neither the compiler nor the time to import it."""
    run()  # compiles if nobody has
    assert run() == "[0, 11] False"


def test_without_a_cache_kernels_are_compiled_in_every_process():
    """A directory that cannot be written to costs time, not the sum."""
    result = run_whole(ADD, ONEFOLD_CACHE="/dev/null/here")
    assert result.stdout == "[0, 11] True\n"
    assert result.stderr.count("\n") == result.stderr.count("cannot be kept") == 1


def test_compiling_is_logged_and_what_numba_says_of_it_is_not():
    """One line for each kernel, also where all that is logged anywhere is wanted."""
    verbose = "import logging; logging.basicConfig(level=logging.DEBUG)\n" + ADD
    lines = run_whole(verbose, ONEFOLD_CACHE="/dev/null/here").stderr.splitlines()
    assert sum("compiling kernel reduce_integers for int64:1, int" in line for line in lines) == 1
    assert not [line for line in lines if "numba" in line]


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """$ONEFOLD_CACHE comes before $XDG_CACHE_HOME, which comes before the home directory."""
    for name, expected in [
        ("HOME", tmp_path / ".cache" / "onefold"),
        ("XDG_CACHE_HOME", tmp_path / "onefold"),
        ("ONEFOLD_CACHE", tmp_path),
    ]:
        if name == "HOME":
            monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
            monkeypatch.delenv("ONEFOLD_CACHE", raising=False)
        monkeypatch.setenv(name, str(tmp_path))
        directory = loading.cache_directory.__wrapped__()
        assert directory is not None
        assert directory.parent == expected


def test_the_key_depends_on_every_source_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An edit in any module of the package is another key, also in one that is only imported."""
    for source in Path(loading.__file__).parent.glob("*.py"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr(loading, "__file__", str(tmp_path / "loading.py"))
    key = loading._key()
    for source in sorted(tmp_path.glob("*.py")):
        source.write_text(source.read_text() + "\n")
        assert loading._key() != key
        key = loading._key()


def test_code_is_compiled_once_and_kept(directory: Path, monkeypatch: pytest.MonkeyPatch):
    """What was compiled is read from then on, byte for byte."""
    compiler = Compiler(monkeypatch)
    kernel = Kernel("dense", "some")
    results = [kernel._code(["int", "float64:1"]) for _ in range(3)]
    assert results == [("symbol", b"code\nof several lines\n")] * 3
    assert compiler.calls == 1
    assert (directory / "some-int-float64x1").exists()


@pytest.mark.parametrize("kept", [b"", b"x", b"x\ny\nz", None])
def test_damaged_code_is_made_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch, kept: bytes | None
):
    """A file that is cut off, or is another, is never run."""
    compiler = Compiler(monkeypatch)
    kernel = Kernel("dense", "some")
    kernel._code(["int"])
    path = directory / "some-int"
    path.write_bytes(path.read_bytes()[:-1] if kept is None else kept)
    assert kernel._code(["int"]) == ("symbol", b"code\nof several lines\n")
    assert compiler.calls == 2
    kernel._code(["int"])
    assert compiler.calls == 2


@pytest.mark.parametrize("method", ["open", "replace"])
def test_a_full_disk_does_not_stop_a_sum(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
):
    """Code is used though it, or the lock beside it, cannot be written; it is told why, once."""
    Compiler(monkeypatch)
    monkeypatch.setattr(loading, "_why_not_kept", None)

    def full(_path: Path, *_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, method, full)
    loading._warn.cache_clear()
    for _ in range(2):
        assert Kernel("dense", "some")._code(["int"]) == ("symbol", b"code\nof several lines\n")
    is_kept = method == "open"
    assert (loading.why_not_kept() is None) == is_kept
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == (0 if is_kept else 1)
    assert all("No space left on device" in each and "ONEFOLD_CACHE" in each for each in warnings)
    left = {each.name for each in directory.iterdir()}
    assert left == ({"some-int"} if is_kept else {"some-int.lock"})


def test_a_fork_does_not_wait_for_a_thread_that_is_gone():
    """A child can load kernels although another thread of its parent was just loading one."""
    if not hasattr(os, "fork"):
        pytest.skip("Windows has no fork")
    code = """
import os, threading
from onefold.exact.kernels import loading
held, done = threading.Event(), threading.Event()
def hold():
    with loading._lock:
        held.set(); done.wait()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    os._exit(0 if loading._lock.acquire(timeout=5) else 1)
status = os.waitpid(child, 0)[1]
done.set()
print(status)
"""
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "0\n"


def test_two_processes_do_not_compile_the_same(directory: Path, monkeypatch: pytest.MonkeyPatch):
    """Who comes second waits, and reads what the first has made."""
    pytest.importorskip("fcntl", reason="Windows has no flock; there both compile")
    compiler = Compiler(monkeypatch)
    path = directory / "some-int"
    results: list[tuple[str, bytes]] = []
    second = threading.Thread(target=lambda: results.append(Kernel("d", "some")._code(["int"])))
    with loading._only_one(path):
        second.start()
        second.join(0.05)
        assert second.is_alive()
        loading._write(path, "first", b"made it")
    second.join(30)
    assert results == [("first", b"made it")]
    assert compiler.calls == 0


def test_a_variant_for_each_type_of_argument():
    """The same kernel serves several types in one process."""
    for dtype in (np.int32, np.int64):
        array = np.arange(5, dtype=dtype)
        addresses = np.array([array.ctypes.data] * 3)
        out = np.empty(5, dtype)
        limits = np.iinfo(np.int32)
        scratch, zeros = np.empty((2, 1024), np.int64), np.zeros(1024, dtype)
        found = kernels.reduce_integers(
            addresses, 0, out, scratch, zeros.ctypes.data, int(limits.min), int(limits.max)
        )
        assert found == -1
        assert out.tolist() == [0, 3, 6, 9, 12]
