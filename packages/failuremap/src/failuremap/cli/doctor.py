"""``failuremap doctor``."""

from __future__ import annotations

import typer

__all__ = ["doctor"]


def doctor() -> None:
    """Check this machine: run programs whose verdict is known, on every Python at hand.

    Exit status 0 if every verdict is the right one, 3 otherwise. What cannot be confined on this
    system is named: verification works, and its records say what isolation applied.

    Example:  failuremap doctor
    """
    from rich.console import Console  # noqa: PLC0415 - `--help` is to be quick
    from rich.table import Table  # noqa: PLC0415

    from failuremap.runner.controls import examine  # noqa: PLC0415
    from failuremap.runner.interpreters import interpreters_at_hand  # noqa: PLC0415
    from failuremap.runner.limits import Limits  # noqa: PLC0415

    console = Console(highlight=False)
    bad = 0
    for interpreter in interpreters_at_hand():
        table = Table("control", "status", "verdict")
        table.title, table.title_justify = interpreter.environment, "left"
        for result in examine(interpreter, Limits()):
            word = {True: "good", False: "WRONG", None: "not confined here"}[result.good]
            bad += result.good is False
            table.add_row(result.control.name, result.status, word)
        console.print(table)
    console.print("the runner is in order" if not bad else f"{bad} controls came out wrong")
    if bad:
        raise typer.Exit(3)
