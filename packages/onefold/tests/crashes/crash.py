# ruff: noqa: T201  # a program for people
"""Crash runs on a disk that forgets what was not synced, and kill servers; check what was promised.

Run it with ``make crash`` or ``python packages/onefold/tests/crashes/crash.py --runs 1000``. Each
run has a seed of its own, which together with ``--runs 1`` gives that run again. The first promise
that is broken is printed, and the exit status is then 1. With ``--servers`` so many runs of a real
``onefold serve`` follow, killed again and again while workers push and pull.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from model import Run  # noqa: E402  # the folders above are no packages

_MEMORY = Path("/dev/shm")
"""What reaches the disk is the model's business, so the files may lie in memory."""


def one_run(seed: int) -> tuple[Counter[str], str]:
    """What happened in the run of a seed, and what went wrong, if anything did."""
    base = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
    run = Run(seed, base)
    try:
        return run.go(), ""
    except Exception:  # noqa: BLE001 - told with its seed
        return run.counts, traceback.format_exc()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def model_runs(seed: int, runs: int, workers: int) -> bool:
    """Run the model; whether every promise was kept."""
    counts: Counter[str] = Counter()
    start = shown = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        seeds = range(seed, seed + runs)
        for done, (number, (counted, wrong)) in enumerate(
            zip(seeds, pool.map(one_run, seeds, chunksize=4), strict=True), 1
        ):
            counts += counted
            if wrong:
                print(f"\n{wrong}\nWRONG: {Path(__file__).name} --seed {number} --runs 1")
                pool.shutdown(cancel_futures=True)
                return False
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                print(f"{shown - start:5.0f} s  {done} of {runs} runs", flush=True)
    for kind in sorted(counts):
        print(f"{counts[kind]:9,}  {kind}")
    print(f"{runs:9,}  runs in {time.monotonic() - start:.0f} s, every promise kept")
    return True


def main() -> int:
    """Run it; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="runs of the model (default: 1000)")
    parser.add_argument("--servers", type=int, default=0, help="runs of a server (default: 0)")
    parser.add_argument("--seed", type=int, help="the first run's seed (default: from the clock)")
    parser.add_argument("--processes", type=int, default=2, help="at a time (default: 2)")
    asked = parser.parse_args()
    seed = int(time.time()) * 1000 if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    if asked.runs and not model_runs(seed, asked.runs, min(asked.processes, asked.runs)):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
