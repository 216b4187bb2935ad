"""What it takes to push an update until there is a receipt."""

from __future__ import annotations

import itertools
import multiprocessing
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from pathlib import Path

import numpy as np

from benchmarks.processes import serve
from benchmarks.server.raw import raw_server
from benchmarks.server.turns import Scale, medians, timed
from onefold import Client, Update, connect
from onefold.parts import encode, write_part

__all__ = ["large", "small", "storm"]

_SMALL_ELEMENTS = 4096
"""16 KiB of float32."""

_CLIENTS = 8
_PROCESSES = 2
"""As many as there are cores on the machine of the targets: each has its own interpreter."""


def large(directory: Path, scale: Scale) -> dict[str, float]:
    """Seconds to push a large update, to put the same bytes, and to write them to a file."""
    elements = scale.large_bytes // 4
    update = Update({"w": np.arange(elements, dtype=np.float32)}, 1)
    parts = [(schema, list(batches)) for schema, batches in encode(update)]
    path = directory / "plain.arrow"
    with _pusher(directory) as client, raw_server() as raw:
        return medians(
            {
                "onefold": timed(_replacing(client, elements)),
                "raw Flight": timed(lambda: [raw.put(part) for part in parts]),
                "file": timed(lambda: [write_part(path, *part, sync=False) for part in parts]),
            },
            scale.rounds,
        )


def small(directory: Path, scale: Scale) -> dict[str, float]:
    """Seconds to push 16 KiB, for a round trip of them, and for a file with a row in SQLite."""
    update = Update({"w": np.arange(_SMALL_ELEMENTS, dtype=np.float32)}, 1)
    ((schema, batches),) = [(schema, list(batches)) for schema, batches in encode(update)]
    database = sqlite3.connect(directory / "rows.sqlite", isolation_level=None)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = normal")
    database.execute("create table kept (name text)")

    def write() -> None:
        write_part(directory / "small.arrow", schema, batches, sync=False)
        database.execute("insert into kept values ('small')")

    with _pusher(directory) as client, raw_server() as raw:
        return medians(
            {
                "onefold": timed(_replacing(client, _SMALL_ELEMENTS)),
                "raw Flight": timed(lambda: raw.put((schema, batches))),
                "file and row": timed(write),
            },
            scale.small_rounds,
        )


def storm(directory: Path, scale: Scale) -> float:
    """Updates of 16 KiB a second that eight clients push at the same time, the median of five."""
    names = [f"w{index}" for index in range(_CLIENTS)]
    context = multiprocessing.get_context("spawn")
    with serve(directory / "storm", "--roster", ",".join([*names, "nobody"])) as served:
        rates = [_storm(context, served.address, names, scale) for _ in range(5)]
    return statistics.median(rates)


def _storm(context: SpawnContext, address: str, names: list[str], scale: Scale) -> float:
    counts = context.Array("q", _PROCESSES)
    ready = context.Barrier(_PROCESSES)
    processes = [
        context.Process(
            target=_push_for,
            args=(address, names[number::_PROCESSES], scale.storm_seconds, ready, (counts, number)),
        )
        for number in range(_PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError("a process of clients failed; what it said is above")
    return sum(counts) / scale.storm_seconds


def _push_for(address, names, seconds, ready, count) -> None:  # type: ignore[no-untyped-def]
    """In a process of its own: push from several threads until the time is up."""
    clients = [connect(address, name) for name in names]
    pushes = [_replacing(client, _SMALL_ELEMENTS) for client in clients]
    for push in pushes:
        push()
    ready.wait()
    until = time.monotonic() + seconds
    done = [0] * len(pushes)

    def push_on(index: int) -> None:
        while time.monotonic() < until:
            pushes[index]()
            done[index] += 1

    threads = [threading.Thread(target=push_on, args=(index,)) for index in range(len(pushes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts, number = count
    counts[number] = sum(done)
    for client in clients:
        client.close()


@contextmanager
def _pusher(directory: Path) -> Iterator[Client]:
    """A client of a server whose steps wait for somebody else too."""
    with (
        serve(directory / "store", "--roster", "a,nobody") as served,
        connect(served.address, "a", spool_directory=directory) as client,
    ):
        yield client


def _replacing(client: Client, elements: int) -> Callable[[], object]:
    """Pushes an update in place of the one before, from two arrays in turns."""
    arrays = itertools.cycle(np.full(elements, number, np.float32) for number in (1, 2))
    return lambda: client.push(0, {"w": next(arrays)})
