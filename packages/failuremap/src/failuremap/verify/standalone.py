"""The rendered program, run whole and confined, must say what the runner recorded.

This is where what a program prints is read. It is compared with the record and never believed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from failuremap.errors import InfraError
from failuremap.fixtures import Fixture, question_of
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Child, Load
from failuremap.runner.running import Run
from failuremap.values import json_view

__all__ = ["Printed", "expected_observations", "run_program", "standalone_problems"]

SECONDS = 20.0


Printed = tuple[int, list[object]]
"""An exit status, and the observations on the line that was printed."""


def run_program(program: str, interpreter: Interpreter) -> Printed | str:
    """A program's exit status and the observations on its last line, or why there are none."""
    try:
        with Child(Load.program(program), interpreter, Limits(call_seconds=SECONDS)) as child:
            answer = child.ask(question_of([]))
    except InfraError as error:
        return str(error)
    match answer.value:
        case (int(status), str(printed)):
            pass
        case _:
            return f"it did not end by itself: {answer.outcome}: {answer.message}"
    try:
        document = json.loads(printed.strip().splitlines()[-1])
        observations = list(document["observations"])
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return "it printed no line of observations"
    return status, observations


def standalone_problems(found: Printed | str, fixtures: Sequence[Fixture], run: Run) -> list[str]:
    """How the program's own line and exit status differ from the runner's record."""
    if isinstance(found, str):
        return [f"the stand-alone program: {found}"]
    status, printed = found
    if status != run.exit_code:
        return [f"the stand-alone program exits {status}, the runner {run.exit_code}"]
    recorded = expected_observations(fixtures, run)
    if printed == recorded:
        return []
    pairs = zip(printed, recorded, strict=False)
    differing = [ours["check"] for theirs, ours in pairs if theirs != ours]
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
