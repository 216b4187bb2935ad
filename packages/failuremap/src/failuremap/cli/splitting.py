"""``failuremap split`` and ``failuremap verify-split``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from failuremap.cli.files import check_writable
from failuremap.cli.options import ArchiveOption, PrivateOption
from failuremap.errors import SplitError

if TYPE_CHECKING:
    from failuremap.splits import SplitPlan

__all__ = ["split", "verify_split"]


def split(
    ratios: Annotated[
        str,
        typer.Option(metavar="SHARES", help="0.8,0.1,0.1, or name=share,...; they add up to 1."),
    ],
    salt: Annotated[
        str, typer.Option(help="Settles ties: another salt, another choice of equals.")
    ],
    lock: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the places in it, add new ones, and write it."),
    ] = None,
    archive: ArchiveOption = None,
    private: PrivateOption = None,
) -> None:
    """Place the cases into splits so that relatives stay together and no case ever moves.

    Example:  failuremap split --ratios train=0.5,test=0.5 --salt 2026 --lock release.lock.json
    """
    from failuremap.cli.choice import open_archive  # noqa: PLC0415 - `--help` is to be quick
    from failuremap.splits import parse_ratios, plan, read_lock, write_lock  # noqa: PLC0415
    from failuremap.splits.gather import facts_of, unseen  # noqa: PLC0415

    check_writable(lock)
    opened = open_archive(archive, private=private)
    if hidden := unseen(opened):
        raise SplitError(
            f"repairs of {', '.join(hidden)} are held, so relatives could be told apart: name their"
            " root with --private"
        )
    facts = facts_of(opened)
    earlier = read_lock(lock) if lock is not None and lock.exists() else None
    made = plan(facts, parse_ratios(ratios), salt=salt, lock=earlier)
    if lock is not None:
        write_lock(lock, made.lock)
    _print(made)


def verify_split(
    lock: Annotated[Path, typer.Argument(metavar="FILE", help="The lock of a release.")],
    earlier: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An earlier lock: no case may have moved.")
    ] = None,
    archive: ArchiveOption = None,
    private: PrivateOption = None,
) -> None:
    """Check that a lock keeps its promises for the archive. Exit status 1 if it does not.

    Example:  failuremap verify-split archive/splits/2026.lock.json
    """
    from failuremap.cli.choice import open_archive  # noqa: PLC0415
    from failuremap.splits import read_lock, verify  # noqa: PLC0415
    from failuremap.splits.gather import facts_of  # noqa: PLC0415

    facts = facts_of(open_archive(archive, private=private))
    before = read_lock(earlier) if earlier is not None else None
    problems = verify(facts, read_lock(lock), earlier=before)
    for problem in problems:
        typer.echo(problem)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{lock}: every promise is kept")


def _print(made: SplitPlan) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = Console(highlight=False, markup=False)
    table = Table("split", "target", "cases", "components")
    for name, share in made.lock.ratios.items():
        table.add_row(
            name, str(share), str(made.case_counts[name]), str(made.component_counts[name])
        )
    console.print(table)
    for identifier, reason in made.lock.quarantine.items():
        console.print(f"quarantined {identifier}: {reason}")
    for warning in made.warnings:
        console.print(f"warning: {warning}")
    console.print(f"effective n: {made.effective_n} components")
