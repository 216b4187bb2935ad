"""The command line: ``failuremap list``, ``show``, ``verify``, ``try`` and the others.

This and the pytest plugin are the places where environment variables are read
(``FAILUREMAP_ARCHIVE``, ``XDG_CACHE_HOME``). What a command needs is imported when the command
runs. Exit status: 0 what was asked for holds, 1 it does not, 2 the request is wrong, 3 the machine
failed.
"""

from __future__ import annotations

import signal
import sys

import typer

import failuremap
from failuremap.cli import (
    cases,
    doctor,
    exporting,
    importing,
    new,
    splitting,
    trying,
    verifying,
)
from failuremap.errors import FailureMapError, InfraError, UsageError

__all__ = ["app", "main"]

app = typer.Typer(
    name="failuremap",
    help="An executable archive of the ways in which gradient aggregation goes wrong.\n\n"
    "\b\n"
    "Look around:\n"
    "  failuremap list\n"
    "  failuremap show FA-99296\n"
    "Try your own function:\n"
    "  failuremap try mymodule:my_sum --family retransmitted-replica-updates\n"
    "Check that every case is what it claims to be:\n"
    "  failuremap verify --all",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("list")(cases.list_cases)
app.command("show")(cases.show)
app.command("render")(cases.render)
app.command("try")(trying.try_function)
app.command("verify")(verifying.verify)
app.command("export")(exporting.export)
app.command("import")(importing.import_file)
app.command("split")(splitting.split)
app.command("verify-split")(splitting.verify_split)
app.command("new")(new.new)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"failuremap {failuremap.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: bool = typer.Option(
        False,
        "--version",
        callback=_print_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; the entry point ``failuremap``."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        app()
    except UsageError as error:
        sys.exit(_complain(error, 2))
    except InfraError as error:
        sys.exit(_complain(error, 3))
    except FailureMapError as error:
        sys.exit(_complain(error, 1))


def _end(number: int, _frame: object) -> None:
    """End as an exception does, so that children are ended and their folders removed.

    A second signal would interrupt just that, so it is ignored; Ctrl-C and SIGKILL are not.
    """
    for other in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def _complain(error: FailureMapError, exit_status: int) -> int:
    typer.echo(f"failuremap: {error}", err=True)
    return exit_status
