"""The run of a job: one loop that looks a few times a second at everything that may change."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from onefold.client import fetch_status
from onefold.errors import TransportError
from onefold.faults import Proxy
from onefold.launch.plan import Job, Kill, planned_kills, worker_environment
from onefold.launch.process import Process, stop_all
from onefold.launch.report import Progress, Report, Tally, Watcher, WorkerReport
from onefold.launch.server import ServerProcess

__all__ = ["run_job"]

_TICK_SECONDS = 0.1
_STATUS_SECONDS = 2.0


class _JobFailed(Exception):
    """A process of the job failed too often; the message ends with its last lines."""


def run_job(job: Job, watcher: Watcher) -> Report:
    """Run a job to its end.

    The report has errors where a worker did not finish or a kill did not happen; whatever is
    raised, ``KeyboardInterrupt`` included, all processes have ended before.

    Args:
        job: What to run.
        watcher: Is told what goes on.
    """
    with _directory(job) as directory:
        run = _Run(job, directory, watcher)
        started = time.monotonic()
        try:
            errors = run.to_the_end()
        finally:
            run.stop()
        return run.report(time.monotonic() - started, errors)


@contextlib.contextmanager
def _directory(job: Job) -> Iterator[Path]:
    if job.directory is not None:
        job.directory.mkdir(parents=True, exist_ok=True)
        yield job.directory
        return
    with tempfile.TemporaryDirectory(prefix="onefold-run-") as directory:
        yield Path(directory)


class _Run:
    """A job in progress."""

    def __init__(self, job: Job, directory: Path, watcher: Watcher) -> None:
        self._job = job
        self._directory = directory
        self._watcher = watcher
        self._server = ServerProcess(job, directory)
        self._workers: list[Process] = []
        self._proxy: Proxy | None = None
        self._kills = list(planned_kills(job))
        self._killed: list[Kill] = []
        self._tally = Tally()
        self._tick = threading.Event()

    def to_the_end(self) -> tuple[str, ...]:
        """Start everything and see it through; what went wrong, in words."""
        try:
            self._start()
            while not all(worker.finished for worker in self._workers):
                self._tick.wait(_TICK_SECONDS)
                self._look_after_processes()
                self._kill_what_is_due(self._ask())
            self._ask()
        except _JobFailed as error:
            return (str(error),)
        if self._kills:
            steps = self._tally.progress.closed_steps
            too_early = (
                f"the job was over, after {steps} steps, before {len(self._kills)} of the kills: "
                "run more steps, or say with --steps how many there are"
            )
            return (too_early,)
        return ()

    def stop(self) -> None:
        """End every process; the workers first, so that the server has nobody to wait for."""
        try:
            stop_all(self._workers)
            self._server.stop()
            if self._proxy is not None:
                self._proxy.stop()
        except BaseException:
            # Somebody is impatient, and presses Ctrl-C again: then without any courtesy.
            for process in (*self._workers, self._server.process):
                process.kill()
            raise
        finally:
            self._show_lines()

    def report(self, seconds: float, errors: tuple[str, ...]) -> Report:
        """What happened."""
        server = self._server.process
        if not errors and server.exit_status != 0:
            errors = (server.complaint(),)
        return Report(
            seed=self._job.seed,
            seconds=round(seconds, 3),
            progress=self._tally.progress,
            workers={worker.name.partition("-")[2]: _reported(worker) for worker in self._workers},
            server_starts=server.starts,
            kills=tuple(self._killed),
            faults=str(self._job.faults),
            traffic=None if self._proxy is None else self._proxy.traffic,
            errors=errors,
        )

    def _start(self) -> None:
        self._start_server()
        address = self._server.address
        if self._job.faults.any:
            self._proxy = Proxy(address, self._job.faults)
            self._proxy.start()
            address = self._proxy.address
        for name in self._job.names:
            environment = worker_environment(os.environ, name, self._job, address)
            worker = Process(f"worker-{name}", self._directory, environment)
            self._workers.append(worker)
            self._start_worker(worker)

    def _start_server(self) -> None:
        if not self._server.start():
            raise _JobFailed(self._server.process.complaint())

    def _start_worker(self, worker: Process) -> None:
        try:
            worker.start(self._job.command)
        except OSError as error:
            raise _JobFailed(f"{worker.name} cannot be started: {error}") from None

    def _look_after_processes(self) -> None:
        """Start again whoever ended before the work was done."""
        self._show_lines()
        if self._server.process.poll():
            self._check_failures(self._server.process)
            self._restart_server()
        for worker in self._workers:
            if worker.poll() and not worker.finished:
                self._check_failures(worker)
                self._watcher.event(f"{worker.name} failed and is started again")
                self._start_worker(worker)

    def _check_failures(self, process: Process) -> None:
        if process.failures > self._job.restarts_max:
            raise _JobFailed(process.complaint())

    def _restart_server(self) -> None:
        self._tally.restarted()
        self._start_server()
        self._watcher.event("the server was started again")

    def _ask(self) -> Progress:
        """How far the run is; as before where the server does not answer."""
        try:
            status = fetch_status(self._server.address, timeout_seconds=_STATUS_SECONDS)
        except TransportError:
            return self._tally.progress
        progress = self._tally.update(status)
        self._watcher.progress(progress)
        return progress

    def _kill_what_is_due(self, progress: Progress) -> None:
        while self._kills and progress.closed_steps >= self._kills[0].closed_steps:
            kill = self._kills[0]
            if not self._kill(kill):
                return
            self._killed.append(self._kills.pop(0))

    def _kill(self, kill: Kill) -> bool:
        """Kill the victim and start it again; False if there is nobody left to kill."""
        if kill.target == "server":
            self._server.process.kill()
            self._watcher.event("the server was killed")
            self._restart_server()
            return True
        victims = self._workers[kill.victim :] + self._workers[: kill.victim]
        for worker in victims:
            kills_before = worker.kills
            worker.kill()
            if worker.kills > kills_before:
                self._watcher.event(f"{worker.name} was killed and is started again")
                self._start_worker(worker)
                return True
        return False

    def _show_lines(self) -> None:
        for process in (self._server.process, *self._workers):
            for line in process.new_lines():
                self._watcher.line(process.name, line)


def _reported(worker: Process) -> WorkerReport:
    return WorkerReport(
        exit_status=worker.exit_status,
        starts=worker.starts,
        kills=worker.kills,
        failures=worker.failures,
        result=worker.result() if worker.finished else None,
    )
