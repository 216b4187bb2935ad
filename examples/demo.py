"""Train a model twice, undisturbed and on the worst of days, and compare the bits.

This is what ``make demo`` runs: ``examples/digits.py`` over four workers, first as it is, then with
a network that repeats, loses, delays and reorders messages, a worker that is killed and a server
that is killed. The exit status is 0 only if both runs end with the same weights, bit for bit, and
recognise more than 95 % of digits that they never saw.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

DIGITS = Path(__file__).with_name("digits.py")
WORKERS = 4
STEPS = 160
ACCURACY_MIN = 0.95
DISTURBED = (
    "--faults",
    "repeat=0.2,lose=0.1,lose_reply=0.1,delay=0.2,reorder=0.1",
    *("--kill-worker", "1"),
    *("--kill-server", "1"),
)


@dataclass(frozen=True)
class Run:
    """What one run ended with. All workers of a run have the same weights."""

    accuracy: float
    digests: frozenset[str]
    kills: tuple[str, ...]
    traffic: dict[str, int]
    seconds: float


def run(options: tuple[str, ...]) -> Run:
    """Train once, in a run directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        summary_path = Path(directory) / "summary.json"
        command = [
            *(sys.executable, "-m", "onefold", "run"),
            *("--workers", str(WORKERS), "--steps", str(STEPS)),
            *("--summary", str(summary_path), *options),
            *("--", sys.executable, str(DIGITS), "--steps", str(STEPS)),
        ]
        started = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        seconds = time.monotonic() - started
        summary = json.loads(summary_path.read_text())
    results = [worker["result"] for worker in summary["workers"].values()]
    return Run(
        accuracy=min(result["accuracy"] for result in results),
        digests=frozenset(result["digest"] for result in results),
        kills=tuple(kill["target"] for kill in summary["kills"]),
        traffic=summary["traffic"] or {},
        seconds=seconds,
    )


def table(undisturbed: Run, disturbed: Run) -> Table:
    """Both runs side by side."""
    rows = Table(title="The same training, twice", title_justify="left")
    for heading in ("", "undisturbed", "disturbed"):
        rows.add_column(heading, overflow="fold")
    runs = (undisturbed, disturbed)
    rows.add_row("held-out accuracy", *(f"{run.accuracy:.4f}" for run in runs))
    for name in ("repeated", "lost", "replies_lost", "delayed", "reordered"):
        label = name.replace("replies_lost", "answers lost")
        label = label if " " in label else f"messages {label}"
        rows.add_row(label, *(str(run.traffic.get(name, 0)) for run in runs))
    for target in ("worker", "server"):
        rows.add_row(f"{target} kills", *(str(run.kills.count(target)) for run in runs))
    rows.add_row("seconds", *(f"{run.seconds:.1f}" for run in runs))
    return rows


def main() -> int:
    """Run both and compare."""
    console = Console()
    try:
        console.rule("undisturbed")
        undisturbed = run(())
        console.rule("with faults and kills")
        disturbed = run(DISTURBED)
    except subprocess.CalledProcessError as error:
        console.print(f"a run failed with exit status {error.returncode}")
        return 1
    except KeyboardInterrupt:
        return 130
    console.print(table(undisturbed, disturbed))
    # One below the other, and whole, so that they compare by eye.
    for name, one in (("undisturbed", undisturbed), ("disturbed", disturbed)):
        for digest in sorted(one.digests):
            print(f"{name:<11} {digest}")
    same = len(undisturbed.digests | disturbed.digests) == 1
    console.print("Every bit is the same." if same else "THE BITS DIFFER.")
    good = min(undisturbed.accuracy, disturbed.accuracy) > ACCURACY_MIN
    if not good:
        console.print(f"An accuracy is not above {ACCURACY_MIN}.")
    return 0 if same and good else 1


if __name__ == "__main__":
    sys.exit(main())
