"""A child process that may be killed and started again, with its output in files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Process", "stop_all"]

_READ_BYTES_MAX = 1 << 16
_STOP_SECONDS_MAX = 8.0


class Process:
    """One member of a job; its output is appended to ``NAME.out`` and ``NAME.err``.

    It leads a process group of its own. So a Ctrl-C at the terminal reaches the launcher only,
    which then stops everybody in order, and killing it takes along whatever it started.

    Args:
        name: Of the process, for files and messages.
        directory: Where the files go.
        environment: Its whole environment.
    """

    def __init__(self, name: str, directory: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.out = directory / f"{name}.out"
        self.err = directory / f"{name}.err"
        self.starts = 0
        self.kills = 0
        self.failures = 0
        self.exit_status: int | None = None
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._shown_bytes = {self.out: 0, self.err: 0}

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
        with self.out.open("ab") as out, self.err.open("ab") as err:
            self._process = subprocess.Popen(  # noqa: S603 - running a command is the purpose
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environment,
                start_new_session=True,
            )
        self.starts += 1
        self.exit_status = None
        self._killed = False

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
        if self._process is not None:
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
        self._process = None
        self.exit_status = process.returncode
        if self.exit_status != 0 and not self._killed:
            self.failures += 1

    def complaint(self, lines: int = 15) -> str:
        """Its exit status and the last lines of what it wrote to standard error."""
        tail = _tail(self.err)[-lines:]
        ended = _ending(self.exit_status)
        return "\n".join([f"{self.name} {ended}; the end of its standard error:", *tail])

    def result(self) -> object:
        """The last line of its standard output, if that is JSON; else None."""
        for line in reversed(_tail(self.out)):
            try:
                return json.loads(line)
            except ValueError:
                return None
        return None

    def new_lines(self) -> list[str]:
        """The whole lines of output that have come since the last call."""
        lines: list[str] = []
        for path, start in self._shown_bytes.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(start)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._shown_bytes[path] += len(whole) + len(newline)
            lines += whole.decode(errors="replace").splitlines()
        return lines


def stop_all(processes: Sequence[Process]) -> None:
    """Ask all to end, give them a few seconds together, then end them."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.stop(_STOP_SECONDS_MAX)


def _ending(exit_status: int | None) -> str:
    if exit_status is not None and exit_status < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-exit_status).name}"
    return f"ended with exit status {exit_status}"


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _tail(path: Path) -> list[str]:
    """The last lines of a file that may be long."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _READ_BYTES_MAX))
        text = file.read().decode(errors="replace")
    return [line for line in text.splitlines() if line.strip()]
