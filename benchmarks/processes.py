"""A real ``onefold serve`` to measure, and what the system says about a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MIB", "Memory", "Reading", "Served", "read_process", "serve"]

MIB = 1 << 20

_LISTENING = re.compile(r"^listening on (grpc://\S+)$")
_STOP_SECONDS_MAX = 20.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server that listens."""

    address: str
    pid: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a process takes at a moment, on the monotonic clock."""

    at_seconds: float
    anonymous_bytes: int
    file_bytes: int
    open_files: int
    threads: int
    cpu_seconds: float
    """Since it began, on all processors."""


@contextmanager
def serve(directory: Path, *options: str) -> Iterator[Served]:
    """``onefold serve DIRECTORY OPTIONS``, until the block ends.

    Kernels are loaded when they are first needed: compiling all of them in the background would be
    measured instead.
    """
    command = [sys.executable, "-m", "onefold", "serve", str(directory), "--no-warm-up", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            listening = _LISTENING.match(line.strip())
            if listening is None:
                raise RuntimeError(f"expected a server that listens, it said {line!r}")
            yield Served(listening[1], process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


def read_process(pid: int) -> Reading:
    """One reading.

    Raises:
        OSError: There is no such process.
    """
    process = Path("/proc", str(pid))
    fields = dict(
        line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line
    )
    return Reading(
        at_seconds=time.monotonic(),
        anonymous_bytes=int(fields["RssAnon"].split()[0]) * 1024,
        file_bytes=int(fields["RssFile"].split()[0]) * 1024,
        open_files=sum(1 for _ in (process / "fd").iterdir()),
        threads=int(fields["Threads"]),
        cpu_seconds=_cpu_seconds((process / "stat").read_text()),
    )


def _cpu_seconds(stat: str) -> float:
    """User and system time; the name before them may hold anything, but ends with the last ')'."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Memory:
    """Reads a process again and again, on a thread of its own, while the block runs.

    Args:
        pid: Of the process.
        every_seconds: How often.
    """

    def __init__(self, pid: int, every_seconds: float) -> None:
        self._pid = pid
        self._every_seconds = every_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.readings: list[Reading] = []

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while True:
            try:
                self.readings.append(read_process(self._pid))
            except (OSError, KeyError):  # it has ended
                return
            if self._stop.wait(self._every_seconds):
                return
