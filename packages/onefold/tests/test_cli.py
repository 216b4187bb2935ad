"""The command line: what it prints, and with which exit status it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import onefold

BOUND_SECONDS = 60.0


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "onefold", *map(str, arguments)]


def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        check=False,
        capture_output=True,
        text=True,
        timeout=BOUND_SECONDS,
        env={**os.environ, "COLUMNS": "100", **environment},
    )


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process and its address; it is stopped at the end if it is still there."""
    with subprocess.Popen(
        command("serve", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("listening on grpc://127.0.0.1:"), line
            yield process, line.split()[-1]
        finally:
            process.kill()


class TestHelp:
    def test_it_teaches(self) -> None:
        result = call("--help")
        assert result.returncode == 0
        assert "onefold run --workers 4 -- python train.py" in result.stdout
        assert {"serve", "run", "status"} <= set(result.stdout.split())

    @pytest.mark.parametrize("name", ["serve", "run", "status"])
    def test_every_command_has_an_example(self, name: str) -> None:
        result = call(name, "--help")
        assert result.returncode == 0
        assert f"onefold {name} " in result.stdout.partition("Example")[2]

    def test_the_version_is_that_of_the_package(self) -> None:
        assert call("--version").stdout == f"onefold {onefold.__version__}\n"

    def test_help_loads_nothing_heavy(self) -> None:
        source = (
            "import sys; from onefold.cli import app; "
            "heavy = {'numpy', 'pyarrow', 'rich'} & set(sys.modules); print(sorted(heavy))"
        )
        result = subprocess.run(
            [sys.executable, "-c", source], check=True, capture_output=True, text=True
        )
        assert result.stdout == "[]\n"


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("serve", "D"), "exactly one of --workers N, --roster a,b,c and --joined"),
            (("serve", "D", "--workers", 2, "--joined"), "exactly one of --workers N"),
            (("serve", "D", "--workers", 0), "must be an integer of at least 1, not 0"),
            (("serve", "D", "--roster", "a,a"), "names each worker once"),
            (("serve", "D", "--workers", 2, "--minimum", 1), "needs --deadline"),
            (("serve", "D", "--workers", 2, "--deadline", "nan"), "--deadline is a number"),
            (("serve", "D", "--workers", 2, "--open-steps", 0), "--open-steps must be"),
            (("serve", "D", "--workers", 2, "--keep-steps", 0), "--keep-steps must be"),
            (("serve", "D", "--roster", "a,b\tc"), "has no control characters"),
            (("serve", "", "--workers", 2), '"" is no path'),
            (("serve", "D", "--workers", 2, "--operation", "max"), "max"),
            (("run", "--workers", 2, "--faults", "loose=1", "--", "x"), "'loose=1' is no fault"),
            (("run", "--workers", 2, "--faults", "lose=2", "--", "x"), "number from 0 to 1, not 2"),
            (("run", "--workers", 0, "--", "x"), "at least 1 worker, not 0"),
            (("run", "--workers", 2), "COMMAND"),
            (("run", "--", "x"), "--workers"),
            (("run", "--workers", 2, "--faults", "lose=1", "--", "x"), "no call is ever answered"),
            (("run", "--workers", 2, "--steps", -1, "--", "x"), "at least 1 step, not -1"),
            (("run", "--workers", 2, "--deadline", -1, "--", "x"), "--deadline is a number"),
            (("run", "--workers", 2, "--minimum", 1, "--", "x"), "needs --deadline"),
            (
                ("run", "--workers", 2, "--minimum", 3, "--deadline", 1, "--", "x"),
                "--minimum is 3 but the roster has 2 workers",
            ),
            (("run", "--workers", 1, "--", "no-such-program"), "no program 'no-such-program'"),
            (("run", "--workers", 1, "--", __file__), f"-- python {__file__}"),
            (
                ("run", "--workers", 1, "--directory", __file__, "--", sys.executable),
                f"--directory {__file__} cannot be used: File exists",
            ),
            (
                ("run", "--workers", 1, "--summary", f"{__file__}/s", "--", sys.executable),
                f"--summary {__file__}/s cannot be written: Not a directory",
            ),
            (("run", "--workers", 1, "--summary", "/", "--", sys.executable), "Is a directory"),
            (("status",), "give grpc://HOST:PORT, or set ONEFOLD_ADDRESS"),
            (("status", "banana"), "an address is grpc://HOST:PORT, not 'banana'"),
        ],
    )
    def test_what_is_typed_wrongly_is_explained(
        self, tmp_path: Path, arguments: tuple[object, ...], message: str
    ) -> None:
        placed = [tmp_path / "store" if word == "D" else word for word in arguments]
        result = call(*placed, ONEFOLD_ADDRESS="")
        assert result.returncode == 2
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "store").exists()


class TestServe:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it_cleanly(self, tmp_path: Path, number: signal.Signals) -> None:
        with serving(tmp_path, "--workers", 1) as (process, address):
            with onefold.connect(address, "a") as client:
                assert client.joined.incarnation == 1
            process.send_signal(number)
            _, errors = process.communicate(timeout=BOUND_SECONDS)
            assert process.returncode == 0
            assert re.match(rf"stopped; run [0-9a-f]{{32}} is kept in {tmp_path}", errors)
            assert errors.count("\n") == 1

    def test_it_does_not_say_that_it_keeps_what_was_moved(self, tmp_path: Path) -> None:
        """Whoever has moved its directory is told so at the end, too."""
        with serving(tmp_path / "run", "--workers", 1) as (process, _):
            (tmp_path / "run").rename(tmp_path / "elsewhere")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=BOUND_SECONDS)
            assert process.returncode == 0
            assert errors.startswith(f"stopped; the directory {tmp_path / 'run'}, or the file lock")
            assert "moved or removed: put it back" in errors

    def test_a_second_server_on_the_directory_is_refused(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--workers", 1):
            result = call("serve", tmp_path, "--workers", 1)
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1
        assert str(tmp_path) in result.stderr

    def test_a_busy_port_is_refused(self, tmp_path: Path) -> None:
        with serving(tmp_path / "one", "--workers", 1) as (_, address):
            listen = address.removeprefix("grpc://")
            result = call("serve", tmp_path / "two", "--workers", 1, "--listen", listen)
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1
        assert listen in result.stderr
        assert not (tmp_path / "two").exists()

    def test_what_is_wrong_is_told_in_the_words_of_the_command_line(self, tmp_path: Path) -> None:
        """By the options that were given or are missing, whatever the library calls them."""
        for arguments, said in (
            (("--listen", "grpc+tls://127.0.0.1:0"), "--tls-cert and --tls-key; without TLS say"),
            (("--tls-cert", __file__), "--tls-cert and --tls-key"),
            (("--part-bytes", 0), "--part-bytes is an integer from 1"),
            (("--staged-bytes", -1), "--staged-bytes is an integer from 1"),
            (("--keep-steps", 0), "--keep-steps must be"),
            (("--minimum", 1), "--minimum says how many suffice"),
        ):
            result = call("serve", tmp_path / "run", "--workers", 1, *arguments)
            assert result.returncode == 2, result.stderr
            assert said in result.stderr
            assert len(result.stderr.splitlines()) == 1
        assert not (tmp_path / "run").exists()

    def test_a_file_is_no_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for place in ("file", "file/run"):
            result = call("serve", tmp_path / place, "--workers", 1)
            assert result.returncode == 1
            assert (
                f"{tmp_path / 'file'} is a file, and a run is kept in a directory" in result.stderr
            )

    def test_somebody_elses_directory_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "staged").mkdir()
        (tmp_path / "staged" / "notes.txt").write_text("mine")
        result = call("serve", tmp_path, "--workers", 1)
        assert result.returncode == 1
        assert len(result.stderr.splitlines()) == 1
        assert "none of onefold's" in result.stderr
        assert [path.name for path in tmp_path.rglob("*")] == ["staged", "notes.txt"]

    def test_another_operation_is_refused(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--workers", 1):
            pass
        result = call("serve", tmp_path, "--workers", 1, "--operation", "mean")
        assert result.returncode == 2
        assert "has the operation 'sum'" in result.stderr
        assert "cannot go on with the operation 'mean'" in result.stderr

    def test_a_deadline_that_closes_nothing_is_hinted_at(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--workers", 1, "--deadline", 5) as (process, _):
            assert process.stderr is not None
            assert "--minimum K" in process.stderr.readline()

    def test_it_listens_on_what_clients_are_given(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--workers", 1, "--listen", "grpc://127.0.0.1:0") as (_, address):
            assert json.loads(call("status", address, "--json").stdout)["receipts"] == {}


class TestStatus:
    def test_it_shows_who_is_missing(self, tmp_path: Path) -> None:
        with serving(tmp_path, "--roster", "a,b") as (_, address):
            with onefold.connect(address, "a") as client:
                client.push(0, np.zeros(3))
            text = call("status", address)
            answer = json.loads(call("status", "--json", ONEFOLD_ADDRESS=address).stdout)
        assert text.returncode == 0
        assert "step 0: a contributed, missing b" in text.stdout
        assert answer["highest_closed"] is None
        assert answer["roster"] == ["a", "b"]
        assert answer["receipts"] == {"accepted": 1}

    def test_a_server_that_is_not_there_is_told(self) -> None:
        begun = time.monotonic()
        result = call("status", "grpc://127.0.0.1:9")
        assert result.returncode == 1
        assert "within 4" in result.stderr
        assert time.monotonic() - begun < 20
        assert "127.0.0.1:9" in result.stderr
        assert "Traceback" not in result.stderr


WORKER = (
    "import onefold, numpy, json\n"
    "with onefold.connect() as client:\n"
    "    total = client.reduce(0, numpy.ones(2)).tensor.tolist()\n"
    "print(json.dumps({'worker': client.joined.worker, 'total': total}))\n"
)


class TestRun:
    def test_results_and_a_summary_come_out(self, tmp_path: Path) -> None:
        summary = tmp_path / "summary.json"
        worker = (sys.executable, "-c", WORKER)
        result = call("run", "--workers", 2, "--summary", summary, "--", *worker)
        assert result.returncode == 0, result.stderr
        assert [json.loads(line) for line in result.stdout.splitlines()] == [
            {"worker": "0", "total": [2.0, 2.0]},
            {"worker": "1", "total": [2.0, 2.0]},
        ]
        assert "steps closed" in result.stderr
        assert "What happened" in [line.strip() for line in result.stderr.splitlines()]
        written = json.loads(summary.read_text())
        assert written["succeeded"] is True
        assert written["progress"]["closed_steps"] == 1
        assert written["workers"]["1"]["exit_status"] == 0
        assert written["traffic"] is None

    def test_the_directory_keeps_the_output(self, tmp_path: Path) -> None:
        worker = (sys.executable, "-c", WORKER)
        result = call("run", "--workers", 1, "--directory", tmp_path / "run", "--", *worker)
        assert result.returncode == 0, result.stderr
        assert '"worker": "0"' in (tmp_path / "run" / "worker-0.out").read_text()
        assert (tmp_path / "run" / "store").is_dir()

    def test_a_job_that_fails_has_exit_status_1(self, tmp_path: Path) -> None:
        summary = tmp_path / "summary.json"
        worker = (sys.executable, "-c", "raise SystemExit('no luck')")
        result = call("run", "--workers", 1, "--summary", summary, "--verbose", "--", *worker)
        assert result.returncode == 1
        assert "no luck" in result.stderr
        assert json.loads(summary.read_text())["succeeded"] is False

    def test_what_workers_print_is_shown_with_their_names(self) -> None:
        """Above the display, on standard error; results alone go to standard output."""
        source = "print('half way'); import sys; print('hush', file=sys.stderr); print('[1]')"
        result = call("run", "--workers", 2, "--", sys.executable, "-c", source)
        assert result.returncode == 0, result.stderr
        assert {"worker-0: half way", "worker-1: half way"} <= set(result.stderr.splitlines())
        assert "hush" not in result.stderr
        assert result.stdout == "[1]\n[1]\n"
        assert "finished, started once" in result.stderr

    def test_a_traceback_is_shown_once(self, tmp_path: Path) -> None:
        """Whether or not standard error is shown as it comes."""
        marker = tmp_path / "m"
        source = f"import pathlib; pathlib.Path({str(marker)!r}).open('a').write('x')\n"
        source += (
            f"if len(pathlib.Path({str(marker)!r}).read_text()) == 4: raise ValueError('why')\n"
        )
        source += "raise SystemExit(1)"
        for number, verbose in enumerate([(), ("--verbose",)]):
            marker.write_text("")
            result = call("run", "--workers", 1, *verbose, "--", sys.executable, "-c", source)
            assert result.returncode == 1
            assert result.stderr.count("ValueError: why") == 1, number
            assert result.stderr.count("Traceback") == 1

    def test_killing_it_leaves_no_process(self, tmp_path: Path) -> None:
        """kill -9 takes along the server, whose store can then be opened, and the workers."""
        source = "import signal; print('here', flush=True); signal.pause()"
        with subprocess.Popen(
            command(
                "run", "--workers", 1, "--directory", tmp_path, "--", sys.executable, "-c", source
            ),
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            next(line for line in process.stderr if line.startswith("worker-0: "))
            process.kill()
            process.communicate(timeout=BOUND_SECONDS)
        wait = threading.Event()
        for _ in range(1000):
            try:
                with onefold.Aggregator(tmp_path / "store", onefold.Policy(roster=["0"])):
                    return
            except onefold.StoreLocked:
                wait.wait(0.01)
        raise AssertionError("the server is still there")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_an_interruption_takes_everybody_along(
        self, tmp_path: Path, number: signal.Signals, request: pytest.FixtureRequest
    ) -> None:
        source = "import os, signal; print('pid', os.getpid(), flush=True); signal.pause()"
        summary = tmp_path / "summary.json"
        arguments = ("--workers", 1, "--directory", tmp_path, "--summary", summary)
        before = signal.getsignal(number)
        if before is signal.SIG_IGN:  # under nohup: who inherits that is to go on ignoring it
            signal.signal(number, signal.SIG_DFL)
            request.addfinalizer(lambda: signal.signal(number, before))
        with subprocess.Popen(
            command("run", *arguments, "--", sys.executable, "-c", source),
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            line = next(line for line in process.stderr if line.startswith("worker-0: "))
            process.send_signal(number)
            process.communicate(timeout=BOUND_SECONDS)
        assert process.returncode == 128 + number
        written = json.loads(summary.read_text())
        assert written["interrupted"] is True
        assert written["succeeded"] is False
        assert written["workers"]["0"]["stopped"] is True
        pid = int(line.split()[2])
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        # The server is gone as well: its store can be opened.
        with onefold.Aggregator(tmp_path / "store", onefold.Policy(roster=["0"])):
            pass
