"""The lock as a document, what is refused of one, and what ``verify`` finds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failuremap.errors import SplitError
from failuremap.splits import (
    CaseFacts,
    Lock,
    LockedComponent,
    archive_digest,
    exact_ratios,
    parse_lock,
    parse_ratios,
    plan,
    read_lock,
    verify,
    write_lock,
)

RATIOS = {"train": 0.5, "validation": "1/4", "test": Decimal("0.25")}


def case(number: int, family: str, **facts: object) -> CaseFacts:
    own = {"evaluation_groups": frozenset(), "contract_digest": f"c-{family}"}
    return CaseFacts(
        id=f"FA-{number:05}", family=family, fixtures_digest=f"x-{number}", **(own | facts)
    )


FACTS = [case(number, f"family-{number // 2}", repair_digest=f"r{number}") for number in range(12)]
LOCK = plan(FACTS, RATIOS, salt="säl\nt").lock
ONE, OTHER = (next(f for f in FACTS if LOCK.cases[f.id] == split) for split in ("test", "train"))
BRIDGE = case(90, ONE.family, evaluation_groups=frozenset({"g"}), contract_digest="c-new")
BRIDGED = [*FACTS, replace(BRIDGE, contract_digest=OTHER.contract_digest)]
GROWN = plan(BRIDGED, RATIOS, salt="säl\nt", lock=LOCK).lock


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Writing and reading gives the same lock, the bytes are those of the text, nothing is left."""
    path = tmp_path / "1.lock.json"
    path.write_text("the lock before")
    write_lock(path, GROWN)
    assert read_lock(path) == GROWN
    assert path.read_bytes() == GROWN.to_text().encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["1.lock.json"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert parse_lock(GROWN.to_text()).to_text() == GROWN.to_text()


def test_a_write_that_fails_leaves_the_old_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trouble at any moment before the rename changes nothing and leaves nothing beside."""
    path = tmp_path / "1.lock.json"
    write_lock(path, LOCK)

    def full(_: int) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no room"):
        write_lock(path, GROWN)
    assert [entry.name for entry in tmp_path.iterdir()] == ["1.lock.json"]
    assert read_lock(path) == LOCK


def test_the_document_says_all() -> None:
    """Schema, digests, salt, exact ratios, every case, the components, and quarantine with why."""
    document = json.loads(GROWN.to_text())
    assert list(document) == sorted(document)
    assert document["schema"] == 1
    assert document["salt"] == "säl\nt"
    assert document["ratios"] == {"test": "1/4", "train": "1/2", "validation": "1/4"}
    assert document["archive"] == archive_digest(BRIDGED)
    assert document["digest"] == GROWN.right_digest
    assert list(document["cases"]) == [fact.id for fact in FACTS]
    assert [part["cases"] for part in document["components"]] == [
        [FACTS[n].id, FACTS[n + 1].id] for n in range(0, 12, 2)
    ]
    assert list(document["quarantine"]) == [BRIDGE.id]
    assert GROWN.to_text().endswith("}\n")
    assert "säl" in GROWN.to_text()


def test_a_lock_does_not_depend_on_held_files() -> None:
    """Another repair or tree that joins the same cases leaves every byte of the lock."""
    other = [
        replace(fact, repair_digest=f"other-{fact.id}", implementations=frozenset({fact.id * 2}))
        for fact in FACTS
    ]
    assert plan(other, RATIOS, salt="säl\nt").lock.to_text() == LOCK.to_text()


@pytest.mark.parametrize(
    "change",
    [
        {"family": "another"},
        {"evaluation_groups": frozenset({"another"})},
        {"contract_digest": "another"},
        {"fixtures_digest": "another"},
        {"aliases": frozenset({"another"})},
        {"id": "FA-77777"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_archive_digest_covers_what_decides(change: dict[str, Any]) -> None:
    """Whatever decides a place and may be seen changes the digest; the order of cases does not."""
    assert archive_digest([replace(FACTS[0], **change), *FACTS[1:]]) != archive_digest(FACTS)
    assert archive_digest(FACTS[::-1]) == archive_digest(FACTS)


# --- refused by plan


@pytest.mark.parametrize(
    ("ratios", "salt", "message"),
    [
        (RATIOS, "pepper", r"made with the salt 'säl\\nt', not 'pepper'"),
        (
            RATIOS | {"train": 0.25, "test": 0.5},
            "säl\nt",
            "made with the ratios test=1/4, train=1/2",
        ),
        ({"train": 0.5, "test": 0.5}, "säl\nt", "not test=1/2, train=1/2"),
        (RATIOS | {"train": 0.25, "tests": 0.25}, "säl\nt", "not test=1/4, tests=1/4"),
    ],
)
def test_another_salt_or_ratios_are_refused(
    ratios: dict[str, Any], salt: str, message: str
) -> None:
    """A lock is for one salt and one set of ratios; the message says which and what to do."""
    with pytest.raises(SplitError, match=message) as caught:
        plan(FACTS, ratios, salt=salt, lock=LOCK)
    assert "start a new lock" in str(caught.value)


def test_the_same_ratios_in_other_words_are_the_same() -> None:
    """A half is a half as a float, a decimal, a fraction or a text."""
    other = {"test": Fraction(1, 4), "train": "0.50", "validation": 0.25}
    assert plan(FACTS, other, salt="säl\nt", lock=LOCK).lock == LOCK


@pytest.mark.parametrize(
    ("lock", "facts", "message"),
    [
        (replace(LOCK, cases={**LOCK.cases, ONE.id: "train"}), FACTS, "changed after it was writ"),
        (replace(LOCK, digest=""), FACTS, "changed after it was written"),
        (replace(LOCK, cases={**LOCK.cases, ONE.id: "dev"}).sealed(), FACTS, "only, got dev"),
        (LOCK, FACTS[1:], "FA-00000 is gone; withdraw"),
        (LOCK, FACTS[2:], "FA-00000, FA-00001 are gone; withdraw"),
        (GROWN, FACTS, "FA-00090 is gone"),
        (LOCK, [replace(f, contract_digest="c") for f in FACTS], "the same contract joins"),
    ],
    ids=["edited", "unsealed", "stray", "gone", "all gone", "quarantined gone", "joined"],
)
def test_a_lock_that_contradicts_the_archive_is_refused(
    lock: Lock, facts: list[CaseFacts], message: str
) -> None:
    """A lock that was edited, that has lost cases, or whose cases have been joined, is no start."""
    with pytest.raises(SplitError, match=message):
        plan(facts, RATIOS, salt="säl\nt", lock=lock)


# --- refused on reading


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(LOCK.to_text())
    change(document)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a lock"),
        ("[]", "expected a lock"),
        ("{}", "KeyError: 'schema'"),
        ("[" * 100_000, "expected a lock"),
        (edited(lambda d: d.update(schema=2)), "expected schema 1, got 2"),
        (edited(lambda d: d.pop("quarantine")), "KeyError: 'quarantine'"),
        (edited(lambda d: d.update(salt=7)), "expected a text, got 7"),
        (edited(lambda d: d.update(cases=[])), r"expected an object, got \[\]"),
        (edited(lambda d: d["cases"].update(a=None)), "expected a text, got None"),
        (edited(lambda d: d["ratios"].update(a="x")), "Invalid literal for Fraction: 'x'"),
        (edited(lambda d: d["ratios"].update(a="1/0")), "ZeroDivisionError"),
        (edited(lambda d: d["components"].append("x")), "TypeError"),
    ],
)
def test_what_is_no_lock_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Whatever a file holds, it is a lock or a SplitError that names the file."""
    path = tmp_path / "x.lock.json"
    path.write_text(text)
    with pytest.raises(SplitError, match=message) as caught:
        read_lock(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """A lock that cannot be read is never taken for none."""
    with pytest.raises(SplitError, match=r"none\.json: expected a lock file"):
        read_lock(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(SplitError, match="expected a lock file"):
        read_lock(tmp_path / "bytes")


# --- verify


def test_a_lock_that_plan_made_has_no_problem() -> None:
    """Neither the first lock nor a grown one with a quarantine, nor after withdrawals."""
    assert verify(FACTS, LOCK) == []
    assert verify(BRIDGED[::-1], GROWN, earlier=LOCK) == []
    assert verify([replace(fact, withdrawn=True) for fact in FACTS], LOCK) == []


def moved(lock: Lock, **cases: str) -> Lock:
    """A lock in which whole components are elsewhere, resealed and consistent in itself."""
    where = {**lock.cases, **{name.replace("_", "-"): split for name, split in cases.items()}}
    parts = tuple(LockedComponent(p.cases, where[p.cases[0]]) for p in lock.components)
    return replace(lock, cases=where, components=parts).sealed()


AWAY = "validation"
SWAPPED = (LOCK.components[0].cases, AWAY if LOCK.components[0].split != AWAY else "test")
TWO = {fact.id.replace("-", "_"): AWAY for fact in FACTS if fact.family == ONE.family}


@pytest.mark.parametrize(
    ("facts", "lock", "problems"),
    [
        (FACTS, replace(LOCK, digest="0"), ["got 0: it was changed"]),
        (FACTS, replace(LOCK, archive="0").sealed(), ["from the archive 0, this one is"]),
        (
            FACTS[:-1],
            LOCK,
            [
                "made from the archive",
                "FA-00011: the lock has it",
                "archive has the",
                "lock has the",
            ],
        ),
        ([*FACTS, case(50, "new")], LOCK, ["made from the archive", "FA-00050: it has no place"]),
        (BRIDGED, replace(GROWN, quarantine={}).sealed(), ["FA-00090: it has no place"]),
        (FACTS, GROWN, ["made from the archive", "FA-00090: the lock has it"]),
        (
            FACTS,
            replace(LOCK, quarantine={ONE.id: "?"}).sealed(),
            [
                f"{ONE.id}: it is in test and in quarantine",
                f"{ONE.id}: it is in quarantine and bridges nothing",
            ],
        ),
        (
            FACTS,
            moved(LOCK, **dict.fromkeys(TWO, "dev")),
            [f"{ONE.id}: it is in 'dev'", "it is in 'dev'"],
        ),
        (
            FACTS,
            moved(LOCK, FA_00003=AWAY, FA_00002="train"),
            ["the component of FA-00002 crosses train and validation"],
        ),
        (
            BRIDGED,
            replace(GROWN, cases={**GROWN.cases, BRIDGE.id: "test"}, quarantine={}).sealed(),
            ["crosses test and train"],
        ),
        (
            FACTS,
            replace(LOCK, components=LOCK.components[1:]).sealed(),
            ["FA-00000: the archive has the component FA-00000, FA-00001 in"],
        ),
        (
            FACTS,
            replace(LOCK, components=(LockedComponent(*SWAPPED), *LOCK.components[1:])).sealed(),
            ["FA-00000: the", "FA-00000: the"],
        ),
    ],
)
def test_verify_names_the_problem(facts: list[CaseFacts], lock: Lock, problems: list[str]) -> None:
    """Each broken promise is a sentence that names the case, and there is no other sentence."""
    found = verify(facts, lock)
    assert len(found) == len(problems), found
    for said, expected in zip(found, problems, strict=True):
        assert expected in said


def test_verify_finds_what_moved() -> None:
    """Against an earlier lock, a case elsewhere, in quarantine or nowhere has moved."""
    assert verify(FACTS, moved(LOCK, **TWO)) == []
    found = verify(FACTS, moved(LOCK, **TWO), earlier=LOCK)
    assert [said.partition(";")[0] for said in found] == [
        f"{fact.id}: it was in test before and is in validation now"
        for fact in FACTS
        if fact.family == ONE.family
    ]
    rest = {name: split for name, split in LOCK.cases.items() if name != ONE.id}
    (put_aside, *_) = verify(
        FACTS, replace(LOCK, cases=rest, quarantine={ONE.id: "?"}).sealed(), earlier=LOCK
    )
    assert "is in quarantine now" in put_aside
    assert any(
        "is in no place at all now" in said
        for said in verify(FACTS, replace(LOCK, cases=rest).sealed(), earlier=LOCK)
    )
    resalted = replace(LOCK, salt="x").sealed()
    assert verify(FACTS, resalted, earlier=LOCK) == [
        "lock: expected the salt of the earlier lock, got other; they stay for good"
    ]


@settings(derandomize=True, max_examples=100, deadline=None, database=None)
@given(data=st.data())
def test_any_change_to_a_lock_is_found(data: st.DataObject) -> None:
    """Whichever one place is changed by hand, verify says so, resealed or not."""
    name = data.draw(st.sampled_from(sorted(LOCK.cases)))
    split = data.draw(st.sampled_from([s for s in LOCK.ratios if s != LOCK.cases[name]]))
    changed = replace(LOCK, cases={**LOCK.cases, name: split})
    assert "changed after it was written" in verify(FACTS, changed)[0]
    assert "crosses" in verify(FACTS, changed.sealed())[0]


# --- ratios


@pytest.mark.parametrize(
    "ratios",
    [
        {},
        {"a": 0.5},
        {"a": 0.8, "b": 0.3},
        {"a": 1.5, "b": -0.5},
        {"a": 1, "b": 0},
        {"": 1},
        {"a": "x", "b": 1},
        {"a": float("nan"), "b": 1},
        {"a": float("inf")},
        {"a": "1/0"},
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3},
    ],
)
def test_ratios_add_up(ratios: dict[str, Any]) -> None:
    """Shares are above 0 and add up to exactly 1; anything else is refused in words."""
    with pytest.raises(SplitError, match="expected"):
        exact_ratios(ratios)


def test_ratios_are_read() -> None:
    """Two or three shares have the usual names; any number may be named, in any order."""
    usual = {"test": Fraction(1, 10), "train": Fraction(4, 5), "validation": Fraction(1, 10)}
    assert parse_ratios("0.8,0.1,0.1") == usual
    assert parse_ratios(" validation = 1/10, test=.1 ,train=4/5") == usual
    assert parse_ratios("0.8,0.2") == {"test": Fraction(1, 5), "train": Fraction(4, 5)}
    assert parse_ratios("all=1") == {"all": Fraction(1)}
    assert list(exact_ratios({"b": 0.5, "a": 0.5})) == ["a", "b"]
    for text in ("", "1", "a=0.5,0.5", "a=0.5,b=0.5,a=0.5", "0.25,0.25,0.25,0.25", "=1"):
        with pytest.raises(SplitError, match="expected"):
            parse_ratios(text)


@pytest.mark.parametrize(
    "share", ["1e9999", "1e-9999", "-1E+9999", "1e999999999", "1" * 4001, "1/" + "7" * 5000]
)
def test_a_share_of_very_many_digits_is_no_share(share: str) -> None:
    """Python itself would not print it, so that no lock could be written with it."""
    document = json.loads(GROWN.to_text()) | {"ratios": {"train": share}}
    with pytest.raises(SplitError, match="expected a lock as failuremap split writes it"):
        parse_lock(json.dumps(document))
    with pytest.raises(SplitError, match="a share above 0"):
        parse_ratios(f"train={share},test=0.5")


def test_a_share_of_many_digits_is_one() -> None:
    """Up to what Python prints whatever it is told."""
    document = json.loads(GROWN.to_text()) | {"ratios": {"train": "1" * 990 + "e3000"}}
    lock = parse_lock(json.dumps(document))
    assert parse_lock(lock.sealed().to_text()).ratios == lock.ratios
