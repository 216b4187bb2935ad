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
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from model import Run  # noqa: E402  # the folders above are no packages
from servers import ServerRun  # noqa: E402

_MEMORY = Path("/dev/shm")
"""What reaches the disk is the model's business, so the files may lie in memory."""


def one_run(
    seed: int, kind: Callable[[int, Path], Run | ServerRun] = Run
) -> tuple[Counter[str], str]:
    """What happened in the run of a seed, and what went wrong, if anything did."""
    base = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
    run = kind(seed, base)
    try:
        return run.go(), ""
    except Exception:  # noqa: BLE001 - told with its seed
        return run.counts, traceback.format_exc()
    finally:
        shutil.rmtree(base, ignore_errors=True)


def one_server_run(seed: int) -> tuple[Counter[str], str]:
    """The same of a server."""
    return one_run(seed, ServerRun)


def all_runs(option: str, seeds: range, processes: int) -> bool:
    """Make the runs of the seeds; whether every promise was kept."""
    one = one_run if option == "--runs" else one_server_run
    counts: Counter[str] = Counter()
    start = shown = time.monotonic()
    with ProcessPoolExecutor(processes) as pool:
        for done, (seed, (counted, wrong)) in enumerate(
            zip(seeds, pool.map(one, seeds), strict=True), 1
        ):
            counts += counted
            if wrong:
                alone = "--runs 1" if option == "--runs" else "--runs 0 --servers 1"
                print(f"\n{wrong}\nWRONG: {Path(__file__).name} --seed {seed} {alone}")
                pool.shutdown(cancel_futures=True)
                return False
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                print(f"{shown - start:5.0f} s  {done} of {len(seeds)} {option[2:]}", flush=True)
    for kind in sorted(counts):
        print(f"{counts[kind]:9,}  {kind}")
    took = time.monotonic() - start
    print(f"{len(seeds):9,}  {option[2:]} in {took:.0f} s, every promise kept", flush=True)
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
    for option, count in (("--runs", asked.runs), ("--servers", asked.servers)):
        if count and not all_runs(option, range(seed, seed + count), asked.processes):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
