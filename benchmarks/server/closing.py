"""What it takes to close a step and to pull its aggregate, beside the work that has to be done."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import onefold
from benchmarks.processes import serve
from benchmarks.server.raw import raw_server
from benchmarks.server.turns import Scale, Timed, medians, timed
from onefold.client import Client
from onefold.client.calls import Calls
from onefold.client.channel import FlightChannel
from onefold.ledger import Joined
from onefold.parts import encode, manifest_of, write_part
from onefold.receipt import Receipt
from onefold.update import Update
from onefold.wire import Commit, Join, Put, Staged

__all__ = ["closing"]

_WORKERS = 8
_CALL_SECONDS = 600.0


def closing(directory: Path, scale: Scale) -> dict[str, float]:
    """Seconds from the last commit of a step to its aggregate, and of the work that this takes."""
    rng = np.random.default_rng(1)
    elements = scale.large_bytes // 4
    arrays = [rng.standard_normal(elements, np.float32) for _ in range(_WORKERS)]
    parts = [(schema, list(batches)) for schema, batches in encode(Update({"w": arrays[0]}, 1))]
    names = [f"w{index}" for index in range(_WORKERS)]
    options = ("--roster", ",".join(names), "--keep-steps", "2")
    with ExitStack() as stack:
        served = stack.enter_context(serve(directory / "store", *options))
        raw = stack.enter_context(raw_server())
        for part in parts:
            raw.put(part, b"keep")
        others = [
            stack.enter_context(onefold.connect(served.address, name, spool_directory=directory))
            for name in names[1:]
        ]
        last = _Last(served.address, names[0])
        stack.enter_context(last.client)
        return medians(
            {
                "onefold": _closes(others, last, arrays),
                "kernel": timed(lambda: onefold.sum_dense(arrays)),
                "synced write": timed(_writes(directory / "synced.arrow", parts)),
                "raw Flight": timed(raw.get),
            },
            scale.rounds,
        )


class _Last:
    """The last worker of a step: its parts are at the server before the clock starts."""

    def __init__(self, address: str, name: str) -> None:
        self._calls = Calls(FlightChannel(address), _CALL_SECONDS)
        self._joined = self._calls.act(Join(name, "last"), Joined)
        self.client = Client(name, self._calls, life="last")  # the same life, so nobody is fenced

    def stage(self, step: int, update: Update) -> Callable[[], Receipt]:
        """Send the parts; what is returned commits them."""
        who = self._joined
        put = Put(who.run, who.worker, who.incarnation, step, attempt=1)
        staged = [
            self._calls.put(put, (schema, list(batches)), Staged, seconds=_CALL_SECONDS).part
            for schema, batches in encode(update)
        ]
        manifest = manifest_of(update, staged)
        commit = Commit(who.run, who.worker, who.incarnation, step, 1, manifest)
        return lambda: self._calls.act(commit, Receipt, seconds=_CALL_SECONDS)


def _closes(others: list[Client], last: _Last, arrays: list[np.ndarray]) -> Timed:
    steps = itertools.count()

    def close() -> float:
        step = next(steps)
        for client, array in zip(others, arrays[1:], strict=True):
            client.push(step, {"w": array})
        commit = last.stage(step, Update({"w": arrays[0]}, 1))
        begun_at = time.perf_counter()
        commit()
        last.client.pull(step)
        seconds = time.perf_counter() - begun_at
        for client in others:  # they keep their updates until they know that the step has closed
            client.pull(step)
        return seconds

    return close


def _writes(path: Path, parts: list) -> Callable[[], object]:
    return lambda: [write_part(path, *part, sync=True) for part in parts]
