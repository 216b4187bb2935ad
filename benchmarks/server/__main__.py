"""The command line: measure sections, and write the page and ``server.json``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.machine import facts, say
from benchmarks.server.closing import closing
from benchmarks.server.holding import holding
from benchmarks.server.page import page
from benchmarks.server.pushing import large, small, storm
from benchmarks.server.training import flower, training
from benchmarks.server.turns import FULL, QUICK, Scale

HERE = Path(__file__).resolve().parents[1]

_VERSIONS = ("numpy", "numba", "pyarrow")

_SECTIONS: dict[str, Callable[[Path, Scale], Any]] = {
    "large": large,
    "small": small,
    "storm": lambda directory, scale: {"updates_a_second": storm(directory, scale)},
    "closing": closing,
    "training": lambda directory, scale: {"onefold": training(directory, scale)},
    "holding": holding,
}


def main() -> int:
    """Measure, or only write again what was measured."""
    arguments = _arguments()
    output: Path = arguments.output or (_quick_output() if arguments.quick else HERE)
    output.mkdir(parents=True, exist_ok=True)
    kept = output / "server.json"
    if arguments.render:
        document = json.loads(kept.read_text())
    else:
        before = json.loads(kept.read_text())["sections"] if kept.exists() else {}
        document = _measure(arguments, before if arguments.only else {})
        kept.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    notes = HERE / "server-notes.md"
    (output / "server.md").write_text(page(document, notes.read_text() if notes.exists() else ""))
    say(f"written to {output}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", choices=_SECTIONS, help="keep the others as they were before")
    add("--flower", metavar="PYTHON", help="one that has flwr, for the training step")
    add("--directory", type=Path, help="where to make the temporary directory")
    add("--quick", action="store_true", help="tiny sizes, to see that all works")
    add("--output", type=Path, help="a directory; benchmarks/, or with --quick a new one")
    add("--render", action="store_true", help="write the page anew from server.json")
    return parser.parse_args()


def _quick_output() -> Path:
    """Not where the figures are that count."""
    return Path(tempfile.mkdtemp(prefix="onefold-server-page-"))


def _measure(arguments: argparse.Namespace, sections: dict[str, Any]) -> dict[str, Any]:
    scale = QUICK if arguments.quick else FULL
    options = ["python -m benchmarks.server"] + [f"--only {name}" for name in arguments.only or ()]
    options += ["--flower PYTHON"] * bool(arguments.flower) + ["--quick"] * arguments.quick
    run = facts(" ".join(options), _VERSIONS, is_quick=arguments.quick)
    for name in arguments.only or _SECTIONS:
        begun_at = time.monotonic()
        with tempfile.TemporaryDirectory(
            prefix="onefold-server-", dir=arguments.directory
        ) as directory:
            sections[name] = _SECTIONS[name](Path(directory), scale)
        if name == "training" and arguments.flower:
            sections[name]["flower"], version = flower(arguments.flower, scale)
            run["versions"]["flwr"] = version
        say(f"{name}: {time.monotonic() - begun_at:.0f} s, {sections[name]}")
    return {"run": run, "sections": sections}


if __name__ == "__main__":
    sys.exit(main())
