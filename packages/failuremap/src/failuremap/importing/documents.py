"""A published case as JSON, whatever its exact form, and the dispatch by what a file holds.

Facts that contradict each other are refused, never chosen between. How they are found, and whose
they are, is in ``facts.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from failuremap.errors import ImportFailure
from failuremap.importing.assembly import FoundProgram, published
from failuremap.importing.facts import Fact, facts_of, is_source, slug
from failuremap.importing.lines import CHARACTERS_MAX, decode
from failuremap.importing.model import PublishedCase, PublishedObservation, PublishedProgram
from failuremap.importing.own import check_own_document, is_own
from failuremap.importing.page import read_page
from failuremap.importing.tables import OUTCOMES
from failuremap.values import NotAValue, tag

__all__ = ["read_document"]

ROWS_MAX = 1_000

_ID = re.compile(r"FA-\d{5,9}")
_OTHER_DIGEST = re.compile(r"case|fixture|observ|contract|bundle|zip|commit|record|archive")
_LABELS = ("check", "label", "fixture", "boundary-fixture", "name", "title")
_OUTCOME_KEYS = ("passed", "pass", "outcome", "status", "result")
_TEXTS = {
    "root-cause": "root_cause",
    "failure": "failure",
    "the-failure": "failure",
    "attempt": "attempt",
    "unsuccessful-approach": "attempt",
    "unsuccessful-fix": "attempt",
    "contract": "contract",
    "case-contract": "contract",
    "why": "why",
    "why-this-case-matters": "why",
    "why-it-matters": "why",
    "scope": "scope",
    "verification-and-scope": "scope",
    "verification": "scope",
}


def read_document(content: bytes | str, name: str) -> PublishedCase:
    """The case in a file: a page saved as text, or a JSON document.

    Args:
        content: The file's bytes, or its text.
        name: What to call it in messages.

    Raises:
        ImportFailure: It is neither, or cannot be read; the message begins with the name.
    """
    if isinstance(content, bytes):
        if content.startswith(b"PK\x03\x04"):
            raise ImportFailure(f"{name}: expected a page or JSON, came a zip; import it as bundle")
        content = decode(content, name)
    begins = content.removeprefix("\ufeff").lstrip()[:200]
    if begins.casefold().startswith(("<!doctype html", "<html")):
        raise ImportFailure(f"{name}: expected text, came HTML; save the page as plain text")
    try:
        if begins.startswith(("{", "[")):
            return _read_json(content.removeprefix("\ufeff"))
        return read_page(content)
    except ImportFailure as error:
        raise ImportFailure(f"{name}: {error}") from None


def _read_json(text: str) -> PublishedCase:
    if len(text) > CHARACTERS_MAX:
        raise ImportFailure(
            f"the document has {len(text)} characters, and at most {CHARACTERS_MAX} are read; "
            "give a single case"
        )
    try:
        document = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ImportFailure(f"expected a JSON document: {error}; fetch it again") from None
    if is_own(document):
        check_own_document(document, "the document")
    facts = list(facts_of(document))
    head = _head(document)
    case = _text(head, "id", "case-id", "case")
    ids = {str(fact.value) for fact in facts if fact.kind == "id"}
    if _ID.fullmatch(case):
        ids = {case}
    if len(ids) != 1:
        raise ImportFailure(
            f"expected the id of one case (FA-NNNNN), came {sorted(ids) or 'none'}; give one case"
        )
    case = ids.pop()
    programs, held = _programs(facts, case)
    variant = _value(head, "variant", "variant-number", "number")
    digests = {str(f.value) for f in facts if f.kind == "digest" and f.key.startswith("case")}
    return PublishedCase(
        id=case,
        domain=_text(head, "domain"),
        tier=_text(head, "tier", "access-tier", "access"),
        title=_text(head, "title", "name"),
        variant=variant if isinstance(variant, int) and not isinstance(variant, bool) else None,
        texts=_prose(head),
        programs=programs,
        held=held,
        case_digest=digests.pop() if len(digests) == 1 else None,
        interpreter=_deep_text(facts, "interpreter"),
        recorded_at=_deep_text(facts, "recorded"),
        form="json",
    )


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"an object names a field twice, among {sorted(found)[:8]}")
    return found


def _programs(facts: list[Fact], case: str) -> tuple[tuple[PublishedProgram, ...], tuple[str, ...]]:
    roles = list(dict.fromkeys(fact.role for fact in facts if fact.kind == "source"))
    if not roles:
        raise ImportFailure(
            "expected programs with a function solve among the document's texts, came none; "
            "give the JSON of a case with its sources"
        )
    named = [role for role in roles if role is not None]
    programs = tuple(_program(role, [f for f in facts if f.role == role], case) for role in named)
    held = dict.fromkeys(f.role for f in facts if f.role and f.role not in named)
    return programs, tuple(role for role in held if role == "repair")


def _program(role: str, facts: list[Fact], case: str) -> PublishedProgram:
    source = _only([fact for fact in facts if fact.kind == "source"], role, "source")
    observations = _only([f for f in facts if f.kind == "observations"], role, "observations")
    if source is None or observations is None:
        where = facts[0].where if source is None else source.where
        raise ImportFailure(
            f"{where}: expected observations of the {role} (a list of objects with check, actual, "
            "expected and passed), came none; give the JSON of a case with its observations"
        )
    digest = _only(_source_digests(facts), role, "digest of the source")
    exits = _only([fact for fact in facts if fact.kind == "exit"], role, "exit code")
    found = FoundProgram(
        role=role,
        text=str(source.value),
        digest=None if digest is None else str(digest.value),
        exit_code=None if exits is None else int(str(exits.value)),
        observations=_observations(observations),
        where=source.where,
    )
    return published(found, case)


def _source_digests(facts: list[Fact]) -> list[Fact]:
    """The digests that can be the source's: those that say so, else those that say nothing else."""
    digests = [fact for fact in facts if fact.kind == "digest"]
    said = [fact for fact in digests if re.search("source|code|program", fact.key)]
    return said or [fact for fact in digests if not _OTHER_DIGEST.search(fact.key)]


def _only(facts: list[Fact], role: str, what: str) -> Fact | None:
    """The fact, however often it is told; ``ImportFailure`` if it is told in two ways."""
    for fact in facts[1:]:
        if json.dumps(fact.value) != json.dumps(facts[0].value):
            raise ImportFailure(
                f"{fact.where}: expected one {what} of the {role}, and another stands at "
                f"{facts[0].where}; give one case"
            )
    return facts[0] if facts else None


def _observations(fact: Fact) -> tuple[PublishedObservation, ...]:
    rows = fact.value if isinstance(fact.value, list) else []
    found: dict[str, PublishedObservation] = {}
    if len(rows) > ROWS_MAX:
        raise ImportFailure(f"{fact.where}: expected at most {ROWS_MAX} observations")
    for index, row in enumerate(rows):
        where = f"{fact.where}[{index}]"
        fields = {slug(key): value for key, value in row.items()}
        label = _value(fields, *_LABELS)
        passed = _passed(_value(fields, *_OUTCOME_KEYS))
        if not isinstance(label, str) or passed is None:
            raise ImportFailure(
                f"{where}: expected `check` (a label) and `passed` (true or false) beside actual "
                f"and expected, came {sorted(fields)}"
            )
        if label in found:
            raise ImportFailure(
                f"{where}: expected each label once, and {label!r} stands at {found[label].where}"
            )
        try:
            tag([label, fields["actual"], fields["expected"]])
        except NotAValue as error:
            raise ImportFailure(f"{where}: expected plain values: {error}") from None
        found[label] = PublishedObservation(
            label, fields["actual"], fields["expected"], passed, where
        )
    return tuple(found.values())


def _passed(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return OUTCOMES.get(value.casefold()) if isinstance(value, str) else None


def _head(document: object) -> dict[str, object]:
    """The fields about the case: those of the document, and of ``case`` or ``metadata`` in it."""
    if isinstance(document, list):
        document = document[0] if len(document) == 1 else {}
    head: dict[str, object] = {}
    if isinstance(document, dict):
        fields = {slug(key): value for key, value in document.items()}
        for name in ("case", "metadata", "family"):
            inner = fields.get(name)
            if isinstance(inner, dict):
                head |= {slug(key): value for key, value in inner.items()}
        head |= {k: v for k, v in fields.items() if not (k == "case" and isinstance(v, dict))}
    return head


def _value(fields: Mapping[str, object], *names: str) -> object:
    return next((fields[name] for name in names if name in fields), None)


def _text(fields: Mapping[str, object], *names: str) -> str:
    return next((v for name in names if isinstance(v := fields.get(name), str)), "")


def _prose(head: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for key, value in head.items():
        if key in _TEXTS and isinstance(value, str) and not is_source(value):
            found.setdefault(_TEXTS[key], value)
    return tuple(found.items())


def _deep_text(facts: list[Fact], kind: str) -> str | None:
    found = {str(fact.value) for fact in facts if fact.kind == kind}
    return found.pop() if len(found) == 1 else None
