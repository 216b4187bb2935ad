"""What of failuremap parses files that others made: archives, locks, pages, documents, bundles.

The promise is: a result, or an error of failuremap's own tree. Where there is a result, what is
done with it next (its digest, its text) works, too.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

from mutations import framed, mutated_bytes, mutated_json, mutated_text, unframed
from target import Target, Violation

from failuremap.archive import read_archive
from failuremap.bundles.zips import bundle_bytes
from failuremap.documents import case_digest, case_document
from failuremap.errors import FailureMapError
from failuremap.fixtures import fixtures_digest, parse_fixtures
from failuremap.importing.bundles import read_bundle
from failuremap.importing.documents import read_document
from failuremap.programs.split import split_program
from failuremap.splits.lock import Lock, LockedComponent, parse_lock
from failuremap.splits.ratios import exact_ratios, parse_ratios
from failuremap.splits.trees import normalised_tree
from failuremap.values import tag
from failuremap.verify.observations import read_observations, record_digest

__all__ = ["TARGETS"]

_REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.append(str(_REPOSITORY / "packages/failuremap/tests"))
from small_family import FAMILY, FILES  # noqa: E402  # the folder above is no package

_FAMILY = "families/shifted-sum"
_CASE = "FA-00001"
_WORDS = ("implementation", "version", "system", "machine")


def fixtures(data: bytes) -> None:
    """A file of fixtures, which is read and never executed."""
    with suppress(FailureMapError):
        read = parse_fixtures(data.decode(errors="surrogateescape"), {"N": 2})
        fixtures_digest(read)
        json.dumps([fixture.document() for fixture in read])


def archive(data: bytes) -> None:
    """An archive in which one file is another."""
    name, content = unframed(data)
    root = _archive()
    file = _archive_files().get(name)
    if file is None:
        return
    kept = file.read_bytes()
    try:
        file.write_bytes(content)
        with suppress(FailureMapError):
            read = read_archive(root)
            for case in read.cases.values():
                case_digest(case)
                if name.endswith(b".json"):
                    read_observations(case)
    finally:
        file.write_bytes(kept)


def lock(data: bytes) -> None:
    """A lock of splits; what is read can be written and read again."""
    text = data.decode(errors="surrogateescape")
    with suppress(FailureMapError):
        read = parse_lock(text)
        again = parse_lock(read.to_text().encode().decode())
        if again.right_digest != read.right_digest:
            raise Violation(f"{read} is another lock once it has been written")


def ratios(data: bytes) -> None:
    """Shares on a command line."""
    text = data.decode(errors="surrogateescape")
    with suppress(FailureMapError):
        parse_ratios(text)
    with suppress(FailureMapError):
        exact_ratios({"train": text})


def document(data: bytes) -> None:
    """A published case, as JSON or as a page."""
    with suppress(FailureMapError):
        read_document(data, "it")


def bundle(data: bytes) -> None:
    """A zip of a stranger's."""
    with suppress(FailureMapError):
        read_bundle(data, "it")


def program(data: bytes) -> None:
    """A stand-alone program, taken apart; and its tree without its names."""
    text = data.decode(errors="surrogateescape")
    with suppress(FailureMapError):
        split_program(text)
    with suppress(FailureMapError):
        normalised_tree(text)


@cache
def _archive() -> Path:
    """A small archive to write to, in memory if there is one: one family, one case, one record."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="failuremap-", dir=memory if memory.is_dir() else None))
    for name, text in _files().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    record = _record(case_digest(read_archive(root).case(_CASE)))
    file = root / "observations" / str(record["case_digest"]) / "cpython-3.11.7-linux-m.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record))
    return root


def _record(case: str) -> dict[str, object]:
    """What a record of a run has that others read."""
    row = {"check": "it", "status": "pass", "actual": tag(3), "expected": tag(3)}
    role = {"exit_code": 0, "observations": [row]}
    document: dict[str, object] = {
        "case_digest": case,
        "environment": dict(zip(_WORDS, ("cpython", "3.11.7", "linux", "m"), strict=True)),
        "roles": dict.fromkeys(("failure", "attempt-1", "repair"), role),
        "started_at": "2026-01-01T00:00:00Z",
        "runner": "1",
    }
    return {**document, "digest": record_digest(document)}


def _files() -> dict[str, str]:
    params = {"params": FAMILY["params"]}
    plain = {name: value for name, value in FAMILY.items() if name not in params}
    case = {"id": _CASE, "family": "shifted-sum", "variant": 2, "tier": "open"}
    head = {"schema": 1, "id_prefix": "FA", "canary": "canary 0"}
    return {
        "archive.toml": _toml(head, {"licences": {"code": "Apache-2.0"}}),
        f"cases/{_CASE}.toml": _toml(case, {"params": {"N": 2}}),
        f"{_FAMILY}/family.toml": _toml(plain, params),  # type: ignore[dict-item]
        **{f"{_FAMILY}/{name}": text for name, text in FILES.items()},
    }


def _toml(fields: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> str:
    """JSON's strings, numbers and lists are TOML's, too."""
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
    return text + "".join(f"[{name}]\n{_toml(table, {})}" for name, table in tables.items())


def _archive_seeds() -> list[bytes]:
    return [framed(name, file.read_bytes()) for name, file in _archive_files().items()]


@cache
def _archive_files() -> dict[bytes, Path]:
    root = _archive()
    files = (file for file in sorted(root.rglob("*")) if file.is_file())
    return {str(file.relative_to(root)).encode(): file for file in files}


def _mutated_file(data: bytes, rng: Random) -> bytes:
    name, content = unframed(data)
    mutate = mutated_json if name.endswith(b".json") else mutated_text
    return framed(name, mutate(content, rng))


def _zipped(files: Mapping[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def _mutated_bundle(data: bytes, rng: Random) -> bytes:
    """Bytes of the zip, or a file in it, of which the checksum is then mostly right."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            files = {name: packed.read(name) for name in packed.namelist()}
        name = rng.choice(sorted(files))
    except Exception:  # noqa: BLE001 - it was changed before, and is no zip any more
        return mutated_bytes(data, rng)
    if rng.random() < 0.4:
        return mutated_bytes(data, rng)
    files[name] = (mutated_json if name.endswith(".json") else mutated_text)(files[name], rng)
    if rng.random() < 0.9:
        lines = [
            f"{sha256(content).hexdigest()}  {Path(other).name}\n"
            for other, content in sorted(files.items())
            if not other.endswith("SHA256SUMS")
        ]
        sums = next((other for other in files if other.endswith("SHA256SUMS")), "x/SHA256SUMS")
        files[sums] = "".join(lines).encode()
    packings = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with suppress(ValueError):
        return _zipped(files, rng.choice(packings))
    return mutated_bytes(data, rng)


def _bundles() -> list[bytes]:
    read = read_archive(_archive())
    stored = bundle_bytes(read, read.case(_CASE))
    with zipfile.ZipFile(io.BytesIO(stored)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    packings = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    return [stored, *(_zipped(files, packing) for packing in packings)]


def _documents() -> list[bytes]:
    case = read_archive(_archive()).case(_CASE)
    pages = _REPOSITORY / "packages/failuremap/tests/pages"
    stated = case_document(case)
    observations = [{"check": "it", "actual": 1, "expected": 1, "passed": True}]
    other = {
        "id": "FA-12345",
        "failure": {"source": "def solve(x):\n    return x\n", "observations": observations},
        "attempts": [{"source": "def solve(x):\n    return 1\n", "observations": observations}],
    }
    texts = [json.dumps(each).encode() for each in (stated, other)]
    return [*texts, *(page.read_bytes() for page in sorted(pages.glob("*.txt"))[:3])]


def _mutated_document(data: bytes, rng: Random) -> bytes:
    return (mutated_json if data[:1] == b"{" else mutated_text)(data, rng)


def _programs() -> list[bytes]:
    programs = json.loads(_documents()[0])["programs"].values()
    return [each["source"].encode() for each in programs]


def _lock_seed() -> bytes:
    components = (LockedComponent(("FA-1",), "train"), LockedComponent(("FA-2",), "test"))
    cases = {"FA-1": "train", "FA-2": "test"}
    made = Lock(
        "0" * 64, "salt", exact_ratios({"train": "4/5", "test": "0.2"}), cases, components, {}
    )
    return made.sealed().to_text().encode()


TARGETS = (
    Target(
        "fixtures",
        fixtures,
        [(_archive() / _FAMILY / "fixtures.py").read_bytes(), b'check("a", [solve(N), 1], [2, 1])'],
        mutated_text,
    ),
    Target("archive", archive, _archive_seeds(), _mutated_file, 1, 100),
    Target("lock", lock, [_lock_seed()], mutated_json),
    Target("ratios", ratios, [b"train=0.8,test=1/5", b"0.8,0.1,0.1", b"1e-3"], mutated_text, 0.5),
    Target("document", document, _documents(), _mutated_document, 2, 150),
    Target("bundle", bundle, _bundles(), _mutated_bundle, 2, 100),
    Target("program", program, _programs(), mutated_text),
)
