"""The facts in a JSON document of whatever form: sources, digests, observations, exit codes.

The form of other archives' JSON is not fixed, so facts are gathered rather than fields read. Each
belongs to the role named by the innermost key, or ``role`` beside it, on the way to it::

    {"failure": {"source": ...}}                      {"programs": [{"role": "failure", ...}]}
    {"sources": {"failure": ...}, "digests": ...}     {"failure_source": ...}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from failuremap.errors import ImportFailure

__all__ = ["Fact", "facts_of", "is_source", "slug"]

NODES_MAX = 200_000
DEPTH_MAX = 60

_ID = re.compile(r"FA-\d{5,9}")
_HEX = re.compile(r"(?:sha-?256[:=])?([0-9a-fA-F]{64})")
_DIGEST_KEY = re.compile(r"sha-?256|digest|hash|checksum")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something found: where, under which key, of which role."""

    kind: str
    role: str | None
    key: str
    where: str
    value: object


def facts_of(document: object) -> Iterator[Fact]:
    """Every fact of a document, in its order, on a stack of our own."""
    pending: list[tuple[object, str, str, str | None, int]] = [(document, "", "$", None, 0)]
    nodes = anonymous = 0
    while pending:
        value, key, where, role, depth = pending.pop()
        nodes += 1
        if nodes > NODES_MAX or depth > DEPTH_MAX:
            raise ImportFailure(
                f"{where}: expected at most {NODES_MAX} values, nested at most {DEPTH_MAX} deep; "
                "give a single case"
            )
        fact = _fact(value, key, where, role)
        if fact is not None:
            yield fact
        if fact is not None and fact.kind == "observations":
            continue
        if isinstance(value, dict):
            own = _own_role(value)
            sources = [slug(k) for k, item in value.items() if is_source(item)]
            if sources and own is None and role is None and not any(map(_role, sources)):
                anonymous += 1
                own = f"program-{anonymous}"
            children = [
                (item, slug(k), f"{where}.{k}", _role(slug(k)) or own or role, depth + 1)
                for k, item in value.items()
            ]
        elif isinstance(value, list):
            many = key in ("attempts", "unsuccessful-fixes", "unsuccessful-approaches")
            children = [
                (item, key, f"{where}[{i}]", f"attempt-{i + 1}" if many else role, depth + 1)
                for i, item in enumerate(value)
            ]
        else:
            continue
        pending += reversed(children)


def _fact(value: object, key: str, where: str, role: str | None) -> Fact | None:
    if isinstance(value, str):
        digest = _HEX.fullmatch(value.strip())
        if is_source(value):
            return Fact("source", role, key, where, value)
        if digest is not None and (_DIGEST_KEY.search(key) or role is not None):
            return Fact("digest", role, key, where, digest[1].lower())
        if _ID.fullmatch(value) and key in ("id", "case-id", "case"):
            return Fact("id", role, key, where, value)
        if key in ("python", "python-version", "interpreter", "recorded-with"):
            return Fact("interpreter", role, key, where, value)
        if key in ("recorded-at", "observed-at", "recorded", "observed", "timestamp"):
            return Fact("recorded", role, key, where, value)
    if isinstance(value, int) and not isinstance(value, bool) and key.startswith("exit"):
        return Fact("exit", role, key, where, value)
    if isinstance(value, list) and value and all(_is_observation(item) for item in value):
        return Fact("observations", role, key, where, value)
    return None


def is_source(value: object) -> bool:
    """Whether a value is the text of a program."""
    return isinstance(value, str) and "def solve(" in value and "\n" in value


def _is_observation(value: object) -> bool:
    return isinstance(value, dict) and {"actual", "expected"} <= {slug(k) for k in value}


def slug(key: object) -> str:
    """A name in lower case with hyphens, however it was written."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", str(key))
    return re.sub(r"[\s_./-]+", "-", text).casefold()


def _role(key: str) -> str | None:
    """The role that a name speaks of."""
    number = re.search(r"(?<![\da-f])([1-9])(?!\d)", key.replace("sha-256", "").replace("256", ""))
    if re.search(r"unsuccess|attempt|(?:^|-)fix(?:$|-)", key):
        return f"attempt-{number[1] if number else 1}"
    if re.search(r"(?:^|-)fail(?:ure|ing|ed)?(?:$|-)", key):
        return "failure"
    return "repair" if re.search(r"(?:^|-)repair(?:ed)?(?:$|-)", key) else None


def _own_role(value: Mapping[object, object]) -> str | None:
    for key, item in value.items():
        if slug(key) in ("role", "kind", "section", "part", "name", "id", "title", "file", "path"):
            found = _role(slug(item)) if isinstance(item, str) and len(item) < 80 else None
            if found is not None and "\n" not in str(item):
                return found
    return None
