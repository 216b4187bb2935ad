"""``failuremap export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from failuremap.cli.options import ArchiveOption
from failuremap.errors import UsageError

__all__ = ["export"]


def export(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Such as FA-99296.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.zip", help="[default: ID.zip]")
    ] = None,
    archive: ArchiveOption = None,
) -> None:
    """Write a case as a zip file that anybody can check and run with plain Python.

    The same case gives the same bytes, whenever and wherever it is built.

    Example:  failuremap export FA-99296 -o case.zip
    """
    from failuremap.bundles.zips import write_bundle  # noqa: PLC0415 - `--help` is to be quick
    from failuremap.cli.choice import open_archive  # noqa: PLC0415

    opened = open_archive(archive)
    case = opened.case(identifier)
    file = output or Path(f"{case.id}.zip")
    try:
        write_bundle(opened, case, file)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error}") from None
    typer.echo(f"wrote {file}")
