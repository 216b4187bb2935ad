"""Read an archive from disk, and check what can be checked without running anything.

Held files live under a separate private root with the same layout; without it, a held family is
read without them. The tree is the only source of truth: nothing is cached or derived on disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from failuremap.archive.fields import Table, read_text, read_toml
from failuremap.archive.model import TIERS, Archive, Case, Equivalent, Family, Withdrawal
from failuremap.digests import NONCE_BYTES
from failuremap.errors import ArchiveError, UsageError
from failuremap.values import same

__all__ = ["PROSE", "SCHEMA", "find_root", "read_archive"]

SCHEMA = 1
PROSE = ("root_cause", "failure", "attempt", "contract", "why", "scope")
_ROLE = re.compile(r"failure|attempt-[1-9][0-9]*|repair")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_COMMITMENT = re.compile(r"[0-9a-f]{64}")


def find_root(start: Path) -> Path:
    """The archive at or above a folder: the first that holds ``archive.toml``."""
    for folder in (start, *start.parents):
        for candidate in (folder, folder / "archive"):
            if (candidate / "archive.toml").is_file():
                return candidate
    raise UsageError(
        f"no archive at or above {start}: name one with --archive, or the environment variable"
        " FAILUREMAP_ARCHIVE"
    )


def read_archive(root: Path, *, private: Path | None = None) -> Archive:
    """The archive under a root; ``ArchiveError`` names the file and field that cannot be used."""
    head = read_toml(root / "archive.toml")
    _check_schema(head)
    id_prefix, canary = head.text("id_prefix"), head.text("canary")
    licences = {name: str(value) for name, value in head.table("licences").items()}
    head.finish()
    families = {folder.name: _read_family(folder, private) for folder in _folders(root, private)}
    pattern = re.compile(re.escape(id_prefix) + r"-[0-9]{5}")
    cases: dict[str, Case] = {}
    held = []
    for file in sorted((root / "cases").glob("*.toml")):
        if not pattern.fullmatch(file.stem):
            raise ArchiveError(f"{file}: expected a name such as {id_prefix}-00001.toml")
        case = _read_case(file, families)
        if case is None:
            held.append(file.stem)
        else:
            cases[file.stem] = case
    _check_variants(cases, root)
    return Archive(root, id_prefix, canary, licences, families, cases, tuple(held))


def _folders(root: Path, private: Path | None) -> list[Path]:
    """The folders of families: the open ones, and those of which everything is held."""
    found: dict[str, Path] = {}
    for base in (private, root):
        for file in (base / "families").glob("*/family.toml") if base is not None else ():
            found[file.parent.name] = file.parent
    return [found[name] for name in sorted(found)]


def _check_schema(table: Table) -> None:
    schema = table.take("schema", int)
    if schema != SCHEMA:
        raise table.error("schema", f"{SCHEMA}, which this version reads", schema)


def _read_family(folder: Path, private: Path | None) -> Family:
    if not _SLUG.fullmatch(folder.name):
        raise ArchiveError(f"{folder}: expected a name of lower-case words joined by hyphens")
    table = read_toml(folder / "family.toml")
    _check_schema(table)
    arguments = table.texts("arguments")
    family = Family(
        slug=folder.name,
        title=table.text("title"),
        domain=table.text("domain"),
        evaluation_groups=table.texts("evaluation_groups"),
        prose={name: table.text(name) for name in PROSE},
        compare=_compare(table),
        arguments=arguments,
        sources=table.texts("sources", []),
        parameters=_parameters(table),
        equivalents=_equivalents(table, folder / "family.toml"),
        contract=_python(folder / "contract.py"),
        fixtures=_python(folder / "fixtures.py"),
        implementations=_implementations(folder, private),
        wrong=_sources(folder / "wrong"),
        folder=folder,
        nonce=_nonce(private / "families" / folder.name) if private is not None else None,
    )
    table.finish()
    return family


def _compare(table: Table) -> str:
    compare = table.text("compare")
    if compare != "exact":
        raise table.error("compare", '"exact": type by type and bit by bit', repr(compare))
    return compare


def _parameters(table: Table) -> dict[str, tuple[object, ...]]:
    parameters = {}
    for name, values in table.table("params").items():
        if not name.isidentifier() or not isinstance(values, list) or not values:
            raise table.error(f"params.{name}", "a list with one value a variant", repr(values))
        parameters[name] = tuple(values)
    if len({len(values) for values in parameters.values()}) > 1:
        raise table.error("params", "as many values of each", repr(parameters))
    return parameters


def _equivalents(table: Table, file: Path) -> tuple[Equivalent, ...]:
    found = []
    entries: list[Mapping[str, object]] = table.take("equivalent", list, [])  # type: ignore[assignment]
    for index, content in enumerate(entries):
        entry = Table(content, file, f"equivalent[{index}]")
        found.append(
            Equivalent(
                *(str(entry.take(name, str)) for name in ("source", "mutant", "digest", "reason"))
            )
        )
        entry.finish()
    return tuple(found)


def _implementations(folder: Path, private: Path | None) -> dict[str, str]:
    """Sources by role, the open ones and, where there is a private root, the held ones."""
    found = {file.stem: _python(file) for file in sorted((folder / "impl").glob("*.py"))}
    if private is not None and private not in folder.parents:
        held = _sources(private / "families" / folder.name / "impl")
        for role in held.keys() & found.keys():
            raise ArchiveError(f"{folder / 'impl' / role}.py: held, and open as well: remove one")
        found |= held
    for role in found:
        if not _ROLE.fullmatch(role):
            raise ArchiveError(f"{folder / 'impl'}: expected failure, attempt-N, repair: {role}.py")
    if not {"failure", "attempt-1"} <= found.keys():
        raise ArchiveError(f"{folder / 'impl'}: expected failure.py and attempt-1.py")
    return found


def _nonce(folder: Path) -> bytes | None:
    """The nonce under which the held files of a family are committed to."""
    file = folder / "nonce"
    if not file.is_file():
        return None
    try:
        nonce = bytes.fromhex(read_text(file).strip())
    except ValueError:
        nonce = b""
    if len(nonce) != NONCE_BYTES:
        raise ArchiveError(f"{file}: expected {2 * NONCE_BYTES} hexadecimal digits")
    return nonce


def _python(file: Path) -> str:
    """A source that compiles; a wrong implementation may be wrong in that, too."""
    text = read_text(file)
    try:
        compile(text, str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArchiveError(f"{file}: not Python: {error}") from None
    return text


def _sources(folder: Path) -> dict[str, str]:
    return {file.stem: read_text(file) for file in sorted(folder.glob("*.py"))}


def _read_case(file: Path, families: Mapping[str, Family]) -> Case | None:
    """A case; None where all of its group is held and the private root is not at hand."""
    table = read_toml(file)
    if table.text("id") != file.stem:
        raise table.error("id", f"the file's name, {file.stem}", "another")
    slug = table.text("family")
    tier = table.text("tier")
    if tier not in TIERS:
        raise table.error("tier", " or ".join(TIERS), repr(tier))
    if slug not in families and tier == "held-group":
        return None
    if slug not in families:
        raise table.error("family", f"one of {', '.join(sorted(families))}", repr(slug))
    variant = table.take("variant", int)
    case = Case(
        id=file.stem,
        family=families[slug],
        variant=variant,  # type: ignore[arg-type]
        parameters=table.table("params"),
        tier=tier,
        supersedes=table.texts("supersedes", []),
        withdrawn=_withdrawal(table, file),
        commitment=_commitment(table, tier),
    )
    table.finish()
    _check_parameters(case, file)
    _check_repair(case, file)
    return case


def _withdrawal(table: Table, file: Path) -> Withdrawal | None:
    content = table.table("withdrawn", {})
    if not content:
        return None
    inner = Table(content, file, "withdrawn")
    withdrawal = Withdrawal(inner.text("at"), inner.text("reason"))
    inner.finish()
    return withdrawal


def _commitment(table: Table, tier: str) -> str | None:
    commitment = str(table.take("commitment", str, ""))
    wanted = tier != "open"
    if wanted != bool(_COMMITMENT.fullmatch(commitment)):
        expected = "the HMAC (64 hex digits) of what is held" if wanted else "none in the open tier"
        raise table.error("commitment", expected, repr(commitment))
    return commitment or None


def _check_parameters(case: Case, file: Path) -> None:
    """A case's parameters are those that its family lists for the variant."""
    listed = case.family.parameters
    count = len(next(iter(listed.values()), ()))
    if listed and not 1 <= case.variant <= count:
        raise ArchiveError(f"{file}: variant: expected 1 to {count}, found {case.variant}")
    wanted = {name: values[case.variant - 1] for name, values in listed.items()}
    if not same(dict(case.parameters), wanted):
        raise ArchiveError(f"{file}: params: expected {wanted}, found {dict(case.parameters)}")


def _check_repair(case: Case, file: Path) -> None:
    """An open case shows its repair; a held one must not lie in the open tree."""
    is_open = (case.family.folder / "impl" / "repair.py").is_file()
    if case.tier == "open" and not is_open:
        raise ArchiveError(f"{file}: tier: expected impl/repair.py in an open family, found none")
    if case.tier == "held-repair" and is_open:
        raise ArchiveError(
            f"{file}: tier: the repair is held, and {case.family.folder / 'impl/repair.py'} shows"
            " it: move it to the private root"
        )


def _check_variants(cases: Mapping[str, Case], root: Path) -> None:
    """No two cases are the same variant of one family, and what is superseded exists."""
    seen: dict[tuple[str, int], str] = {}
    for case in cases.values():
        key = (case.family.slug, case.variant)
        if case.withdrawn is None and key in seen:
            raise ArchiveError(
                f"{root / 'cases'}: {seen[key]} and {case.id} are both variant {case.variant} of"
                f" {case.family.slug}"
            )
        if case.withdrawn is None:
            seen[key] = case.id
        for other in case.supersedes:
            if other not in cases:
                raise ArchiveError(f"{root / 'cases' / case.id}.toml: supersedes {other}: no case")
