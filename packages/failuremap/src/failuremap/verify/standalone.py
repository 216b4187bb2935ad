"""The rendered program, run as anybody would run it, must say what the runner recorded.

This is the one place where standard output is read: the program is the archive's own form, its
source is what the digest covers, and what it prints is compared with the record, never believed.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from failuremap.fixtures import Fixture
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.running import Run
from failuremap.values import json_view

__all__ = ["standalone_problems"]

SECONDS = 60


def standalone_problems(
    program: str, fixtures: Sequence[Fixture], run: Run, interpreter: Interpreter
) -> list[str]:
    """How the program's own line and exit status differ from the runner's record."""
    with tempfile.TemporaryDirectory(prefix="failuremap-") as folder:
        file = Path(folder) / "program.py"
        file.write_text(program, encoding="utf-8")
        try:
            finished = subprocess.run(  # noqa: S603 - running programs is what this does
                [interpreter.path, "-s", "-S", "-B", str(file)],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=SECONDS,
                cwd=folder,
                env={"LC_ALL": "C.UTF-8", "PATH": os.defpath, "PYTHONHASHSEED": "0"},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return [f"the stand-alone program did not end: {error}"]
    if finished.returncode != run.exit_code:
        return [f"the stand-alone program exits {finished.returncode}, the runner {run.exit_code}"]
    try:
        document = json.loads(finished.stdout.decode().strip().splitlines()[-1])
        printed = document["observations"]
    except (ValueError, IndexError, KeyError, TypeError):
        tail = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return [f"the stand-alone program printed no line of observations {tail}"]
    recorded = expected_observations(fixtures, run)
    if printed == recorded:
        return []
    differing = [r["check"] for p, r in zip(printed, recorded, strict=False) if p != r]
    return [f"the stand-alone program differs from the record at {differing or 'its length'}"]


def expected_observations(fixtures: Sequence[Fixture], run: Run) -> list[dict[str, object]]:
    """The observations that the stand-alone program prints, from the runner's verdicts."""
    return [
        {
            "check": fixture.label,
            "actual": json_view(verdict.actual),
            "expected": json_view(fixture.expected),
            "passed": verdict.status == "pass",
        }
        for fixture, verdict in zip(fixtures, run.verdicts, strict=True)
    ]
