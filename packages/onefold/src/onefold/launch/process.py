"""A child process that may be killed and started again, with its output in files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from onefold.launch.guard import Guard
from onefold.launch.output import Output

__all__ = ["Process", "Stream", "ending_text", "stop_all"]

Stream: TypeAlias = Literal["out", "err"]

_STOP_SECONDS_MAX = 8.0


class Process:
    """One member of a job; its output is appended to ``NAME.out`` and ``NAME.err``.

    ``stopped`` says that it was asked to end, ``finished`` that it ended well.

    It leads a process group of its own. So a Ctrl-C at the terminal reaches the launcher only,
    which then stops everybody in order, and killing it takes along whatever it started.

    Args:
        name: Of the process, for files and messages.
        directory: Where the files go.
        environment: Its whole environment.
        guard: Ends it if the launcher is killed; None for nobody.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        environment: Mapping[str, str],
        guard: Guard | None = None,
    ) -> None:
        self.name = name
        self.out = directory / f"{name}.out"
        self.err = directory / f"{name}.err"
        self.starts = 0
        self.kills = 0
        self.failures = 0
        self.stopped = False
        self.exit_status: int | None = None
        self._guard = guard
        self._stdout = Output(self.out, ends_in_result=True)
        self._stderr = Output(self.err)
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    @property
    def running(self) -> bool:
        """Whether it has been started and its end has not been seen."""
        return self._process is not None

    @property
    def finished(self) -> bool:
        """Whether it ended, and well."""
        return self.exit_status == 0

    def start(self, command: Sequence[str]) -> None:
        """Start it, anew if it was started before."""
        assert self._process is None, f"{self.name} is running"
        self._stdout.begin_life()
        self._stderr.begin_life()
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self._process = subprocess.Popen(  # noqa: S603 - running a command is the purpose
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environment,
                start_new_session=True,
            )
        if self._guard is not None:
            self._guard.begun(self._process.pid)
        self.starts += 1
        self.exit_status = None
        self._killed = self.stopped = False

    def poll(self) -> bool:
        """Whether it has ended since the last call; its failures are counted."""
        if self._process is None or self._process.poll() is None:
            return False
        self._ended(self._process)
        return True

    def kill(self) -> None:
        """End it at once, as a power cut would, and wait until it is gone."""
        if self._process is not None and self._process.poll() is None:
            self.kills += 1
            self._killed = True
            _signal(self._process, signal.SIGKILL)
            self._process.wait()
            self._ended(self._process)

    def terminate(self) -> None:
        """Ask it to end."""
        if self._process is not None and self._process.poll() is None:
            self.stopped = True
            _signal(self._process, signal.SIGTERM)

    def stop(self, timeout_seconds: float) -> None:
        """Wait until it has ended, and end it if it does not."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            _signal(self._process, signal.SIGKILL)
            self._process.wait()
        self._killed = True
        self._ended(self._process)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        _signal(process, signal.SIGKILL)  # what it started and left behind
        if self._guard is not None:
            self._guard.over(process.pid)
        self._process = None
        self.exit_status = process.returncode
        if self.exit_status != 0 and not self._killed:
            self.failures += 1

    def complaint(self) -> str:
        """How it ended, and the end of what it wrote to standard error."""
        lines = self._stderr.end()
        ended = ending_text(self.exit_status)
        if not lines:
            return f"{self.name} {ended}, and wrote nothing to standard error"
        return "\n".join([f"{self.name} {ended}; the end of its standard error:", *lines])

    def result(self) -> object:
        """The last line of its standard output, if that is JSON; else None."""
        return self._stdout.result()

    def new_lines(self) -> list[tuple[Stream, str]]:
        """The lines of output that have come since the last call, but not the result."""
        exit_status = None if self.running else self.exit_status
        return [
            *(("out", line) for line in self._stdout.new_lines(exit_status)),
            *(("err", line) for line in self._stderr.new_lines(exit_status)),
        ]


def stop_all(processes: Sequence[Process]) -> None:
    """Ask all to end, give them a few seconds together, then end them."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.stop(_STOP_SECONDS_MAX)


def ending_text(exit_status: int | None) -> str:
    """How a process ended, in words."""
    if exit_status is not None and exit_status < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-exit_status).name}"
    return f"ended with exit status {exit_status}"


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
