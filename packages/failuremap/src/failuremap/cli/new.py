"""``failuremap new``."""

from __future__ import annotations

from typing import Annotated

import typer

from failuremap.cli.options import ArchiveOption

__all__ = ["new"]


def new(
    family: Annotated[
        str, typer.Argument(metavar="FAMILY", help="Its slug: lower-case-words-like-this.")
    ],
    arguments: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help="The arguments of solve.")
    ] = "rows",
    variants: Annotated[int, typer.Option(min=1, max=20, help="How many cases it has.")] = 5,
    archive: ArchiveOption = None,
) -> None:
    """Start a new family: its folder with files to fill in, and its cases under the next free ids.

    Example:  failuremap new lone-survivor --arguments rows
    """
    from failuremap.archive.new import create_family  # noqa: PLC0415 - `--help` is to be quick
    from failuremap.cli.choice import open_archive  # noqa: PLC0415

    opened = open_archive(archive)
    names = [name.strip() for name in arguments.split(",")]
    written = create_family(opened, family, arguments=names, variants=variants)
    for file in written:
        typer.echo(f"wrote {file}")
    typer.echo("Fill in what says REPLACE, then: failuremap verify " + written[-1].stem)
