"""``onefold serve`` as a child process that keeps its port when it is started again."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path

from onefold.launch.guard import Guard
from onefold.launch.plan import Job
from onefold.launch.process import Process

__all__ = ["ServerProcess"]

_START_SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.02

_STOP_SECONDS_MAX = 10.0
"""It drains its calls for five seconds, then closes its store."""

_LISTENING = re.compile(r"^listening on (grpc://\S+:(\d+))$")


class ServerProcess:
    """The server of a job, on this machine only.

    The first start takes a free port and every further one the same, since that is the address
    which the workers know.

    Args:
        job: Who the steps wait for, and further options.
        directory: Its data go to ``store`` in it, its output beside that.
        guard: Ends it if the launcher is killed; None for nobody.
    """

    def __init__(self, job: Job, directory: Path, guard: Guard | None = None) -> None:
        self.process = Process("server", directory, os.environ, guard)
        self._arguments = (
            *(sys.executable, "-m", "onefold", "serve", str(directory / "store")),
            *("--roster", ",".join(job.names)),
            "--no-warm-up",  # the workers need the processors of this machine themselves
            *job.serve_options,
        )
        self._port = 0

    @property
    def address(self) -> str:
        """``grpc://HOST:PORT``, once it has started."""
        return f"grpc://127.0.0.1:{self._port}"

    def start(self) -> bool:
        """Start it and wait until it listens; False if it ended, or never did."""
        out = self.process.out
        said = out.stat().st_size if out.exists() else 0
        self.process.start((*self._arguments, "--listen", f"127.0.0.1:{self._port}"))
        waiting = threading.Event()
        until = time.monotonic() + _START_SECONDS_MAX
        while time.monotonic() < until:
            for line in out.read_bytes()[said:].decode().split("\n")[:-1]:
                if (match := _LISTENING.match(line)) is not None:
                    self._port = int(match[2])
                    return True
            if self.process.poll():
                return False
            waiting.wait(_LOOK_SECONDS)
        self.process.kill()
        return False

    def stop(self) -> None:
        """Ask it to end, and see to it that it does."""
        self.process.terminate()
        self.process.stop(_STOP_SECONDS_MAX)
