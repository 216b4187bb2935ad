"""The command line: ``onefold serve``, ``run``, ``status``, ``token`` and ``warmup``.

This is, with ``onefold.connect()``, the one place where environment variables are read
(``ONEFOLD_ADDRESS``, ``ONEFOLD_WORKER``, ``ONEFOLD_SPOOL_DIRECTORY``, ``ONEFOLD_WARM_UP``,
``ONEFOLD_TOKEN``, ``ONEFOLD_TLS_CA``, ``ONEFOLD_TLS_CERT``, ``ONEFOLD_TLS_KEY``). What a command
needs is imported when the command runs, so that ``--help`` is quick. Errors that onefold
raises on purpose are one line on standard error: exit status 2 for what was typed, 1 for what
happened.
"""

from __future__ import annotations

import errno
import os
import sys

import typer

import onefold
from onefold.cli import options, run, serve, simulate, status, token, warmup
from onefold.errors import InvalidInput, OnefoldError

__all__ = ["app", "main"]

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)
"""What a redirected standard output may fail with; where nobody reads a pipe, typer ends mutely."""

app = typer.Typer(
    name="onefold",
    help="Gradient aggregation in which every update counts exactly once and every sum is exactly "
    "rounded.\n\n"
    "\b\n"
    "Train over several workers on this machine:\n"
    "  onefold run --workers 4 -- python train.py\n"
    "Serve workers on other machines:\n"
    "  onefold serve DIRECTORY --workers 4 --listen 0.0.0.0:7000 --tokens tokens.json \\\n"
    "      --tls-cert server.pem --tls-key server.key",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("serve")(serve.serve)
app.command("run", context_settings={"allow_interspersed_args": False})(run.run)
app.command("status")(status.status)
app.add_typer(token.app, name="token")
app.command("warmup")(warmup.warmup)
app.command("simulate")(simulate.simulate)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onefold {onefold.__version__}")
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
    """Run the command line; the entry point ``onefold``."""
    # gRPC's own lines on standard error; what they are about is told by the error that follows.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        app()
    except InvalidInput as error:
        sys.exit(_complain(error, 2))
    except OnefoldError as error:
        sys.exit(_complain(error, 1))
    except OSError as error:
        if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
            raise
        sys.exit(_complain(f"the output could not be written: {error.strerror}", 1))


def _complain(error: OnefoldError | str, exit_status: int) -> int:
    typer.echo(f"onefold: {options.in_options(str(error))}", err=True)
    return exit_status
