"""Compiling ahead: in the background of a server, and by ``onefold warmup``; here, of nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_cli import call
from typer.testing import CliRunner

import onefold
from onefold.aggregator import Aggregator
from onefold.cli import app, serve
from onefold.exact import warming
from onefold.exact.kernels import loading
from onefold.server import Server

BOUND_SECONDS = 60.0


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable[[], None]]]:
    """What is to be compiled, instead of the kernels."""
    wanted: list[tuple[str, Callable[[], None]]] = []
    monkeypatch.setattr(warming, "warm_up_steps", lambda: iter(wanted))
    return wanted


def warming_thread() -> threading.Thread | None:
    found = [each for each in threading.enumerate() if each.name == "onefold-warming"]
    return found[0] if found else None


class TestServer:
    def test_it_warms_up_only_if_told(self, steps: list[tuple[str, Callable[[], None]]]) -> None:
        """The default of the library is not to, so that tests and small programs stay quick."""
        steps.append(("never", lambda: pytest.fail("it was compiled")))
        with Aggregator() as aggregator, Server(aggregator):
            assert warming_thread() is None

    def test_it_pushes_closes_and_stops_while_it_warms_up(
        self, steps: list[tuple[str, Callable[[], None]]]
    ) -> None:
        """A step that never ends holds up no call and no stop; after the stop none is begun."""
        compiling, go_on, after = threading.Event(), threading.Event(), threading.Event()

        def endless() -> None:
            compiling.set()
            assert go_on.wait(BOUND_SECONDS)

        steps += [("endless", endless), ("after", after.set)]
        policy = onefold.Policy(roster=["a"])
        with Aggregator(policy=policy) as aggregator:
            with Server(aggregator, warm_up=True) as server:
                assert compiling.wait(BOUND_SECONDS)
                with onefold.connect(server.address, worker="a") as client:
                    client.push(0, {"w": np.ones(3, np.float32)})
                    assert client.pull(0).tensors["w"].tolist() == [1, 1, 1]
            thread = warming_thread()
            assert thread is not None
            assert thread.daemon
            go_on.set()
            thread.join(BOUND_SECONDS)
        assert not thread.is_alive()
        assert not after.is_set()

    def test_a_failure_is_logged_and_nothing_else(
        self,
        steps: list[tuple[str, Callable[[], None]]],
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """The server goes on, and each kernel is then compiled when it is needed."""
        failed = threading.Event()

        def failing() -> None:
            failed.set()
            raise MemoryError("too large")

        steps.append(("failing", failing))
        with Aggregator() as aggregator, Server(aggregator, warm_up=True) as server:
            assert failed.wait(BOUND_SECONDS)
            if (thread := warming_thread()) is not None:
                thread.join(BOUND_SECONDS)
            assert server.address
        assert "compiled when it is needed" in caplog.text
        assert "too large" in caplog.text
        assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("environment", "option", "expected"),
    [
        (None, None, True),
        ("0", None, False),
        ("1", None, True),
        ("0", "--warm-up", True),
        ("1", "--no-warm-up", False),
    ],
)
def test_the_option_beats_the_environment_beats_the_default(
    monkeypatch: pytest.MonkeyPatch, environment: str | None, option: str | None, expected: bool
) -> None:
    """``onefold serve`` warms up unless it is told not to."""
    told = []
    monkeypatch.setattr(serve, "_serve_until_told", lambda *said: told.append(said[-1].warm_up))
    options = [] if option is None else [option]
    result = CliRunner().invoke(
        app, ["serve", "D", "--workers", "1", *options], env={"ONEFOLD_WARM_UP": environment}
    )
    assert result.exit_code == 0, result.output
    assert told == [expected]


class TestCommand:
    def test_it_names_what_it_compiles_and_where_that_is_kept(
        self,
        steps: list[tuple[str, Callable[[], None]]],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        """Each step is done once; standard error has the bar, standard output the outcome."""
        done: list[str] = []
        steps += [(name, lambda name=name: done.append(name)) for name in ("one", "two")]
        monkeypatch.setattr(loading, "cache_directory", lambda: tmp_path)
        result = CliRunner().invoke(app, ["warmup"], env={"COLUMNS": "200"})
        assert result.exit_code == 0
        assert done == ["one", "two"]
        assert result.stdout == f"2 groups of kernels compiled, kept in {tmp_path}\n"
        assert "Kernels compiled" in result.stderr

    def test_the_bar_shows_the_name_of_the_step_at_work(
        self, steps: list[tuple[str, Callable[[], None]]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that whoever waits sees for what."""
        from rich.progress import Progress

        shown = []
        update = Progress.update
        monkeypatch.setattr(
            Progress,
            "update",
            lambda self, task, **changes: (
                shown.append(changes["description"]) or update(self, task, **changes)
            ),
        )
        monkeypatch.setattr(loading, "cache_directory", lambda: Path("there"))
        steps.append(("dense float32", lambda: shown.append("compiled")))
        assert CliRunner().invoke(app, ["warmup"]).exit_code == 0
        assert shown == ["Compiling kernels: dense float32", "compiled", "Kernels compiled"]

    def test_without_a_directory_to_write_to_nothing_is_compiled(self, tmp_path: Path) -> None:
        """It would be lost; the message names the directory and the way out."""
        (tmp_path / "file").write_text("in the way")
        result = call("warmup", ONEFOLD_CACHE=str(tmp_path / "file" / "cache"))
        assert result.returncode == 1
        assert result.stdout == ""
        assert result.stderr == (
            f"onefold: nothing was compiled: no file can be written to {tmp_path}/file/cache; "
            "$ONEFOLD_CACHE names another directory to keep it in\n"
        )

    def test_a_disk_that_is_full_on_the_way_is_told(
        self,
        steps: list[tuple[str, Callable[[], None]]],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        """What loading keeps quiet about is told here: one line, not a traceback."""

        def full(_path: Path, _target: Path) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(loading, "_why_not_kept", None)
        monkeypatch.setattr(loading, "cache_directory", lambda: tmp_path)
        monkeypatch.setattr(loading.Kernel, "_compile", lambda *_: ("symbol", b"code"))
        monkeypatch.setattr(Path, "replace", full)
        steps.append(("dense int8", lambda: loading.Kernel("dense", "some")._code(["int"])))
        result = CliRunner().invoke(app, ["warmup"])
        assert result.exit_code == 1
        assert f"could be kept in {tmp_path}: [Errno 28] No space left" in result.stderr
        assert "Traceback" not in result.stderr
