"""A process that outlives the launcher by a moment, to end what it has started.

``kill -9`` gives the launcher no chance to end its children. The guard reads from a pipe of which
the launcher holds the only other end: a line ``+PID`` for each process group that has begun and
``-PID`` for each that is over. When the launcher ends, however it does, the guard reads the end of
the pipe, kills the groups that are left, and ends too.

It runs as a program of its own and therefore imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable

__all__ = ["Guard"]


class Guard:
    """The launcher's end of the pipe."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the guard, in a session of its own that no Ctrl-C reaches."""
        self._process = subprocess.Popen(  # noqa: S603 - this very file
            (sys.executable, "-I", __file__),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )

    def begun(self, group: int) -> None:
        """A process group has begun."""
        self._tell(f"+{group}")

    def over(self, group: int) -> None:
        """A process group is over; its number may come to be another's."""
        self._tell(f"-{group}")

    def stop(self) -> None:
        """End the guard, and with it what has not been said to be over."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # somebody has killed the guard
                self._process.stdin.write(f"{line}\n".encode())


def main(lines: Iterable[str]) -> None:
    """Kill, at the end of ``lines``, the groups that have begun and are not over."""
    left: set[int] = set()
    for line in lines:
        group = int(line[1:])
        left = left | {group} if line[0] == "+" else left - {group}
    for group in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.stdin)
