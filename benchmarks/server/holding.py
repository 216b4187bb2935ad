"""How much anonymous memory the server takes when 16 workers push at the same time."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.processes import Memory, read_process, serve
from benchmarks.server.turns import Scale
from onefold import connect

__all__ = ["holding"]

_WORKERS = 16
_EVERY_SECONDS = 0.01


def holding(directory: Path, scale: Scale) -> dict[str, int]:
    """Bytes before anybody joined, and the highest until one worker had the aggregate."""
    update = np.ones(scale.huge_bytes // 4, np.float32)
    names = [f"w{index}" for index in range(_WORKERS)]
    options = ("--roster", ",".join(names), "--keep-steps", "1")

    def push(address: str, name: str) -> None:
        with connect(address, name, spool_directory=directory) as client:
            client.push(0, {"w": update})
            if name == names[0]:
                client.pull(0)

    with serve(directory / "store", *options) as served:
        before = read_process(served.pid).anonymous_bytes
        with Memory(served.pid, _EVERY_SECONDS) as memory, ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(push, itertools.repeat(served.address), names))
    return {
        "before": before,
        "highest": max(reading.anonymous_bytes for reading in memory.readings),
        "updates": _WORKERS * update.nbytes,
    }
