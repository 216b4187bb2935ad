"""Damage: a bit that flips, a file that is cut, gone or another's, is told and never believed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from damage import POLICY, Known, example, judged, known
from expected import Wrong

from onefold.aggregator import Aggregator
from onefold.errors import Damaged, StoreError
from onefold.testing.support import one

SEED = 77


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("damage") / "run"
    example(directory)
    return directory


@pytest.fixture(scope="module")
def before(whole: Path) -> Known:
    with Aggregator(whole, POLICY, clock=lambda: 5.0) as aggregator:
        return known(aggregator)


def flipped(name: str, at: int, bit: int) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / name
        data = bytearray(path.read_bytes())
        data[at] ^= 1 << bit
        path.write_bytes(data)

    return damage


@pytest.mark.parametrize("chunk", range(6))
def test_a_flipped_bit_of_the_ledger_is_told_or_harmless(
    whole: Path, before: Known, tmp_path: Path, chunk: int
) -> None:
    """Wherever it is, either everything that can be asked is answered as before, or the directory
    is refused and the ledger named."""
    rng = Random(SEED + chunk)
    data = (whole / "ledger.sqlite").read_bytes()
    written = [at for at, byte in enumerate(data) if byte]  # most of a page is empty
    for _ in range(40):
        at, bit = rng.choice(written), rng.randrange(8)
        verdict = judged(whole, tmp_path / "copy", flipped("ledger.sqlite", at, bit), before)
        assert verdict == "harmless" or "ledger.sqlite" in verdict, (at, bit, verdict)


def test_a_flipped_bit_of_the_tables_definition_is_told(
    whole: Path, before: Known, tmp_path: Path
) -> None:
    """Also one that turns text into bytes, which do not compare with text."""
    rng = Random(SEED)
    data = (whole / "ledger.sqlite").read_bytes()
    names = [data.index(text) for text in (b"tabletotaltotal", b"contribution_insert")]
    for at in [name - back for name in names for back in range(-12, 12)]:
        damage = flipped("ledger.sqlite", at, rng.randrange(3))
        verdict = judged(whole, tmp_path / "copy", damage, before)
        assert verdict == "harmless" or "ledger.sqlite" in verdict, (at, verdict)


def aggregate_files(whole: Path) -> list[str]:
    return sorted(str(p.relative_to(whole)) for p in (whole / "aggregates/1").iterdir())


def test_a_flipped_bit_of_an_aggregate_is_told_or_harmless(
    whole: Path, before: Known, tmp_path: Path
) -> None:
    """In its numbers or its manifest: the step is named and refused, or nothing has changed."""
    rng = Random(SEED)
    names = aggregate_files(whole)
    assert len(names) == 4
    told = 0
    for name in names:
        for at in range(0, (whole / name).stat().st_size, 37):
            damage = flipped(name, at, rng.randrange(8))
            verdict = judged(whole, tmp_path / "copy", damage, before)
            assert verdict == "harmless" or "step 1" in verdict, (name, at, verdict)
            told += verdict != "harmless"
    assert told > 5


def harms(whole: Path) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Every file that is there, emptied, cut, gone, and with the content of each other."""
    names = [
        str(path.relative_to(whole))
        for path in sorted(whole.rglob("*"))
        if path.is_file() and path.name != "lock" and "staged" not in path.parts
    ]
    for name in names:
        yield f"{name} emptied", lambda d, n=name: (d / n).write_bytes(b"")
        yield f"{name} gone", lambda d, n=name: (d / n).unlink()
        half = (whole / name).stat().st_size // 2
        yield f"{name} cut", lambda d, n=name, h=half: (d / n).write_bytes((d / n).read_bytes()[:h])
        for other in names:
            if other != name:
                content = (whole / other).read_bytes()
                yield f"{name} as {other}", lambda d, n=name, c=content: (d / n).write_bytes(c)
    yield "aggregates/1 as aggregates/2", _swapped


def _swapped(directory: Path) -> None:
    shutil.rmtree(directory / "aggregates/1")
    shutil.copytree(directory / "aggregates/2", directory / "aggregates/1")


def test_files_that_are_cut_gone_or_anothers_are_told(
    whole: Path, before: Known, tmp_path: Path
) -> None:
    """Whatever happens to a whole file of the ledger or of an aggregate is an error that names it,
    or its step, also where an aggregate is that of another step."""
    for what, damage in harms(whole):
        verdict = judged(whole, tmp_path / "copy", damage, before)
        if verdict == "harmless":  # the same content under another name
            name, _, other = what.partition(" as ")
            assert (whole / name).read_bytes() == (whole / other).read_bytes(), what
        else:
            place = "ledger" if what.startswith("ledger") else "step "
            assert place in verdict, (what, verdict)


def test_a_damaged_staged_part_is_never_summed(whole: Path, before: Known, tmp_path: Path) -> None:
    """The step has the update whole, or is asked to have it sent again; all else is as before."""
    rng = Random(SEED)
    copy = tmp_path / "copy"
    lost = 0
    for name in sorted(str(path.relative_to(whole)) for path in (whole / "staged").iterdir()):
        step = int(Path(name).name.partition("-")[0])
        worker = {3: "a", 4: "b"}[step]
        for at in range(0, (whole / name).stat().st_size, 61):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(whole, copy)
            flipped(name, at, rng.randrange(8))(copy)
            with Aggregator(copy, POLICY, clock=lambda: 5.0) as aggregator:
                now = known(aggregator)
                if now != before:
                    lost += 1
                    assert now[worker, step] is None
                    assert not aggregator.stands(step, worker, 2, 0)
                changed = {key for key in before if now[key] != before[key]}
                assert changed <= {(worker, step), "status"}
    assert lost > 10


def test_a_flipped_bit_of_the_log_loses_no_join_and_no_close(tmp_path: Path) -> None:
    """What a killed process left in the log is at most pushes since; they are asked for again."""
    whole = tmp_path / "whole"
    with Aggregator(tmp_path / "run", POLICY, clock=lambda: 5.0) as aggregator:
        aggregator.join("a", "life")
        for worker in ("a", "b"):
            aggregator.push(0, worker, one(2), attempt=0)
        aggregator.push(1, "a", one(3), attempt=0)
        aggregator.push(2, "b", one(4), attempt=0)
        shutil.copytree(tmp_path / "run", whole, ignore=shutil.ignore_patterns("*-shm"))
    with Aggregator(tmp_path / "run", POLICY, clock=lambda: 5.0) as aggregator:
        before = known(aggregator)
    lost = 0
    rng = Random(SEED)
    data = (whole / "ledger.sqlite-wal").read_bytes()
    for at in rng.sample([at for at, byte in enumerate(data) if byte], 60):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        flipped("ledger.sqlite-wal", at, rng.randrange(8))(copy)
        try:
            with Aggregator(copy, POLICY, clock=lambda: 5.0) as aggregator:
                now = known(aggregator)
                lost += now != before
                assert all(now[key] == before[key] for key in ("run", 0, "a", "b"))
                for step, worker, number in ((1, "a", 3), (2, "b", 4)):
                    if not aggregator.stands(step, worker, None, 0):
                        aggregator.push(step, worker, one(number), attempt=0)
                    other = {"a": "b", "b": "a"}[worker]
                    aggregator.push(step, other, one(1), attempt=0)
                    assert aggregator.pull(step).tensor[0] == number + 1
        except StoreError as error:
            assert "ledger.sqlite" in str(error)  # noqa: PT017
            lost += 1
    assert lost > 10


def test_an_emptied_ledger_does_not_begin_a_new_run(whole: Path, tmp_path: Path) -> None:
    """Aggregates beside an empty ledger are not swept as if nothing had ever been."""
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    (copy / "ledger.sqlite").write_bytes(b"")
    with pytest.raises(Damaged, match="is empty, and the directory is not"):
        Aggregator(copy, POLICY).open()
    assert (copy / "aggregates/1/manifest.json").exists()


def test_an_earlier_version_is_refused_untouched(whole: Path, tmp_path: Path) -> None:
    """Its schema is named, and what to do."""
    import contextlib
    import sqlite3

    copy = tmp_path / "copy"
    copy.mkdir()
    with contextlib.closing(sqlite3.connect(copy / "ledger.sqlite")) as database:
        for table in ("closed", "contributor"):
            database.execute(f"create table {table} (step integer)")
        database.execute("create table meta (key text primary key, value text)")
        database.execute("insert into meta values ('schema', '1')")
        database.commit()
    with pytest.raises(StoreError, match="has schema 1; this version of onefold reads 2"):
        Aggregator(copy, POLICY).open()


def test_the_judge_can_find_fault(whole: Path, before: Known, tmp_path: Path) -> None:
    """A directory that tells something else without an error is found out."""

    def other(directory: Path) -> None:
        shutil.rmtree(directory)
        example(directory, seed=1)

    with pytest.raises(Wrong, match="tells something else"):
        judged(whole, tmp_path / "copy", other, before)
