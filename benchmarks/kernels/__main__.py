"""The command line: measure sections, and write the page, the plots and ``results.json``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.kernels.plots import draw
from benchmarks.kernels.report import page
from benchmarks.kernels.results import Results
from benchmarks.kernels.sections import ROOT, SECTIONS, measure_here, measure_in_process
from benchmarks.machine import facts, say

HERE = ROOT / "benchmarks"

_VERSIONS = ("numpy", "numba", "torch", "scipy", "pandas", "pyarrow", "polars", "duckdb", "flwr")


def main() -> int:
    """Measure, or only write again what was measured; the exit status tells of broken sections."""
    arguments = _arguments()
    if arguments.section:
        name, target = arguments.section
        measure_here(name, Path(target), is_quick=arguments.quick)
        return 0
    output: Path = arguments.output or (_quick_output() if arguments.quick else HERE)
    output.mkdir(parents=True, exist_ok=True)
    kept = output / "results.json"
    if arguments.render:
        document = json.loads(kept.read_text())
    else:
        before = json.loads(kept.read_text())["sections"] if kept.exists() else []
        document = _measure(arguments, before)
        kept.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    results = Results(document)
    notes = HERE / "notes.md"
    text = page(
        results, notes.read_text() if notes.exists() else "", draw(results, output / "plots")
    )
    (output / "README.md").write_text(text)
    say(f"written to {output}")
    return int(any(section["exit_status"] for section in results.sections))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that all works")
    parser.add_argument(
        "--only",
        action="append",
        choices=SECTIONS,
        metavar="SECTION",
        help=f"keep the others as they were measured before: {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--output", type=Path, help="a directory; benchmarks/, or with --quick a new one"
    )
    parser.add_argument(
        "--render", action="store_true", help="write the page anew from results.json"
    )
    parser.add_argument("--section", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _quick_output() -> Path:
    """Not where the figures are that count."""
    return Path(tempfile.mkdtemp(prefix="onefold-bench-"))


def _measure(arguments: argparse.Namespace, before: list[dict[str, Any]]) -> dict[str, Any]:
    """The chosen sections, and as they were before those that are not chosen."""
    run = _run(arguments)
    sections = {each["section"]: each for each in before} if arguments.only else {}
    for name in arguments.only or SECTIONS:
        sections[name] = measure_in_process(name, is_quick=arguments.quick)
    ordered = [sections[name] for name in SECTIONS if name in sections]
    return {"run": run, "sections": ordered}


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
    options = ["--quick"] if arguments.quick else []
    options += [f"--only {name}" for name in arguments.only or ()]
    command = " ".join(["python -m benchmarks.kernels", *options])
    return facts(command, _VERSIONS, is_quick=arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
