"""``failuremap import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from failuremap.cli.files import printable
from failuremap.errors import ImportFailure, UsageError

if TYPE_CHECKING:
    from failuremap.importing.model import PublishedCase
    from failuremap.importing.reproduce import Reproduction

__all__ = ["import_file"]

BYTES_MAX = 64 * 2**20


def import_file(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A page saved as text, a JSON file, or a bundle.")
    ],
) -> None:
    """Check a published case: the digests of its programs, and its observations by running them.

    Exit status 0 only if every program's digest checks and every observation reproduces.

    Example:  failuremap import page.txt
    """
    from failuremap.importing import read_document  # noqa: PLC0415 - `--help` is to be quick
    from failuremap.importing.bundles import is_bundle, read_bundle  # noqa: PLC0415
    from failuremap.importing.reproduce import reproduce  # noqa: PLC0415

    content = _content(file)
    case = (
        read_bundle(content, str(file)) if is_bundle(content) else read_document(content, str(file))
    )
    found = reproduce(case)
    _print(case, found)
    if any(reproduction.infra for reproduction in found):
        raise typer.Exit(3)
    if not found or not all(reproduction.good for reproduction in found):
        raise typer.Exit(1)


def _content(file: Path) -> bytes:
    try:
        if not file.is_file() and file.exists():
            raise UsageError(f"{file} cannot be read: it is no file")
        if file.stat().st_size > BYTES_MAX:
            raise ImportFailure(f"{file}: expected at most {BYTES_MAX} bytes")
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def _print(case: PublishedCase, found: list[Reproduction]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(highlight=False, markup=False)
    console.print(printable(f"{case.id} {case.title}"))
    if case.recorded_at:
        words = f"recorded using Python {case.interpreter} at {case.recorded_at}"
        console.print(printable(words))
    for reproduction in found:
        program = reproduction.program
        console.print(f"\n{program.role}: {program.status}")
        for words in (program.note, *program.restored, reproduction.problem):
            if words:
                console.print(f"  {printable(words)}")
        table = Table("Boundary fixture", "Observation")
        for row in reproduction.rows:
            said = "reproduces" if row.reproduces else row.words
            table.add_row(Text(printable(row.label)), Text(printable(said)))
        console.print(table)
    for role in case.held:
        console.print(f"\n{role}: held, nothing to check")
    good = sum(reproduction.good for reproduction in found)
    console.print(f"\n{good} of {len(found)} programs check and reproduce")
