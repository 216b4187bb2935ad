"""``failuremap verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from failuremap.cli.files import check_writable, write_file
from failuremap.cli.options import ArchiveOption, PrivateOption
from failuremap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failuremap.archive import Archive, Case
    from failuremap.verify.case import CaseReport
    from failuremap.verify.work import Settings

__all__ = ["verify"]


def verify(
    identifiers: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Cases; or --all.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every case of the archive.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes at a time. [default: the cores and one]")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Record the observations that are not on record yet.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write results and kill matrices as JSON.")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run everything again, whatever is remembered.")
    ] = False,
    archive: ArchiveOption = None,
    private: PrivateOption = None,
) -> None:
    """Check by running them that cases are what they claim to be.

    The failure fails; the attempt fails, too, but fixes something; the repair answers 200 generated
    inputs as the oracle does; observations agree across hash seeds, repeats and every Python at
    hand; every wrong implementation, mutant and control is noticed by a fixture. Exit status 1 on
    any shortfall, 3 if the machine failed.

    Example:  failuremap verify --all
    """
    from failuremap.cli.choice import open_archive  # noqa: PLC0415 - `--help` is to be quick
    from failuremap.verify.cache import Cache, default_folder  # noqa: PLC0415
    from failuremap.verify.work import Settings, default_jobs  # noqa: PLC0415

    check_writable(report)
    opened = open_archive(archive, private=private)
    cases = _chosen(opened, identifiers or [], everything=everything)
    cache = Cache(None if no_cache else default_folder())
    reports = _verified(cases, Settings(cache, jobs=jobs or default_jobs()), write=record)
    if report is not None:
        documents = [found.document() for found in reports]
        write_file(report, json.dumps(documents, indent=1) + "\n")
    _print(reports)
    if any(found.infra for found in reports):
        raise typer.Exit(3)
    if not all(found.verified for found in reports):
        raise typer.Exit(1)


def _chosen(archive: Archive, identifiers: list[str], *, everything: bool) -> list[Case]:
    if everything == bool(identifiers):
        raise UsageError("name cases, such as FA-99296, or pass --all")
    if identifiers:
        return [archive.case(identifier) for identifier in identifiers]
    return [case for case in archive.cases.values() if case.withdrawn is None]


def _verified(cases: Sequence[Case], settings: Settings, *, write: bool) -> list[CaseReport]:
    """Verify cases under a progress bar on standard error."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    from failuremap.verify.case import Verification  # noqa: PLC0415
    from failuremap.verify.work import Work  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("verifying", total=None)
        with Work(settings, done=lambda: progress.advance(task)) as work:
            running = []
            for case in cases:
                running.append(Verification(work, case))
                progress.update(task, total=work.units)
            reports = []
            for verification in running:
                reports.append(verification.finish(write=write))
                progress.update(task, description=f"{reports[-1].case.id} done")
            return reports


def _print(reports: Sequence[CaseReport]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    table = Table("case", "level", "fixtures", "killed", "seconds")
    for found in reports:
        killed, total = found.gate.counted if found.gate is not None else (0, 0)
        level = "verified (adequate)" if found.verified else found.level
        table.add_row(
            found.case.id, level, str(found.fixtures), f"{killed}/{total}", f"{found.seconds:.1f}"
        )
    console.print(table)
    for found in reports:
        for words in found.shortfalls:
            console.print(f"{found.case.id}: {words}", markup=False, highlight=False)
    verified = sum(found.verified for found in reports)
    console.print(f"{verified} of {len(reports)} cases are verified", highlight=False)
