"""Is the runner itself in order? Programs whose verdict is known, good and bad."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from failuremap.fixtures import parse_fixtures
from failuremap.runner.interpreters import Interpreter
from failuremap.runner.limits import Limits
from failuremap.runner.process import Load
from failuremap.runner.running import run_fixtures

__all__ = ["CONTROLS", "Control", "ControlResult", "examine"]

_FIXTURES = 'check("a list is summed", solve([1, 2, 4]), 7)\n'


@dataclass(frozen=True, slots=True)
class Control:
    """A program and the statuses that the runner may give it."""

    name: str
    source: str
    allowed: tuple[str, ...]
    needs: str = ""
    """The isolation without which this control says nothing."""


@dataclass(frozen=True, slots=True)
class ControlResult:
    """What came of a control; ``good`` is None where its isolation did not apply here."""

    control: Control
    status: str
    message: str
    good: bool | None


def _program(body: str, head: str = "") -> str:
    return f"{head}\n\ndef solve(values):\n    {body}\n"


CONTROLS = (
    Control("a right answer passes", _program("return sum(values)"), ("pass",)),
    Control("a wrong answer fails", _program("return max(values)"), ("fail",)),
    Control("another type fails", _program("return float(sum(values))"), ("fail",)),
    Control(
        "a changed input fails", _program("s = sum(values); values.clear(); return s"), ("fail",)
    ),
    Control("an exception is an error", _program("return 1 // 0"), ("error",)),
    Control("exit status 0 is a crash", _program("os._exit(0)", "import os"), ("crash",)),
    Control("an endless loop times out", _program("while True: pass"), ("timeout",)),
    Control("a generator is no value", _program("return (v for v in values)"), ("protocol",)),
    Control(
        "too much memory is an error",
        _program("return bytearray(2**40)"),
        ("error", "crash"),
        "memory limit",
    ),
    Control(
        "the network is out of reach",
        _program(
            "socket.create_connection(('127.0.0.1', 9), 1); return sum(values)", "import socket"
        ),
        ("error", "timeout"),
        "no network",
    ),
    Control(
        "no process can be started",
        _program("os.fork(); return sum(values)", "import os"),
        ("error",),
        "no new processes",
    ),
    Control(
        "no file can be written",
        _program("open('x', 'w'); return sum(values)"),
        ("error",),
        "no file writes",
    ),
)


def examine(interpreter: Interpreter, limits: Limits) -> Iterator[ControlResult]:
    """Run every control on an interpreter."""
    fixtures = parse_fixtures(_FIXTURES, {}, file="doctor")
    for control in CONTROLS:
        run = run_fixtures(Load.source(control.source), fixtures, interpreter, limits)
        verdict = run.verdicts[0]
        good: bool | None = verdict.status in control.allowed
        if control.needs and control.needs not in run.isolation:
            good = None
        yield ControlResult(control, verdict.status, verdict.message, good)
