"""``failuremap try``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from failuremap.cli.files import check_writable, write_file
from failuremap.cli.options import ArchiveOption
from failuremap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failuremap.archive import Case
    from failuremap.trying.session import CaseTry
    from failuremap.trying.target import Target

__all__ = ["try_function"]


class CompareChoice(enum.StrEnum):
    """The values of ``--compare``."""

    EXACT = "exact"
    VALUE = "value"


def try_function(
    function: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="Yours, importable from here.")
    ],
    family: Annotated[
        str | None, typer.Option(metavar="FAMILY", help="The cases of this family.")
    ] = None,
    case: Annotated[str | None, typer.Option(metavar="ID", help="This case only.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every case of the archive.")] = False,
    adapter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A Python file with adapt(function, *arguments)."),
    ] = None,
    compare: Annotated[
        CompareChoice,
        typer.Option(help="Type by type and bit by bit, or by value (5 and 5.0, [1] and (1,))."),
    ] = CompareChoice.EXACT,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="The Python to use. [default: this one]")
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="For each call.")] = 10.0,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the results as JUnit XML.")
    ] = None,
    pytest_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the fixtures as a pytest file.")
    ] = None,
    archive: ArchiveOption = None,
) -> None:
    """Run your own function against cases, and see the smallest input that it gets wrong.

    The function is called as the family's contract says (failuremap show). Exit status: 0 it
    passes, 1 it fails, 2 the request is wrong, 3 the machine failed.

    Example:  failuremap try onefold:reduce_replicas --family retransmitted-replica-updates
    """
    from failuremap.cli.choice import chosen_cases  # noqa: PLC0415 - `--help` is to be quick
    from failuremap.trying.reports import junit_xml  # noqa: PLC0415
    from failuremap.trying.reports import pytest_file as written_tests  # noqa: PLC0415
    from failuremap.trying.target import read_target  # noqa: PLC0415

    if (family is not None) + (case is not None) + everything != 1:
        raise UsageError("say what to try it on with one of --family FAMILY, --case ID, --all")
    check_writable(junit, pytest_file)
    cases = chosen_cases(archive, family=family, case=case)
    target = read_target(function, adapter=adapter, python=python, call_seconds=timeout)
    by_value = compare is CompareChoice.VALUE
    tries = _tried(cases, target, by_value=by_value)
    if junit is not None:
        write_file(junit, junit_xml(target, tries))
    if pytest_file is not None:
        write_file(pytest_file, written_tests(target, cases, by_value=by_value))
    _print(target, tries)
    statuses = {tried.status for tried in tries}
    if statuses != {"pass"}:
        raise typer.Exit(3 if "infra" in statuses else 1)


def _tried(cases: Sequence[Case], target: Target, *, by_value: bool) -> list[CaseTry]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    from failuremap.trying.session import GENERATED, try_case  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        total = sum(len(case.fixtures()) + GENERATED for case in cases)
        task = progress.add_task(target.name, total=total)

        def advance() -> None:
            progress.advance(task)

        return [try_case(case, target, by_value=by_value, progress=advance) for case in cases]


def _print(target: Target, tries: Sequence[CaseTry]) -> None:
    from rich.console import Console  # noqa: PLC0415

    from failuremap.trying.session import GENERATED, equal  # noqa: PLC0415

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for tried in tries:
        passed = sum(verdict.status == "pass" for verdict in tried.verdicts)
        inputs = f"{tried.generated} generated inputs"
        if tried.status != "pass" and 0 < tried.generated < GENERATED:
            inputs = f"wrong at generated input {tried.generated}"
        console.print(
            f"{tried.case.id} {tried.case.family.title}: {tried.status};"
            f" {passed} of {len(tried.verdicts)} fixtures, {inputs}"
        )
    worst = next((tried for tried in tries if tried.status != "pass"), None)
    if worst is None:
        console.print(f"{target.name} passes")
        return
    for verdict in worst.verdicts:
        if verdict.status != "pass":
            console.print(f"  {verdict.status}: {verdict.label}: {verdict.message}")
    if worst.smallest is not None:
        found = worst.smallest
        names = worst.case.family.arguments
        console.print(f"\nThe smallest input found that {target.name} gets wrong:")
        for name, value in zip(names, found.arguments, strict=True):
            console.print(f"    {name} = {value!r}")
        verdict = found.verdict
        came = repr(verdict.actual) if verdict.answered else verdict.message
        console.print(f"  - expected {found.expected!r}")
        console.print(f"  + {'got' if verdict.answered else verdict.status} {came}")
        if verdict.equal:
            console.print(f"    {verdict.message}")
        elif verdict.answered and equal(verdict.actual, found.expected):
            which = "Only types differ" if worst.only_types else "This input differs by type only"
            console.print(f"{which}: --compare value accepts equal values of other types.")
