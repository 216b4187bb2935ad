"""The archive as values: families, their cases, and the files that belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from failuremap.errors import UsageError
from failuremap.fixtures import Fixture, parse_fixtures

__all__ = ["TIERS", "Archive", "Case", "Equivalent", "Family", "Withdrawal", "role_order"]

TIERS = ("open", "held-repair", "held-group")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant that no input can tell from its source, and why."""

    role: str
    mutant: str
    digest: str
    reason: str


@dataclass(frozen=True, slots=True)
class Family:
    """One mechanism: its prose, contract, fixtures and implementations.

    ``implementations`` holds sources by role: ``failure``, ``attempt-1`` and on, ``repair`` unless
    it is held elsewhere. ``wrong`` holds other wrong implementations by name. ``parameters`` has
    the values of each parameter, one a variant.
    """

    slug: str
    title: str
    domain: str
    evaluation_groups: tuple[str, ...]
    prose: Mapping[str, str]
    compare: str
    arguments: tuple[str, ...]
    sources: tuple[str, ...]
    parameters: Mapping[str, tuple[object, ...]]
    equivalents: tuple[Equivalent, ...]
    contract: str
    fixtures: str
    implementations: Mapping[str, str]
    wrong: Mapping[str, str]
    folder: Path
    nonce: bytes | None = None
    """The members' nonce, where the private root is at hand."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles at hand: failure, attempts in their order, repair."""
        return tuple(sorted(self.implementations, key=role_order))

    @property
    def attempts(self) -> tuple[str, ...]:
        """The roles of the unsuccessful fixes."""
        return tuple(role for role in self.roles if role.startswith("attempt-"))


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """When a case was withdrawn, and why. Its page stays."""

    at: str
    reason: str


@dataclass(frozen=True, slots=True)
class Case:
    """One variant of a family under its id.

    ``commitment`` is what is published about held files: HMAC-SHA-256 under the members' nonce.
    """

    id: str
    family: Family
    variant: int
    parameters: Mapping[str, object]
    tier: str = "open"
    supersedes: tuple[str, ...] = ()
    withdrawn: Withdrawal | None = None
    commitment: str | None = None

    def fixtures(self) -> list[Fixture]:
        """The family's fixtures under this case's parameters."""
        file = str(self.family.folder / "fixtures.py")
        return parse_fixtures(self.family.fixtures, self.parameters, file=file)

    def implementation(self, role: str) -> str:
        """The source of a role; ``UsageError`` lists what there is."""
        source = self.family.implementations.get(role)
        if source is None:
            held = self.tier != "open" and role == "repair"
            why = ": the repair of this case is held for members" if held else ""
            roles = ", ".join(self.family.roles)
            raise UsageError(f"{self.id} has no {role!r}{why}; it has {roles}")
        return source


@dataclass(frozen=True, slots=True)
class Archive:
    """The tree of families and cases under one root."""

    root: Path
    id_prefix: str
    canary: str
    licences: Mapping[str, str]
    families: Mapping[str, Family]
    cases: Mapping[str, Case]
    held: tuple[str, ...] = ()
    """Ids of cases whose whole group is held, where the private root is not at hand."""

    def case(self, identifier: str) -> Case:
        """A case by its id; ``UsageError`` where there is none."""
        found = self.cases.get(identifier.upper())
        if found is None and identifier.upper() in self.held:
            raise UsageError(f"{identifier} is held for members: name their root with --private")
        if found is None and identifier in self.families:
            members = ", ".join(case.id for case in self.cases_of(identifier))
            raise UsageError(f"{identifier} is a family; its cases are {members}")
        if found is None:
            ids = sorted(self.cases)
            span = f"{ids[0]} to {ids[-1]}" if ids else "no cases"
            raise UsageError(f"there is no case {identifier!r}; the archive has {span}")
        return found

    def family(self, slug: str) -> Family:
        """A family by its slug; ``UsageError`` names those there are."""
        found = self.families.get(slug)
        if found is None:
            known = ", ".join(sorted(self.families)) or "none"
            raise UsageError(f"there is no family {slug!r}; the archive has {known}")
        return found

    def cases_of(self, slug: str) -> list[Case]:
        """The cases of a family, by variant."""
        cases = [case for case in self.cases.values() if case.family.slug == slug]
        return sorted(cases, key=lambda case: case.variant)


def role_order(role: str) -> tuple[int, int]:
    """Where a role stands: failure, attempts by number, repair."""
    if role.startswith("attempt-"):
        return (1, int(role.removeprefix("attempt-")))
    return (0 if role == "failure" else 2, 0)
