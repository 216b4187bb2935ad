"""Processes that call what they are sent.

No pool of the standard library's: its processes share locks, and a Ctrl-C at the terminal reaches
them as it does whoever started them, so that one may be gone with a lock that another waits for.
Here each process has a connection of its own and nothing else, is in a session of its own, which no
Ctrl-C reaches, and is killed when it is no longer needed. Should whoever started it be killed, it
finds the connection closed and ends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TypeAlias

__all__ = ["Calling", "calling"]

Calling: TypeAlias = "Connection[Callable[[], object], object]"
"""Takes functions, and gives what they return, in their order."""


@contextmanager
def calling() -> Iterator[Calling]:
    """Start a process that calls the functions that it is sent; afterwards it is killed."""
    ours, theirs = Pipe()
    number = theirs.fileno()
    command = (sys.executable, "-m", __name__, str(number))
    with (
        ours,
        subprocess.Popen(  # noqa: S603 - this very file
            command, stdin=subprocess.DEVNULL, pass_fds=(number,), start_new_session=True
        ) as process,
    ):
        theirs.close()
        try:
            yield ours
        finally:
            process.kill()


def main(number: int) -> None:
    """Call what comes, until the other end is closed."""
    with Connection(number) as theirs, suppress(EOFError, ConnectionError):
        while True:
            theirs.send(theirs.recv()())


if __name__ == "__main__":
    main(int(sys.argv[1]))
