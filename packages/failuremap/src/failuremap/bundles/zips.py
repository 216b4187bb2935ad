"""A case as a zip file whose bytes depend on nothing but the case.

Entries are stored, not compressed, because compressors differ between versions; in the order of
their names, with one fixed time, mode and system. Built twice, on any Python, the bytes are equal.

``run.py`` in it needs nothing but Python: it checks the digests and runs the programs.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from importlib import resources
from pathlib import Path

from failuremap.archive import Archive, Case
from failuremap.documents import case_digest, case_document, open_roles
from failuremap.programs.render import render
from failuremap.verify.observations import read_observations

__all__ = ["bundle_bytes", "bundle_files", "run_source", "write_bundle"]

_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16


def bundle_files(archive: Archive, case: Case) -> dict[str, str]:
    """The files of a bundle by name; nothing held is among them."""
    records = {o.environment: o.document for o in read_observations(case)}
    files = {
        "case.json": _json(case_document(case, next(iter(records.values()), None))),
        "observations.json": _json(records),
        "run.py": run_source(),
        "README": _readme(case),
        "LICENSE": _licence(archive),
        **{f"{role}.py": render(case, role) for role in open_roles(case)},
    }
    sums = "".join(
        f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"
        for name, text in sorted(files.items())
    )
    return {**files, "SHA256SUMS": sums}


def run_source() -> str:
    """The program in a bundle that checks it."""
    return resources.files("failuremap").joinpath("bundles/run_bundle.py").read_text("utf-8")


def bundle_bytes(archive: Archive, case: Case) -> bytes:
    """The zip file's bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        for name, text in sorted(bundle_files(archive, case).items()):
            entry = zipfile.ZipInfo(f"{case.id}/{name}", _TIME)
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = _MODE
            bundle.writestr(entry, text.encode())
    return buffer.getvalue()


def write_bundle(archive: Archive, case: Case, file: Path) -> None:
    """Write a bundle beside its place, then rename it."""
    beside = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(bundle_bytes(archive, case))
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _json(document: object) -> str:
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _readme(case: Case) -> str:
    family = case.family
    roles = "".join(f"    python3 {role}.py\n" for role in open_roles(case))
    return (
        f"{case.id}: {family.title} (variant {case.variant})\n"
        f"case digest {case_digest(case)}\n\n"
        f"Root cause. {family.prose['root_cause']}\n\n"
        f"Contract. {family.prose['contract']}\n\n"
        f"Scope. {family.prose['scope']}\n\n"
        "Each program prints one line of JSON and exits 0 only if every fixture passes:\n\n"
        f"{roles}\n"
        "    python3 run.py    checks the digests in SHA256SUMS and case.json and runs them all\n"
    )


def _licence(archive: Archive) -> str:
    lines = [f"{name}: {value}" for name, value in sorted(archive.licences.items())]
    return "\n".join([*lines, "", f"canary: {archive.canary}", ""])
