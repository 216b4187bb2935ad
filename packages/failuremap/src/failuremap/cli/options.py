"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

__all__ = ["ArchiveOption", "PrivateOption"]

ArchiveOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--archive",
        metavar="DIR",
        help="The archive. [default: $FAILUREMAP_ARCHIVE, else found at or above this folder]",
    ),
]
PrivateOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--private", metavar="DIR", help="Where held files are kept. [default: nowhere]"),
]
