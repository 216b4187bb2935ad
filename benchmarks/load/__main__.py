"""The command line: load a server, write the page, the plots and ``load.json``, and judge."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.load.contents import WORKERS_MAX, Workload
from benchmarks.load.memory import GROWTH_MAX
from benchmarks.load.page import draw, is_sound, page
from benchmarks.load.running import Options, run
from benchmarks.machine import facts, say

HERE = Path(__file__).resolve().parents[1]

_WORKLOADS = {
    "small": Workload("small", elements=2048, entries=680, entries_max=2720),
    "large": Workload("large", elements=1 << 20, entries=1 << 14, entries_max=5 << 20),
}
_QUICK = {
    "small": Workload("small", elements=64, entries=32, entries_max=128),
    "large": Workload("large", elements=1 << 14, entries=1 << 10, entries_max=1 << 14),
}
_VERSIONS = ("numpy", "numba", "pyarrow")


def main() -> int:
    """Load, or only write again what was measured; 1 if something was lost or memory grows."""
    arguments = _arguments()
    output: Path = arguments.output or (_quick_output() if arguments.quick else HERE)
    output.mkdir(parents=True, exist_ok=True)
    kept = output / "load.json"
    if arguments.render:
        document = json.loads(kept.read_text())
    else:
        document = _measure(arguments)
        kept.write_text(json.dumps(document, ensure_ascii=False) + "\n")
    (output / "load.md").write_text(page(document, draw(document, output / "plots")))
    for measured in document["workloads"]:
        for wrong in measured["wrongs"]:
            say(f"{measured['workload']['name']}: {wrong}")
    say(f"written to {output}")
    return 0 if all(is_sound(measured) for measured in document["workloads"]) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, help="for all workloads together; default: 120")
    add("--workers", type=int, help="at most 64, the default")
    add("--processes", type=int, help="that the workers are threads of; default: 8")
    add("--only", action="append", choices=_WORKLOADS, help="one workload; default: each in turn")
    add("--seed", type=int, default=1)
    add("--late", type=float, default=0.25, help="how many seconds late workers come late")
    add("--deadline", type=float, help="of each step, in seconds; default: none")
    add("--minimum", type=int, help="workers that suffice at the deadline; default: 3 of 4")
    add("--sync-each-push", action="store_true", help="as for `onefold serve`")
    add("--growth-max", type=float, default=GROWTH_MAX, help="MiB an hour; default: %(default)g")
    add("--directory", type=Path, help="where to make the temporary directory")
    add("--quick", action="store_true", help="tiny sizes, to see that all works")
    add("--output", type=Path, help="a directory; benchmarks/, or with --quick a new one")
    add("--render", action="store_true", help="write the page anew from load.json")
    arguments = parser.parse_args()
    defaults = (2.0, 4, 2) if arguments.quick else (120.0, WORKERS_MAX, 8)
    for name, default in zip(("seconds", "workers", "processes"), defaults, strict=True):
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
    if not 1 <= arguments.processes <= arguments.workers <= WORKERS_MAX:
        parser.error(f"--workers is from 1 to {WORKERS_MAX}, --processes from 1 to --workers")
    return arguments


def _quick_output() -> Path:
    """Not where the figures are that count."""
    return Path(tempfile.mkdtemp(prefix="onefold-load-page-"))


def _measure(arguments: argparse.Namespace) -> dict[str, Any]:
    workloads = _QUICK if arguments.quick else _WORKLOADS
    chosen = arguments.only or list(workloads)
    minimum = None
    if arguments.deadline is not None:
        minimum = arguments.minimum or -(-3 * arguments.workers // 4)
    options = Options(
        seconds=arguments.seconds / len(chosen),
        workers=arguments.workers,
        processes=arguments.processes,
        seed=arguments.seed,
        late_seconds=arguments.late,
        deadline_seconds=arguments.deadline,
        minimum=minimum,
        sync_each_push=arguments.sync_each_push,
        growth_max=arguments.growth_max,
        directory=arguments.directory,
    )
    return {
        "run": facts(_command(arguments), _VERSIONS, is_quick=arguments.quick),
        "workers": options.workers,
        "processes": options.processes,
        "seed": options.seed,
        "growth_max": options.growth_max,
        "workloads": [run(workloads[name], options) for name in chosen],
    }


def _command(arguments: argparse.Namespace) -> str:
    """What was asked for, without paths."""
    told = ["python -m benchmarks.load", f"--seconds {arguments.seconds:g}"]
    told += [f"--workers {arguments.workers} --processes {arguments.processes}"]
    told += [f"--only {name}" for name in arguments.only or ()]
    told += [f"--seed {arguments.seed} --late {arguments.late:g}"]
    if arguments.deadline is not None:
        told += [f"--deadline {arguments.deadline:g}"]
        told += [f"--minimum {arguments.minimum}"] if arguments.minimum else []
    told += ["--sync-each-push"] * arguments.sync_each_push + ["--quick"] * arguments.quick
    return " ".join(told)


if __name__ == "__main__":
    sys.exit(main())
