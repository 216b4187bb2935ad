"""A case on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from failuremap.archive import Case
from failuremap.documents import case_digest, open_roles
from failuremap.programs.render import program_digest
from failuremap.values import shown, untag
from failuremap.verify.observations import Observation, read_observations

__all__ = ["print_case"]

_HEADINGS = {
    "root_cause": "Root cause",
    "failure": "The failure",
    "attempt": "The unsuccessful fix",
    "contract": "Contract",
    "why": "Why this case matters",
    "scope": "Scope",
}


def print_case(case: Case) -> None:
    """Print the prose, the digests and the observations of a case."""
    console = Console(markup=False)
    family = case.family
    console.print(Text(f"{case.id} / {family.domain} / {case.tier}", style="bold"))
    parameters = ", ".join(f"{name} = {value}" for name, value in case.parameters.items())
    console.print(f"{family.title} · case {case.variant:02d} ({parameters})")
    console.print(f"family {family.slug}: solve({', '.join(family.arguments)})", highlight=False)
    if case.withdrawn is not None:
        console.print(f"withdrawn {case.withdrawn.at}: {case.withdrawn.reason}", style="red")
    for name, heading in _HEADINGS.items():
        console.print(Text(f"\n{heading}", style="bold"))
        console.print(family.prose[name], highlight=False)
    for source in family.sources:
        console.print(f"- {source}", highlight=False)
    records = read_observations(case)
    for role in family.roles:
        if role in open_roles(case):
            console.print(f"\n{role}: SHA-256 / {program_digest(case, role)}", highlight=False)
        if records:
            console.print(_table(records[0], role))
    console.print(f"\nCase digest / {case_digest(case)}", highlight=False)
    for record in records:
        when = record.document["started_at"]
        console.print(f"Observations recorded in {record.environment} at {when}", highlight=False)


def _table(record: Observation, role: str) -> Table | str:
    roles = record.document["roles"]
    assert isinstance(roles, dict)
    found = roles.get(role)
    if found is None:
        return "held: its observations are not on record"
    table = Table("Boundary fixture", "Actual", "Expected", "Outcome")
    table.title, table.title_justify = f"Exit {found['exit_code']}", "left"
    for row in found["observations"]:
        actual = shown(untag(row["actual"]), 60) if row["actual"] is not None else row["message"]
        cells = (row["check"], actual, shown(untag(row["expected"]), 60), row["status"])
        table.add_row(*(Text(str(cell)) for cell in cells))
    return table
