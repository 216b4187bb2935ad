"""What is measured, in sections that each run in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.kernels.adversarial import adversarial
from benchmarks.kernels.dense import dense
from benchmarks.kernels.growth import growth, threads
from benchmarks.kernels.measure import Case
from benchmarks.kernels.memory import memory
from benchmarks.kernels.rows import rows
from benchmarks.kernels.scale import FULL, QUICK, Scale
from benchmarks.kernels.small import start, tiny
from benchmarks.kernels.sparse import sparse
from benchmarks.machine import say

__all__ = ["ROOT", "SECTIONS", "measure_here", "measure_in_process"]

ROOT = Path(__file__).resolve().parents[2]

SECTIONS: dict[str, Callable[[Scale], Iterator[Case]]] = {
    "dense": dense,
    "adversarial": adversarial,
    "sparse": sparse,
    "rows": rows,
    "threads": threads,
    "growth": growth,
    "tiny": tiny,
    "start": start,
    "memory": memory,
}


def measure_here(name: str, target: Path, *, is_quick: bool) -> None:
    """Measure one section; each case is written as soon as it is there."""
    with target.open("w") as file:
        for case in SECTIONS[name](QUICK if is_quick else FULL):
            file.write(json.dumps(case.as_json()) + "\n")
            file.flush()


def measure_in_process(name: str, *, is_quick: bool) -> dict[str, Any]:
    """One section's cases, the load before, and how its process ended if not well."""
    began = time.perf_counter()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "cases")
        target.touch()
        command = [sys.executable, "-m", "benchmarks.kernels", "--section", name, str(target)]
        done = subprocess.run([*command, *(["--quick"] if is_quick else [])], cwd=ROOT, check=False)
        cases = [json.loads(line) for line in target.read_text().splitlines()]
    seconds = time.perf_counter() - began
    say(f"{name}: {seconds:.0f} s")
    return {
        "section": name,
        "load_before": round(load, 1),
        "seconds": round(seconds, 1),
        "exit_status": done.returncode,
        "cases": cases,
    }
