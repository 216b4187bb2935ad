"""Running a job: what is planned, that it happens, and that nobody is left behind."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import onefold
from onefold.errors import InvalidInput, StoreError
from onefold.faults import Faults
from onefold.launch import Interrupted, Job, planned_kills, run_job, worker_environment
from onefold.launch.display import table_of
from onefold.launch.guard import main
from onefold.launch.job import restart_seconds
from onefold.launch.process import Process, stop_all
from onefold.launch.report import Progress, Tally, stuck_steps
from onefold.launch.server import ServerProcess
from onefold.status import OpenStepStatus, RunStatus

BOUND_SECONDS = 60.0

WORKER = """
import json, os, sys
import numpy as np
import onefold

steps = int(sys.argv[1])
with onefold.connect() as client:
    bits = [client.pull(step).tensor.tobytes() for step in range(client.joined.first_open_step)]
    for step in range(len(bits), steps):
        update = np.random.default_rng([step, client.joined.index]).standard_normal(50)
        bits.append(client.reduce(step, update.astype(np.float32)).tensor.tobytes())
print("hello from", client.joined.worker)
print(json.dumps({"bits": b"".join(bits).hex()}))
"""


class Quiet:
    """Listens, and keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.lines: list[tuple[str, str]] = []
        self.streams: set[tuple[str, str]] = set()
        self.latest: Progress | None = None

    def progress(self, progress: Progress) -> None:
        self.latest = progress

    def line(self, name: str, text: str, stream: str) -> None:
        self.lines.append((name, text))
        self.streams.add((name, stream))

    def event(self, text: str) -> None:
        self.events.append(text)


def python(source: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-c", source, *map(str, arguments))


class TestPlan:
    def test_the_same_seed_plans_the_same_kills(self) -> None:
        job = Job(("x",), 4, worker_kills=3, server_kills=2, steps=100, seed=3)
        assert planned_kills(job) == planned_kills(job)

    def test_seeds_differ(self) -> None:
        jobs = [Job(("x",), 4, worker_kills=2, steps=100, seed=seed) for seed in range(20)]
        assert len({planned_kills(job) for job in jobs}) == 20

    @pytest.mark.parametrize("steps", [10, 100, None])
    @pytest.mark.parametrize("seed", range(20))
    def test_kills_are_in_order_and_before_the_end(self, seed: int, steps: int | None) -> None:
        job = Job(("x",), 4, worker_kills=3, server_kills=2, steps=steps, seed=seed)
        kills = planned_kills(job)
        moments = [kill.closed_steps for kill in kills]
        assert moments == sorted(moments)
        assert max(moments) <= (60 if steps is None else 0.8 * steps)
        assert [kill.target for kill in kills].count("worker") == 3
        assert {kill.victim for kill in kills} <= set(range(4))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"command": ()}, "no command to run"),
            ({"workers": 0}, "at least 1 worker, not 0"),
            ({"worker_kills": -1}, "at least 0"),
            ({"worker_kills": 2, "server_kills": 2, "steps": 4}, "4 kills need more than 4 steps"),
            ({"steps": -1}, "at least 1 step, not -1"),
            ({"faults": Faults(lose=1)}, "lose=1 no call is ever answered"),
            ({"faults": Faults(repeat=0.5, lose_reply=1)}, "no call is ever answered"),
        ],
    )
    def test_an_impossible_job_is_refused(self, arguments: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            Job(**{"command": ("x",), "workers": 2, **arguments})  # type: ignore[arg-type]

    def test_a_worker_gets_its_name_and_one_thread(self) -> None:
        job = Job(("x",), 3)
        given = {"OMP_NUM_THREADS": "2", "ONEFOLD_WORKER": "stale", "HOME": "/h"}
        environment = worker_environment(given, "1", job, "grpc://h:1")
        assert environment["ONEFOLD_WORKER"] == "1"
        assert environment["ONEFOLD_WORKERS"] == "3"
        assert environment["ONEFOLD_ADDRESS"] == "grpc://h:1"
        assert environment["OMP_NUM_THREADS"] == "2"
        assert environment["OPENBLAS_NUM_THREADS"] == "1"
        assert environment["HOME"] == "/h"


def status(highest_closed: int | None, receipts: dict[str, int], received: int) -> RunStatus:
    return RunStatus(
        run="r",
        operation="sum",
        highest_closed=highest_closed,
        open_steps=(),
        roster=None,
        receipts=receipts,
        received_bytes=received,
        staged_bytes=0,
    )


def waiting(step: int, missing: tuple[str, ...], deadline_at: float | None) -> OpenStepStatus:
    return OpenStepStatus(step, ("a",), missing, 0, deadline_at, None)


class TestStuckSteps:
    def test_who_has_finished_is_waited_for_in_vain(self) -> None:
        """A step that waits for a finished worker is named; one that may yet close is not."""
        open_steps = (
            waiting(5, ("b", "c"), None),
            waiting(6, ("b",), 20.0),
            waiting(7, ("d",), None),
        )
        now = dataclasses.replace(status(4, {}, 0), open_steps=open_steps)
        assert stuck_steps(now, frozenset("bc"), 10.0) == (
            "step 5 waits for worker b, c, which has finished",
        )
        assert "step 6 waits for worker b, which has finished" in stuck_steps(
            now, frozenset("bc"), 20.0
        )
        assert stuck_steps(now, frozenset(), 10.0) == ()


class TestTally:
    def test_counts_go_on_over_a_restart(self) -> None:
        tally = Tally()
        assert tally.progress == Progress(0, {}, 0)
        tally.update(status(3, {"accepted": 8}, 100))
        tally.update(status(4, {"accepted": 10}, 120))
        tally.restarted()
        assert tally.progress == Progress(5, {"accepted": 10}, 120)
        progress = tally.update(status(None, {"accepted": 1, "replaced": 2}, 5))
        assert progress == Progress(5, {"accepted": 11, "replaced": 2}, 125)


def wait_for_end(process: Process) -> None:
    """Wait for the operating system, not for time to pass."""
    assert process._process is not None
    process._process.wait(BOUND_SECONDS)
    assert process.poll()


def wait_for_line(process: Process) -> None:
    done = threading.Event()
    while not process.out.exists() or b"\n" not in process.out.read_bytes():
        assert not process.poll(), process.complaint()
        done.wait(0.01)


class TestProcess:
    def make(self, directory: Path) -> Process:
        return Process("p", directory, os.environ)

    def test_the_last_line_is_the_result(self, tmp_path: Path) -> None:
        process = self.make(tmp_path)
        process.start(python('print("noise"); print(\'{"a": 1}\')'))
        wait_for_end(process)
        assert process.finished
        assert process.result() == {"a": 1}
        assert process.new_lines() == [("out", "noise")]
        assert process.new_lines() == []

    @pytest.mark.parametrize("source", ["", "print('{\"a\": 1}'); print('the end')"])
    def test_another_last_line_is_no_result(self, tmp_path: Path, source: str) -> None:
        process = self.make(tmp_path)
        process.start(python(source))
        wait_for_end(process)
        assert process.result() is None

    @pytest.mark.parametrize("status", [0, 1])
    def test_every_line_is_shown_but_the_result(self, tmp_path: Path, status: int) -> None:
        """JSON before the end, what has no line break, and the JSON of who failed are no result."""
        process = self.make(tmp_path)
        source = f"print('[1]'); print('two'); print('[3]\\n'); raise SystemExit({status})"
        process.start(python(source))
        wait_for_end(process)
        shown = ["[1]", "two"] if status == 0 else ["[1]", "two", "[3]", ""]
        assert process.new_lines() == [("out", text) for text in shown]
        process.start(python("print('no line break', end='')"))
        wait_for_end(process)
        assert ("out", "no line break") in process.new_lines()
        assert process.result() is None

    def test_output_of_an_earlier_job_is_not_shown(self, tmp_path: Path) -> None:
        """A directory may have been used before; what is in it is kept and not shown."""
        (tmp_path / "p.out").write_text('earlier\n{"a": 1}\n')
        process = self.make(tmp_path)
        process.start(python("print('now')"))
        wait_for_end(process)
        assert process.new_lines() == [("out", "now")]
        assert process.result() is None
        assert process.out.read_text().startswith("earlier")

    def test_a_traceback_is_told_from_its_beginning(self, tmp_path: Path) -> None:
        """That of the last life alone, whole, without what was written before it."""
        deep = "def f(n):\n  if n: g(n)\n  raise ValueError('deep')\n"
        deep += "def g(n):\n  f(n - 1)\n"
        process = self.make(tmp_path)
        for _ in range(2):
            process.start(python(deep + "import sys; print('before', file=sys.stderr); f(9)"))
            wait_for_end(process)
        lines = process.complaint().splitlines()
        assert lines[1] == "Traceback (most recent call last):"
        assert lines[-1] == "ValueError: deep"
        assert len(lines) > 20
        assert lines.count(lines[1]) == 1

    def test_a_silent_failure_is_told(self, tmp_path: Path) -> None:
        process = self.make(tmp_path)
        process.start(python("raise SystemExit(4)"))
        wait_for_end(process)
        assert process.complaint() == (
            "p ended with exit status 4, and wrote nothing to standard error"
        )

    def test_a_failure_is_told_with_its_last_lines(self, tmp_path: Path) -> None:
        process = self.make(tmp_path)
        process.start(python("import sys; sys.exit('what a pity')"))
        wait_for_end(process)
        assert process.failures == 1
        assert process.complaint().splitlines() == [
            "p ended with exit status 1; the end of its standard error:",
            "what a pity",
        ]

    def test_a_kill_is_no_failure_and_output_is_kept(self, tmp_path: Path) -> None:
        process = self.make(tmp_path)
        for life in (1, 2):
            process.start(python("print('here', flush=True); import signal; signal.pause()"))
            while process.out.exists() and process.out.read_text().count("\n") < life:
                assert not process.poll()
            process.kill()
        assert (process.starts, process.kills, process.failures) == (2, 2, 0)
        assert process.exit_status == -signal.SIGKILL
        assert process.new_lines() == [("out", "here"), ("out", "here")]
        assert not process.running
        process.kill()
        assert process.kills == 2

    @pytest.mark.parametrize("how", ["kill", "stop", "end"])
    def test_what_it_started_ends_with_it(self, tmp_path: Path, how: str) -> None:
        process = self.make(tmp_path)
        child = "import signal; signal.pause()"
        source = (
            "import subprocess, sys, signal\n"
            f"print(subprocess.Popen([sys.executable, '-c', {child!r}]).pid, flush=True)\n"
        )
        process.start(python(source + ("" if how == "end" else "signal.pause()")))
        if how == "end":
            wait_for_end(process)
        else:
            wait_for_line(process)
            process.kill() if how == "kill" else stop_all([process])
        assert_gone(int(process.out.read_text()))

    def test_who_does_not_listen_is_killed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("onefold.launch.process._STOP_SECONDS_MAX", 0.1)
        process = self.make(tmp_path)
        source = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)"
        process.start(python(f"import signal; {source}; signal.pause(); signal.pause()"))
        wait_for_line(process)
        stop_all([process])
        assert process.exit_status == -signal.SIGKILL
        assert process.stopped


class TestGuard:
    def test_what_is_left_is_killed_when_the_launcher_is(self, tmp_path: Path) -> None:
        """kill -9 on the launcher ends what it has started and not seen the end of."""
        pause = "import signal; signal.pause()"
        source = (
            "import os, pathlib, sys, signal\n"
            "from onefold.launch.guard import Guard\n"
            "from onefold.launch.process import Process\n"
            "guard = Guard()\n"
            "guard.start()\n"
            "process = Process('p', pathlib.Path(sys.argv[1]), os.environ, guard)\n"
            f"process.start((sys.executable, '-c', {pause!r}))\n"
            "print(process._process.pid, flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        result = subprocess.run(
            python(source, tmp_path), stdout=subprocess.PIPE, check=False, timeout=BOUND_SECONDS
        )
        assert result.returncode == -signal.SIGKILL
        assert_gone(int(result.stdout))

    def test_what_is_over_is_left_alone(self) -> None:
        """A number that has been given back may be another's."""
        bystander = subprocess.Popen(
            python("import signal; signal.pause()"), start_new_session=True
        )
        try:
            main([f"+{bystander.pid}\n", f"-{bystander.pid}\n"])
            assert bystander.poll() is None
            main([f"+{bystander.pid}\n"])
            assert bystander.wait(BOUND_SECONDS) == -signal.SIGKILL
        finally:
            bystander.kill()


def assert_gone(pid: int) -> None:
    """A process that was sent SIGKILL may take a moment to go; it then is no more, or a zombie."""
    done = threading.Event()
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        done.wait(0.01)
    raise AssertionError(f"process {pid} is still there")


class TestRunJob:
    def test_all_workers_end_with_the_same(self, tmp_path: Path) -> None:
        watcher = Quiet()
        report = run_job(Job(python(WORKER, 6), 2, directory=tmp_path), watcher)
        assert report.errors == ()
        assert report.progress.closed_steps == 6
        assert report.progress.receipts["accepted"] == 12
        assert report.traffic is None
        assert [worker.exit_status for worker in report.workers.values()] == [0, 0]
        results = [worker.result for worker in report.workers.values()]
        assert results[0] == results[1] is not None
        assert ("worker-0", "hello from 0") in watcher.lines
        assert watcher.latest is not None
        assert watcher.latest.closed_steps == 6

    def test_kills_happen_and_change_no_bit(self, tmp_path: Path) -> None:
        calm = run_job(Job(python(WORKER, 40), 2), Quiet())
        faults = Faults(0.2, 0.1, 0.1, 0.2, 0.1, delay_seconds_max=0.05, seed=1)
        watcher = Quiet()
        job = Job(
            python(WORKER, 40),
            2,
            faults=faults,
            worker_kills=2,
            server_kills=2,
            steps=40,
            directory=tmp_path,
        )
        report = run_job(job, watcher)
        assert report.errors == ()
        assert [kill.target for kill in report.kills].count("server") == 2
        assert report.server_starts == 3
        assert sum(worker.starts for worker in report.workers.values()) == 4
        assert sum("killed" in event for event in watcher.events) == 4
        assert {str(worker.result) for worker in report.workers.values()} == {
            str(worker.result) for worker in calm.workers.values()
        }
        assert report.traffic is not None
        assert report.traffic.lost > 0

    def test_a_worker_that_fails_is_started_again(self, tmp_path: Path) -> None:
        marker = tmp_path / "failed"
        fail_once = f"import pathlib; m = pathlib.Path({str(marker)!r})\n"
        fail_once += "try: m.touch(exist_ok=False)\n"
        fail_once += "except FileExistsError: pass\n"
        fail_once += "else: raise SystemExit('first try')\n"
        watcher = Quiet()
        report = run_job(Job(python(fail_once + WORKER, 3), 2), watcher)
        assert report.errors == ()
        assert sum(worker.failures for worker in report.workers.values()) == 1
        (failure,) = (event for event in watcher.events if "failed" in event)
        assert "failed (ended with exit status 1) and is started again in 0.25 s" in failure

    def test_a_worker_that_always_fails_fails_the_job(self) -> None:
        command = python("import sys; print('why', file=sys.stderr); sys.exit(3)")
        report = run_job(Job(command, 2, restarts_max=1), Quiet())
        assert not report.succeeded
        assert "ended with exit status 3" in report.errors[0]
        assert report.errors[0].endswith("why")
        assert report.errors[0].count("why") == 1

    def test_who_is_stopped_with_the_job_did_not_fail(self) -> None:
        """When a worker fails the job, the others are stopped, and the report says so."""
        source = "import os, signal\n"
        source += "if os.environ['ONEFOLD_WORKER'] == '0': raise SystemExit(3)\n"
        source += "signal.pause()"
        report = run_job(Job(python(source), 2, restarts_max=0), Quiet())
        assert [worker.stopped for worker in report.workers.values()] == [False, True]
        assert report.workers["1"].failures == 0
        rows = [str(cell) for cell in table_of(report).columns[1].cells]
        assert "ended with exit status 3, started once" in rows
        assert "stopped, started once" in rows

    def test_pauses_before_starting_again_grow(self) -> None:
        """From a quarter of a second to five, and no further."""
        assert [restart_seconds(n) for n in (1, 2, 3, 20)] == [0.25, 0.5, 1.0, 5.0]

    def test_a_finished_worker_that_is_waited_for_is_named(self) -> None:
        """While it is so, and at the end; who waits fails in time."""
        source = "import os, numpy, onefold\n"
        source += "with onefold.connect() as client:\n"
        source += "    client.reduce(0, numpy.ones(1))\n"
        source += "    if client.joined.worker == '1':\n"
        source += "        client.push(1, numpy.ones(1))\n"
        source += "        client.pull(1, timeout_seconds=3)\n"
        watcher = Quiet()
        report = run_job(Job(python(source), 2, restarts_max=0), watcher)
        text = "step 1 waits for worker 0, which has finished"
        assert watcher.events.count(text) == 1
        assert "NotYet" in report.errors[0]
        assert report.errors[1] == text

    def test_updates_are_kept_where_nothing_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Workers spool below the job's own temporary directory, which is gone at the end."""
        monkeypatch.delenv("ONEFOLD_SPOOL_DIRECTORY", raising=False)
        source = "import json, os; print(json.dumps(os.environ['ONEFOLD_SPOOL_DIRECTORY']))"
        report = run_job(Job(python(source), 1), Quiet())
        assert isinstance(report.workers["0"].result, str)
        assert "onefold-run-" in report.workers["0"].result
        assert not Path(report.workers["0"].result).parent.exists()

    def test_what_a_killed_job_left_is_removed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its temporary directory has no owner any more, which the next job sees."""
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        (tmp_path / "onefold-run-dead" / "store").mkdir(parents=True)
        run_job(Job(python("pass"), 1), Quiet())
        assert list(tmp_path.iterdir()) == []

    def test_a_directory_that_cannot_be_made_is_told(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="file"):
            run_job(Job(("x",), 1, directory=tmp_path / "file"), Quiet())

    def test_a_command_that_does_not_exist_is_named(self) -> None:
        report = run_job(Job(("no-such-command-here",), 1), Quiet())
        assert "worker-0 cannot be started" in report.errors[0]
        assert "no-such-command-here" in report.errors[0]

    def test_a_server_that_cannot_start_is_told(self) -> None:
        report = run_job(Job(("x",), 2, serve_options=("--minimum", "7")), Quiet())
        assert "server ended with exit status 2" in report.errors[0]
        assert "minimum" in report.errors[0]

    def test_a_kill_that_did_not_happen_is_an_error(self) -> None:
        report = run_job(Job(python(WORKER, 1), 1, worker_kills=1, steps=500), Quiet())
        assert "before 1 of the kills" in report.errors[0]

    def test_an_interruption_leaves_nobody_behind(self, tmp_path: Path) -> None:
        class Interrupting(Quiet):
            def line(self, name: str, text: str, stream: str) -> None:
                super().line(name, text, stream)
                if sum(line[0].startswith("worker") for line in self.lines) == 2:
                    raise KeyboardInterrupt

        source = "import os, signal; print('pid', os.getpid(), flush=True); signal.pause()"
        watcher = Interrupting()
        with pytest.raises(KeyboardInterrupt) as caught:
            run_job(Job(python(source), 2, directory=tmp_path), watcher)
        assert isinstance(caught.value, Interrupted)
        assert caught.value.report.interrupted
        assert not caught.value.report.succeeded
        assert all(worker.stopped for worker in caught.value.report.workers.values())
        pids = [int(text.split()[1]) for name, text in watcher.lines if name != "server"]
        assert len(pids) == 2
        for pid in pids:
            assert_gone(pid)


STEPS = 10


def contribution(step: int, worker: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Numbers of very different sizes, so that a sum in another order has other bits."""
    generator = np.random.default_rng([step, worker])
    sizes = 10.0 ** generator.integers(-6, 6, 200)
    return (generator.standard_normal(200) * sizes).astype(np.float32)


class TestServerKilled:
    @pytest.mark.parametrize("seed", range(20))
    def test_a_killed_server_changes_no_bit(self, tmp_path: Path, seed: int) -> None:
        generator = random.Random(seed)
        server = ServerProcess(Job(("x",), 2), tmp_path)
        assert server.start(), server.process.complaint()
        moment = (generator.randrange(STEPS), generator.randrange(2))
        killer = threading.Timer(generator.uniform(0, 0.02), restart, (server,))
        results: list[list[bytes]] = [[], []]

        def work(worker: int) -> None:
            with onefold.connect(server.address, str(worker), timeout_seconds=30) as client:
                for step in range(STEPS):
                    if moment == (step, worker):
                        killer.start()
                    aggregate = client.reduce(step, contribution(step, worker))
                    assert isinstance(aggregate.tensor, np.ndarray)
                    results[worker].append(aggregate.tensor.tobytes())

        threads = [threading.Thread(target=work, args=(worker,)) for worker in (0, 1)]
        try:
            for thread in threads:
                thread.start()
            for thread in (*threads, killer):
                thread.join(BOUND_SECONDS)
        finally:
            server.stop()
        assert server.process.kills == 1, f"seed {seed}"
        expected = [
            onefold.sum_dense([contribution(step, worker) for worker in (0, 1)]).tobytes()
            for step in range(STEPS)
        ]
        assert results == [expected, expected], f"seed {seed}, killed around {moment}"


def restart(server: ServerProcess) -> None:
    server.process.kill()
    assert server.start(), server.process.complaint()
