"""One workload from its beginning to its end: a server, worker processes, and what came of it."""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from benchmarks.load.contents import Contents, Workload
from benchmarks.load.gate import Gate
from benchmarks.load.latency import Calls
from benchmarks.load.memory import growth
from benchmarks.load.workers import Setting, work
from benchmarks.machine import say
from benchmarks.processes import MIB, Memory, Reading, Served, serve

__all__ = ["Options", "run"]

_KEEP_STEPS = 4
"""Aggregates that keep their tensors, so that the disk does not fill."""

_START_SECONDS_MAX = 300.0
_END_SECONDS_MAX = 150.0
_LOOK_SECONDS = 0.1
_SAMPLES_KEPT_MAX = 240


@dataclass(frozen=True, slots=True)
class Options:
    """How long, how many, and under which policy."""

    seconds: float
    workers: int
    processes: int
    seed: int
    late_seconds: float
    deadline_seconds: float | None
    minimum: int | None
    sync_each_push: bool
    growth_max: float
    directory: Path | None

    def policy(self, names: Sequence[str]) -> list[str]:
        """As options of ``onefold serve``."""
        options = ["--roster", ",".join(names), "--keep-steps", str(_KEEP_STEPS)]
        if self.deadline_seconds is not None:
            options += ["--deadline", str(self.deadline_seconds), "--minimum", str(self.minimum)]
        return options + ["--sync-each-push"] * self.sync_each_push


def run(workload: Workload, options: Options) -> dict[str, Any]:
    """Everything that goes into the results; nothing stays on the disk."""
    names = Contents(workload, options.workers, options.seed).names
    with tempfile.TemporaryDirectory(prefix="onefold-load-", dir=options.directory) as directory:
        place = Path(directory)
        (place / "spools").mkdir()
        with serve(place / "store", *options.policy(names)) as served:
            setting = Setting(
                address=served.address,
                workload=workload,
                workers=options.workers,
                seed=options.seed,
                late_seconds=options.late_seconds,
                deadline_seconds=options.deadline_seconds,
                spool_directory=str(place / "spools"),
            )
            say(f"{workload.name}: {options.seconds:.0f} s, {' '.join(options.policy(names)[2:])}")
            return _driven(setting, options, served, place)


def _driven(setting: Setting, options: Options, served: Served, place: Path) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    gate = Gate(context)
    targets = [place / f"process-{number}" for number in range(options.processes)]
    processes = [
        context.Process(
            target=work,
            args=(setting, range(options.workers)[number :: options.processes], gate, target),
            daemon=True,
        )
        for number, target in enumerate(targets)
    ]
    for process in processes:
        process.start()
    try:
        with Memory(served.pid, 1.0) as memory:
            begun_at = _wait_for_beginning(gate, processes)
            _wait(begun_at + options.seconds, gate, processes)
            gate.close()
            ended_at = time.monotonic()
        wrongs = _join(processes)
    finally:
        for process in processes:
            process.kill()
    readings = [each for each in memory.readings if begun_at <= each.at_seconds <= ended_at]
    told = _collected(targets, wrongs)
    calls = Calls.load([path.with_suffix(".npz") for path in targets if _is_whole(path)])
    return {
        "workload": asdict(setting.workload),
        "seconds": ended_at - begun_at,
        "steps": gate.highest,
        **told,
        "latency": calls.percentiles(),
        "windows": calls.windows(begun_at, ended_at),
        "cpu_seconds": readings[-1].cpu_seconds - readings[0].cpu_seconds if readings else 0.0,
        "growth": asdict(growth(readings or memory.readings[-1:], options.growth_max)),
        "samples": _samples(readings, begun_at),
    }


def _wait_for_beginning(gate: Gate, processes: Sequence[SpawnProcess]) -> float:
    """When the first step has closed: kernels are loaded, and connections made."""
    until = time.monotonic() + _START_SECONDS_MAX
    while not gate.begun_at and time.monotonic() < until:
        if gate.is_closed or not any(process.is_alive() for process in processes):
            break
        time.sleep(_LOOK_SECONDS)
    return gate.begun_at or time.monotonic()


def _wait(until: float, gate: Gate, processes: Sequence[SpawnProcess]) -> None:
    while time.monotonic() < until and not gate.is_closed:
        if not all(process.is_alive() for process in processes):
            return
        time.sleep(_LOOK_SECONDS)


def _join(processes: Sequence[SpawnProcess]) -> list[str]:
    until = time.monotonic() + _END_SECONDS_MAX
    wrongs = []
    for number, process in enumerate(processes):
        process.join(max(0.0, until - time.monotonic()))
        if process.exitcode != 0:
            wrongs.append(f"worker process {number} ended with {process.exitcode}")
    return wrongs


def _is_whole(path: Path) -> bool:
    return path.with_suffix(".json").exists()


def _collected(targets: Sequence[Path], wrongs: list[str]) -> dict[str, Any]:
    counts: Counter[str] = Counter({"wrong": len(wrongs)})
    for path in filter(_is_whole, targets):
        told = json.loads(path.with_suffix(".json").read_text())
        counts.update(told["counts"])
        wrongs = [*wrongs, *told["wrongs"]]
    return {"counts": dict(sorted(counts.items())), "wrongs": wrongs}


def _samples(readings: Sequence[Reading], begun_at: float) -> list[list[float]]:
    """Seconds, MiB anonymous, MiB of files, open files, threads; the highest of a few readings."""
    every = -(-len(readings) // _SAMPLES_KEPT_MAX) or 1
    samples = []
    for start in range(0, len(readings), every):
        block = readings[start : start + every]
        samples.append(
            [
                round(block[0].at_seconds - begun_at, 1),
                round(max(each.anonymous_bytes for each in block) / MIB, 1),
                round(max(each.file_bytes for each in block) / MIB, 1),
                max(each.open_files for each in block),
                max(each.threads for each in block),
            ]
        )
    return samples
