"""``failuremap list``, ``show`` and ``render``."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from failuremap.cli.options import ArchiveOption, PrivateOption

__all__ = ["list_cases", "render", "show"]


def list_cases(
    archive: ArchiveOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the cases of the archive.

    Example:  failuremap list
    """
    from failuremap.cli.choice import open_archive  # noqa: PLC0415 - `--help` is to be quick

    opened = open_archive(archive)
    rows = [
        {
            "id": case.id,
            "family": case.family.slug,
            "variant": case.variant,
            "tier": case.tier,
            "title": case.family.title,
            "withdrawn": case.withdrawn.reason if case.withdrawn else None,
        }
        for case in opened.cases.values()
    ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    width = max((len(str(row["family"])) for row in rows), default=0)
    for row in rows:
        tier = "withdrawn" if row["withdrawn"] else str(row["tier"])
        typer.echo(f"{row['id']}  {row['family']!s:{width}}  {tier:11}  {row['title']}")
    for held in opened.held:
        typer.echo(f"{held}: held for members")


def show(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Such as FA-99296.")],
    archive: ArchiveOption = None,
    private: PrivateOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the published document of the case.")
    ] = False,
) -> None:
    """Show a case: what goes wrong, the tempting fix, the contract, and what was observed.

    Example:  failuremap show FA-99296
    """
    from failuremap.cli.choice import open_archive  # noqa: PLC0415
    from failuremap.documents import case_document  # noqa: PLC0415
    from failuremap.verify.observations import read_observations  # noqa: PLC0415

    opened = open_archive(archive, private=private)
    case = opened.case(identifier)
    if as_json:
        record = next(iter(read_observations(case)), None)
        document = case_document(case, record.document if record is not None else None)
        typer.echo(json.dumps(document, ensure_ascii=False, indent=1))
        return
    from failuremap.cli.pages import print_case  # noqa: PLC0415

    print_case(case)


def render(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Such as FA-99296.")],
    role: Annotated[str, typer.Argument(help="failure, attempt-1, ..., or repair.")],
    archive: ArchiveOption = None,
    private: PrivateOption = None,
) -> None:
    """Print a stand-alone program, byte for byte what its source digest covers.

    It needs plain python3 and exits 0 only if every fixture passes.

    Example:  failuremap render FA-99296 failure | python3 -
    """
    from failuremap.cli.choice import open_archive  # noqa: PLC0415
    from failuremap.programs.render import render as render_program  # noqa: PLC0415

    program = render_program(open_archive(archive, private=private).case(identifier), role)
    sys.stdout.buffer.write(program.encode())
    sys.stdout.buffer.flush()
