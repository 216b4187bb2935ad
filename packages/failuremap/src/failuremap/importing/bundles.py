"""A bundle read back: a zip of a stranger's.

Sizes and names are checked before anything is unpacked, and nothing is unpacked to disk. Every file
must have the digest that SHA256SUMS lists, every listed file must be there, case.json must be what
its schema says and come to its own digest, and each program file must be the one in case.json.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping

from failuremap.bundles.zips import run_source
from failuremap.documents import observed_where, recorded
from failuremap.errors import ImportFailure
from failuremap.importing.documents import read_document
from failuremap.importing.model import PublishedCase
from failuremap.importing.own import check_own_document
from failuremap.verify.observations import environment_name, record_digest

__all__ = ["is_bundle", "read_bundle"]

FILES_MAX = 100
BYTES_MAX = 32 * 2**20
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What anybody's zip is made of; other unpackers take as much memory as the file tells them to."""
_BROKEN = (
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError),
    *(ValueError, LookupError, struct.error, zlib.error),  # seeks before the start, torn headers
)
_NAME = re.compile(r"[A-Z]+-[0-9]{5}/([A-Za-z0-9_.-]+)")


def is_bundle(content: bytes) -> bool:
    """Whether a file's bytes begin as a zip does."""
    return content.startswith(b"PK\x03\x04")


def read_bundle(content: bytes, name: str) -> PublishedCase:
    """The case of a bundle; ``ImportFailure`` names what is wrong with it."""
    files = _files(content, name)
    for wanted in ("SHA256SUMS", "case.json"):
        if wanted not in files:
            raise ImportFailure(f"{name}: expected {wanted} in the bundle")
    _check_sums(files, name)
    try:
        document = json.loads(files["case.json"])
    except (ValueError, RecursionError) as error:
        raise ImportFailure(f"{name}: case.json: not JSON: {error}") from None
    check_own_document(document, f"{name}: case.json")
    for role, program in document["programs"].items():
        if files.get(f"{role}.py") != program["source"].encode():
            raise ImportFailure(f"{name}: {role}.py is not the program that case.json states")
    if files.get("run.py") != run_source().encode():
        raise ImportFailure(f"{name}: run.py is not the one that this version writes")
    _check_records(files, document, name)
    return read_document(files["case.json"], f"{name}: case.json")


def _files(content: bytes, name: str) -> dict[str, bytes]:
    """The files of the one folder in the zip, by name."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            return _unpacked(bundle, name)
    except ImportFailure:
        raise
    except _BROKEN as error:
        raise ImportFailure(f"{name}: not a zip that can be read: {error}") from None


def _unpacked(bundle: zipfile.ZipFile, name: str) -> dict[str, bytes]:
    entries = bundle.infolist()
    if len(entries) > FILES_MAX or sum(e.file_size for e in entries) > BYTES_MAX:
        raise ImportFailure(f"{name}: expected at most {FILES_MAX} files and {BYTES_MAX} bytes")
    files: dict[str, bytes] = {}
    for entry in entries:
        found = _NAME.fullmatch(entry.filename)
        if found is None or found[1] in files or entry.compress_type not in _PACKINGS:
            raise ImportFailure(f"{name}: unexpected file {entry.filename!r}")
        with bundle.open(entry) as opened:
            files[found[1]] = opened.read(BYTES_MAX + 1)
        if len(files[found[1]]) != entry.file_size:
            raise ImportFailure(f"{name}: {entry.filename!r} has not the size it states")
    return files


def _check_records(files: dict[str, bytes], document: Mapping[str, object], name: str) -> None:
    """observations.json has sound records of this very case, and case.json repeats the first."""
    where = f"{name}: observations.json"
    try:
        records = json.loads(files.get("observations.json", b"null"))
        sound = all(
            record["digest"] == record_digest(record)
            and record["case_digest"] == document["digest"]
            and environment_name(record["environment"]) == environment
            for environment, record in records.items()
        )
        first = records[min(records)] if records else None
        repeated = {
            role: {**program, **(recorded(first, role) if first is not None else {})}
            for role, program in document["programs"].items()  # type: ignore[attr-defined]
        }
        observed = observed_where(first) if first is not None else None
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError, IndexError) as error:
        raise ImportFailure(f"{where}: expected records by environment: {error!r}") from None
    if not sound:
        raise ImportFailure(f"{where}: a record has been changed, or is of another case")
    if repeated != document["programs"] or observed != document["observed"]:
        raise ImportFailure(f"{name}: case.json shows other observations than observations.json")


def _check_sums(files: dict[str, bytes], name: str) -> None:
    lines = files["SHA256SUMS"].decode(errors="replace").splitlines()
    sums = {file: digest for digest, _, file in (line.partition("  ") for line in lines)}
    for file in sorted(files.keys() - {"SHA256SUMS"} | sums.keys()):
        if file not in files or hashlib.sha256(files[file]).hexdigest() != sums.get(file):
            raise ImportFailure(
                f"{name}: {file}: expected the bytes that SHA256SUMS lists; fetch it again"
            )
