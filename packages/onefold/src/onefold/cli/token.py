"""``onefold token``: who may speak to a server, as whom."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from onefold.cli import options

if TYPE_CHECKING:
    from onefold.tokens import Token

__all__ = ["app"]

app = typer.Typer(
    help="Make, revoke and list the tokens that `onefold serve --tokens FILE` asks for.\n\n"
    "\b\n"
    "Example:\n"
    "  onefold token new a --tokens tokens.json",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Tokens: TypeAlias = Annotated[
    Path,
    typer.Option(
        parser=options.named_path, metavar="FILE", help="The file that the server is given."
    ),
]


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="WORKER", help="Who will hold it.")],
    *,
    tokens: Tokens,
    observer: Annotated[
        bool, typer.Option("--observer", help="Good for reading the status, and nothing else.")
    ] = False,
    expires_in: Annotated[
        float | None, typer.Option(metavar="DAYS", help="Until it is over. [default: never]")
    ] = None,
) -> None:
    """Make a token and print it, this once: FILE keeps only its hash.

    Earlier tokens of WORKER stay good until they are revoked, so that one can be changed for
    another while the run goes on.

    Example:  onefold token new a --tokens tokens.json --expires-in 30
    """
    from onefold.tokens import Role, token_for  # noqa: PLC0415 - `onefold --help` is to be quick
    from onefold.tokens import revoke as revoke_in  # noqa: PLC0415

    role = Role.OBSERVER if observer else Role.WORKER
    text, token = token_for(tokens, name, role, expires_in_days=expires_in)
    try:
        typer.echo(text)
    except OSError:
        revoke_in(tokens, token.id)  # nobody will ever know it
        raise
    typer.echo(f"{_text_of(token)}; give it to nobody else: ONEFOLD_TOKEN=...", err=True)


@app.command("revoke")
def revoke(
    name_or_id: Annotated[
        str, typer.Argument(metavar="WORKER|ID", help="All tokens of a name, or one by its id.")
    ],
    *,
    tokens: Tokens,
) -> None:
    """Revoke tokens; a server that runs refuses them from the next call on.

    Example:  onefold token revoke a --tokens tokens.json
    """
    from onefold.tokens import revoke as revoke_in  # noqa: PLC0415

    for token in revoke_in(tokens, name_or_id):
        typer.echo(f"revoked {_text_of(token)}")


@app.command("list")
def list_tokens(*, tokens: Tokens) -> None:
    """List the tokens of a file: ids, names and times; nobody can tell the tokens from it.

    Example:  onefold token list --tokens tokens.json
    """
    from onefold.tokens import read_tokens  # noqa: PLC0415

    held = read_tokens(tokens)
    for token in held:
        typer.echo(_text_of(token))
    if not held:
        typer.echo(f"{tokens} has no tokens", err=True)


def _text_of(token: Token) -> str:
    end = "never expires"
    if token.expires_at is not None:
        moment = datetime.datetime.fromtimestamp(token.expires_at, datetime.UTC)
        verb = "expires" if token.expires_at > time.time() else "expired"
        end = f"{verb} {moment:%Y-%m-%d %H:%M} UTC"
    return f"token {token.id} of {token.role} {token.name!r}, {end}"
