"""The run of a job: one loop that looks a few times a second at everything that may change."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from onefold.client import fetch_status
from onefold.client.owned import OwnedDirectory, remove_orphans
from onefold.errors import StoreError, TransportError
from onefold.faults import Proxy
from onefold.launch.guard import Guard
from onefold.launch.plan import Job, Kill, planned_kills, worker_environment
from onefold.launch.process import Process, ending_text, stop_all
from onefold.launch.report import Progress, Report, Tally, Watcher, WorkerReport, stuck_steps
from onefold.launch.server import ServerProcess

__all__ = ["Interrupted", "restart_seconds", "run_job"]

_PREFIX = "onefold-run-"
_TICK_SECONDS = 0.1
_STATUS_SECONDS = 2.0
_RESTART_SECONDS_MIN = 0.25
_RESTART_SECONDS_MAX = 5.0


class Interrupted(KeyboardInterrupt):
    """Somebody ended the job before its time; ``report`` is how far it had come."""

    def __init__(self, report: Report) -> None:
        super().__init__("the job was interrupted")
        self.report = report


class _JobFailed(Exception):
    """A process of the job failed too often; the message ends with its last lines."""


def restart_seconds(failures: int) -> float:
    """How long to wait before who has failed so often is started again."""
    return min(_RESTART_SECONDS_MAX, _RESTART_SECONDS_MIN * 2.0 ** (failures - 1))


def run_job(job: Job, watcher: Watcher) -> Report:
    """Run a job to its end.

    The report has errors where a worker did not finish or a kill did not happen; whatever is
    raised, ``KeyboardInterrupt`` included, all processes have ended before.

    Args:
        job: What to run.
        watcher: Is told what goes on.

    Raises:
        Interrupted: On ``KeyboardInterrupt``; it has the report so far.
        StoreError: The job's directory cannot be made.
    """
    with _places(job) as (directory, spools):
        run = _Run(job, directory, spools, watcher)
        started = time.monotonic()
        try:
            try:
                errors = run.to_the_end()
            finally:
                run.stop()
        except KeyboardInterrupt as interrupt:
            report = run.report(time.monotonic() - started, (), interrupted=True)
            raise Interrupted(report) from interrupt
        return run.report(time.monotonic() - started, errors)


@contextlib.contextmanager
def _places(job: Job) -> Iterator[tuple[Path, Path]]:
    """Where the job's data go, and where workers keep what they may have to send again."""
    remove_orphans(_PREFIX, None)
    try:
        temporary = OwnedDirectory(_PREFIX, None)
        directory, spools = job.directory or temporary.path, temporary.path / "spools"
        directory.mkdir(parents=True, exist_ok=True)
        spools.mkdir()
    except OSError as error:
        raise StoreError(f"the directory of the job cannot be made: {error}") from error
    try:
        yield directory, spools
    finally:
        temporary.remove()


class _Run:
    """A job in progress."""

    def __init__(self, job: Job, directory: Path, spools: Path, watcher: Watcher) -> None:
        self._job = job
        self._directory = directory
        self._spools = spools
        self._watcher = watcher
        self._guard = Guard()
        self._server = ServerProcess(job, directory, self._guard)
        self._workers: list[Process] = []
        self._restart_at: dict[str, float] = {}
        self._told: set[str] = set()
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
            return (str(error), *self._tally.progress.stuck)
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
            self._guard.stop()
        except BaseException:
            # Somebody is impatient, and presses Ctrl-C again: then without any courtesy.
            for process in (*self._workers, self._server.process):
                process.kill()
            self._guard.stop()
            raise
        finally:
            self._show_lines((self._server.process, *self._workers))

    def report(
        self, seconds: float, errors: tuple[str, ...], *, interrupted: bool = False
    ) -> Report:
        """What happened."""
        server = self._server.process
        if interrupted:
            errors = self._tally.progress.stuck
        elif not errors and server.exit_status != 0:
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
            interrupted=interrupted,
        )

    def _start(self) -> None:
        self._guard.start()
        self._start_server()
        address = self._server.address
        if self._job.faults.any:
            self._proxy = Proxy(address, self._job.faults)
            self._proxy.start()
            address = self._proxy.address
        inherited = {"ONEFOLD_SPOOL_DIRECTORY": str(self._spools), **os.environ}
        for name in self._job.names:
            environment = worker_environment(inherited, name, self._job, address)
            worker = Process(f"worker-{name}", self._directory, environment, self._guard)
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
        """Start again whoever ended before the work was done, each time after a longer pause."""
        server = self._server.process
        ended = [process for process in (server, *self._workers) if process.poll()]
        self._show_lines((server, *self._workers))
        for process in ended:
            if not process.finished or process is server:
                self._plan_restart(process)
        for process in (server, *self._workers):
            if self._restart_at.get(process.name, math.inf) <= time.monotonic():
                del self._restart_at[process.name]
                self._restart_server() if process is server else self._start_worker(process)

    def _plan_restart(self, process: Process) -> None:
        if process.failures > self._job.restarts_max:
            raise _JobFailed(process.complaint())
        seconds = restart_seconds(max(process.failures, 1))
        self._restart_at[process.name] = time.monotonic() + seconds
        self._watcher.event(
            f"{process.name} failed ({ending_text(process.exit_status)}) and is started again in "
            f"{seconds:g} s (failure {process.failures} of at most {self._job.restarts_max})"
        )

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
        progress = self._tally.update(status, stuck_steps(status, self._finished(), time.time()))
        self._watcher.progress(progress)
        for text in set(progress.stuck) - self._told:
            self._watcher.event(text)
        self._told |= set(progress.stuck)
        return progress

    def _finished(self) -> frozenset[str]:
        """The names of the workers that have ended well."""
        pairs = zip(self._job.names, self._workers, strict=False)
        return frozenset(name for name, worker in pairs if worker.finished)

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
            self._restart_at.pop(self._server.process.name, None)
            self._watcher.event("the server was killed")
            self._restart_server()
            return True
        victims = self._workers[kill.victim :] + self._workers[: kill.victim]
        for worker in victims:
            kills_before = worker.kills
            worker.kill()
            if worker.kills > kills_before:
                self._show_lines((worker,))
                self._watcher.event(f"{worker.name} was killed and is started again")
                self._start_worker(worker)
                return True
        return False

    def _show_lines(self, processes: Sequence[Process]) -> None:
        for process in processes:
            for stream, line in process.new_lines():
                self._watcher.line(process.name, line, stream)


def _reported(worker: Process) -> WorkerReport:
    return WorkerReport(
        exit_status=worker.exit_status,
        starts=worker.starts,
        kills=worker.kills,
        failures=worker.failures,
        result=worker.result() if worker.finished else None,
        stopped=worker.stopped and not worker.finished,
    )
