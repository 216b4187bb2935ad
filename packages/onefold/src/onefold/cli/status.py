"""``onefold status``."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from onefold.cli import options
from onefold.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from onefold.status import OpenStepStatus, RunStatus

__all__ = ["status"]

_TIMEOUT_SECONDS = 4.0

TlsCa: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="FILE",
        help="Roots by which the server is known. [default: $ONEFOLD_TLS_CA, else gRPC's own]",
    ),
]
TlsCert: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="FILE",
        help="A certificate to show to the server. [default: $ONEFOLD_TLS_CERT]",
    ),
]
TlsKey: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        parser=options.named_path,
        metavar="FILE",
        help="Its private key. [default: $ONEFOLD_TLS_KEY]",
    ),
]
TokenText: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TOKEN",
        help="Others on this machine can see it here, but not in the variable. "
        "[default: $ONEFOLD_TOKEN]",
    ),
]
Insecure: TypeAlias = Annotated[
    bool, typer.Option("--insecure", help="Send the token in the clear, even to another machine.")
]


def status(  # noqa: PLR0913 - the options of a command line
    address: Annotated[
        str | None,
        typer.Argument(
            help="grpc://HOST:PORT, or grpc+tls://HOST:PORT, of a server. "
            "[default: $ONEFOLD_ADDRESS]"
        ),
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    token: TokenText = None,
    insecure: Insecure = False,
) -> None:
    """Show how the run on a server stands: its open steps, and whom they wait for.

    Example:  onefold status grpc://127.0.0.1:7000
    """
    from onefold.client import Credentials, fetch_status  # noqa: PLC0415 - `--help` is to be quick

    address = address or os.environ.get("ONEFOLD_ADDRESS")
    if not address:
        raise InvalidInput("no address: give grpc://HOST:PORT, or set ONEFOLD_ADDRESS")
    given = Credentials(tls_ca, tls_cert, tls_key, token, insecure)
    credentials = given.or_from(os.environ)
    answer = fetch_status(address, timeout_seconds=_TIMEOUT_SECONDS, credentials=credentials)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(answer)))
        return
    from rich.console import Console  # noqa: PLC0415

    console = Console(markup=False, highlight=False)  # a worker may be called [red]
    console.print(_table_of_run(answer))
    for step in answer.open_steps:
        console.print(_open_step_text(step))


def _table_of_run(answer: RunStatus) -> Table:
    from rich.table import Table  # noqa: PLC0415

    from onefold.launch.display import byte_text  # noqa: PLC0415

    table = Table(show_header=False)
    table.add_row("run", answer.run)
    table.add_row("operation", answer.operation)
    closed = "none" if answer.highest_closed is None else str(answer.highest_closed)
    table.add_row("highest closed step", closed)
    roster = "nobody in particular" if answer.roster is None else ", ".join(answer.roster)
    table.add_row("a step waits for", roster or "nobody has joined yet")
    table.add_row("bytes staged", byte_text(answer.staged_bytes), end_section=True)
    table.add_row("since the server started", "")
    table.add_row("bytes received", byte_text(answer.received_bytes))
    for name, count in sorted(answer.receipts.items()):
        table.add_row(f"pushes {name}", str(count))
    return table


def _open_step_text(step: OpenStepStatus) -> str:
    """One open step in words."""
    here = ", ".join(step.contributed) or "nobody"
    text = f"step {step.step}: {here} contributed"
    if step.missing:
        text += f", missing {', '.join(step.missing)}"
    if step.vacant:
        text += f", {step.vacant} more have yet to join"
    return text + (f" (problem: {step.problem})" if step.problem else "")
