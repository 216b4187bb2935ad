"""The stores: the contract suite on each, and what only a directory does."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from onefold.errors import Damaged, Expired, InvalidInput, StoreError, StoreLocked
from onefold.ledger import Contributed, Ledger, StepOpened
from onefold.parts import Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.store import DirectoryStore, MemoryStore
from onefold.store.files import Files
from onefold.testing.stores import (
    StoreContract,
    close_with,
    closing,
    contribution,
    example_update,
    staged,
)


def change_as_nobody_should(database, statement):
    """Change a ledger without its seals and totals following."""
    database.create_function("seal", -1, lambda *_: 7, deterministic=True)
    if not statement.startswith("drop"):
        (table,) = {"contribution", "excluded", "total"} & set(statement.split())
        triggers = database.execute(
            "select name, sql from sqlite_master where type = 'trigger' and tbl_name = ?", (table,)
        ).fetchall()
    else:
        triggers = []
    for name, _ in triggers:
        database.execute(f"drop trigger {name}")
    database.execute(statement.replace(", 7)", ")"))
    for _, sql in triggers:
        database.execute(sql)
    database.commit()


class TestMemoryStore(StoreContract):
    """The contract, in memory."""

    @pytest.fixture
    def make_store(self):
        return MemoryStore


class TestDirectoryStore(StoreContract):
    """The contract, in a directory, and what survives there."""

    @pytest.fixture
    def make_store(self, tmp_path):
        return lambda: DirectoryStore(tmp_path / "run")

    @pytest.fixture
    def reopen(self, store, make_store):
        again = make_store()

        def reopen():
            store.close()
            again.open()
            return again

        yield reopen
        again.close()

    def test_a_run_keeps_its_id(self, store, reopen):
        """The run id is made once."""
        run = store.run
        assert reopen().run == run

    def test_contributions_and_aggregates_survive(self, store, reopen):
        """A reopened directory has every committed contribution and every aggregate."""
        manifest = staged(store, 2, example_update())
        store.commit(
            [StepOpened(2, None, 1.0, None), Contributed(2, contribution("a", manifest))],
            durable=False,
        )
        close_with(store, 1, example_update(2.0))
        again = reopen()
        again.payload(manifest).verify()
        ledger = Ledger(again.run, Policy(), again.changes())
        assert ledger.steps.open[2].standing["a"] == contribution("a", manifest)
        assert ledger.steps.highest_closed == 1
        assert again.aggregate_manifest(1) is not None

    def test_leftovers_are_swept(self, store, reopen, tmp_path):
        """Parts that nothing names and aggregates that were never visible go at the next start."""
        orphan = staged(store, 2, example_update())
        store.write_aggregate(3, encode(example_update()))
        (tmp_path / "run/aggregates/4").mkdir()
        (tmp_path / "run/aggregates/5.unfinished").mkdir()
        (tmp_path / f"run/staged/2-{'0' * 32}.unfinished").write_text("half")
        again = reopen()
        with pytest.raises(Damaged):
            again.payload(orphan)
        assert list((tmp_path / "run/staged").iterdir()) == []
        assert list((tmp_path / "run/aggregates").iterdir()) == []

    def test_what_has_another_name_is_not_swept(self, reopen, tmp_path):
        """Only names that the store gives out are its own to remove."""
        kept = [
            *("run/staged/notes.txt", "run/staged/2-half.unfinished", "run/staged/x.arrow"),
            *("run/aggregates/notes.txt", "run/aggregates/mine/3.arrow", "run/notes.txt"),
        ]
        for name in kept:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("mine")
        reopen()
        assert all((tmp_path / name).read_text() == "mine" for name in kept)

    def test_a_fact_survives(self, store, reopen):
        """What was said first is what a reopened directory says."""
        store.fact("colour", "red")
        assert reopen().fact("colour", "blue") == "red"

    def test_a_directory_of_somebody_else_is_refused(self, tmp_path):
        """Neither swept nor written to: what is not empty needs a ledger."""
        (tmp_path / "staged").mkdir()
        (tmp_path / "staged" / f"1-{'0' * 32}.arrow").write_text("mine")
        with pytest.raises(StoreError, match=r"is not empty \(staged\) and has no ledger"):
            DirectoryStore(tmp_path).open()
        names = [path.name for path in tmp_path.rglob("*")]
        assert names == ["staged", f"1-{'0' * 32}.arrow"]

    def test_a_database_of_somebody_else_is_refused(self, tmp_path):
        """A ledger is known by its tables; another database gets none of them."""
        path = tmp_path / "ledger.sqlite"
        with sqlite3.connect(path) as database:
            database.execute("create table books (title text)")
        database.close()
        with pytest.raises(StoreError, match="no ledger of onefold"):
            DirectoryStore(tmp_path).open()
        with sqlite3.connect(path) as database:
            tables = database.execute("select name from sqlite_master").fetchall()
        database.close()
        assert tables == [("books",)]

    @pytest.mark.parametrize("left", [[], ["lock"], ["lock", "ledger.sqlite"]])
    def test_an_opening_that_was_cut_short_can_be_repeated(self, tmp_path, left):
        """At each moment a crash leaves what the next opening takes for its own."""
        for name in left:
            (tmp_path / name).write_text("")
        store = DirectoryStore(tmp_path)
        store.open()
        store.close()

    def test_a_directory_has_a_name(self):
        """An unset variable does not make the current directory a store."""
        with pytest.raises(InvalidInput, match="current directory"):
            DirectoryStore("")

    def test_a_directory_has_one_owner(self, store, make_store):
        """A second store on an open directory is refused, and says what to do."""
        with pytest.raises(StoreLocked, match="one server at a time"):
            make_store().open()
        store.payload(staged(store, 1, example_update()))

    def test_a_changed_file_is_found_by_its_digest(self, store, tmp_path):
        """A flipped bit in a staged part is Damaged on verification."""
        manifest = staged(store, 1, example_update())
        for path in (tmp_path / "run/staged").glob("*.arrow"):
            data = bytearray(path.read_bytes())
            position = data.find(b"\x00\x00\x80\x3f")  # 1.0, of the float32 tensor
            if position >= 0:
                data[position] ^= 1
                path.write_bytes(data)
        with pytest.raises(Damaged, match=manifest.digest):
            store.payload(manifest).verify()

    @pytest.mark.parametrize("content", ["", "{}", "not json", json.dumps({"tensors": 3})])
    def test_a_broken_manifest_is_damaged(self, store, tmp_path, content):
        """An aggregate whose manifest cannot be read says so."""
        close_with(store, 1, example_update())
        (tmp_path / "run/aggregates/1/manifest.json").write_text(content)
        with pytest.raises(Damaged, match="step 1"):
            store.aggregate_manifest(1)

    def test_a_place_that_is_no_directory_is_an_error(self, tmp_path):
        """A file where the directory should be is a StoreError that names it."""
        path = Path(tmp_path / "file")
        path.write_text("")
        with pytest.raises(StoreError, match=f"{path} is a file"):
            DirectoryStore(path).open()

    def test_a_ledger_of_another_kind_is_an_error(self, tmp_path):
        """A file that is no database is a StoreError, not a crash."""
        (tmp_path / "ledger.sqlite").write_text("no database" * 100)
        with pytest.raises(StoreError, match="ledger"):
            DirectoryStore(tmp_path).open()

    def test_a_contribution_needs_its_step(self, store):
        """What contradicts the order of opening and closing is refused whole, not kept."""
        manifest = staged(store, 2, example_update())
        with pytest.raises(StoreError, match="ledger"):
            store.commit([Contributed(2, contribution("a", manifest))], durable=False)
        close_with(store, 1, example_update())
        with pytest.raises(StoreError, match="the step has closed"):
            store.commit(
                [StepOpened(3, None, 1.0, None), StepOpened(1, None, 1.0, None)], durable=False
            )
        assert Ledger(store.run, Policy(), store.changes()).steps.open == {}

    @pytest.mark.parametrize(
        ("statement", "named"),
        [
            ("update contribution set weight = 4", "step 2, worker 'a'"),
            ("delete from contribution", "'contribution'"),
            ("insert into excluded values (1, 'c', 'late', 7)", "step 1, worker 'c'"),
            ("drop trigger a_closed_step_stays_closed", "definition of its tables"),
            ("drop table excluded", "definition of its tables"),
            ("update total set number = 7 where name = 'life'", "'life'"),
            ("delete from total where name = 'step'", "'step'"),
        ],
    )
    def test_a_ledger_that_was_changed_is_refused(self, store, reopen, tmp_path, statement, named):
        """Whatever another program did to rows or tables is noticed, and said where."""
        manifest = staged(store, 2, example_update())
        store.commit(
            [StepOpened(2, None, 1.0, None), Contributed(2, contribution("a", manifest))],
            durable=False,
        )
        close_with(store, 1, example_update())
        store.close()
        path = tmp_path / "run/ledger.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as database:
            change_as_nobody_should(database, statement)
        with pytest.raises(Damaged, match=f"{path} is damaged.*{named}"):
            reopen()

    def test_what_is_not_onefolds_is_left_alone(self, store, reopen, tmp_path):
        """Files and folders of other names than those that are given out are neither in the way
        nor removed."""
        strays = [
            tmp_path / "run" / place / name
            for place in ("staged", "aggregates")
            for name in (".DS_Store", "folder/file", "1-note.arrow", "01", "-0", "1.unfinished.txt")
        ]
        (tmp_path / f"run/staged/1-{'0' * 32}.arrow").mkdir()
        (tmp_path / "run/aggregates/5").write_text("a file where a directory would be")
        for path in strays:
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
        close_with(store, 1, example_update())
        again = reopen()
        again.prune(1)
        assert all(path.read_text() == "mine" for path in strays)
        assert (tmp_path / "run/aggregates/5").exists()

    def test_every_new_directory_is_synced(self, tmp_path):
        """The name of each directory that was made reaches the disk."""
        synced = []
        files = Files()
        files.sync_directory = synced.append
        store = DirectoryStore(tmp_path / "new/newer/run", files)
        store.open()
        store.close()
        made = [tmp_path / "new/newer/run", tmp_path / "new/newer", tmp_path / "new", tmp_path]
        assert set(made) <= set(synced)

    def test_pruned_is_written_before_it_is_removed(self, store):
        """A power cut leaves no aggregate that is said to be kept and is not there."""
        for step in (1, 2):
            close_with(store, step, example_update())
        store.commit([StepOpened(3, None, 1.0, None)], durable=False)
        levels = []

        def removed(_path):
            database = store._open_tables._database
            levels.append(
                (database.in_transaction, *database.execute("pragma synchronous").fetchone())
            )

        store.files.remove_tree = removed
        store.prune(1)
        assert levels == [(False, 2)]  # committed, fully synchronised

    @pytest.mark.parametrize(
        "read",
        [lambda store: store.aggregate_manifest(1), lambda store: store.aggregate_part(1, "0")],
        ids=["manifest", "part"],
    )
    def test_pruned_under_a_reader_is_expired(self, store, monkeypatch, read):
        """Who has been told that an aggregate is there may find its file gone: no damage."""
        close_with(store, 1, example_update())
        close_with(store, 2, example_update())
        outcome = store._open_tables.outcome

        def outcome_then_prune(step):
            monkeypatch.undo()
            told = outcome(step)
            store.prune(1)
            return told

        monkeypatch.setattr(store._open_tables, "outcome", outcome_then_prune)
        with pytest.raises(Expired):
            read(store)

    def test_where_it_is_does_not_depend_on_where_the_process_is(self, tmp_path, monkeypatch):
        """A relative path is that of the directory at the time; a later change moves nothing."""
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        store = DirectoryStore("run")
        store.open()
        monkeypatch.chdir("elsewhere")
        close_with(store, 1, example_update())
        assert store.aggregate_manifest(1) is not None
        store.close()
        store.open()
        assert store.aggregate_manifest(1) is not None
        store.close()
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_directory_that_was_moved_goes_on_where_it_is_put_back(self, store, tmp_path):
        """Whoever moves it is told so, and nothing is lost."""
        close_with(store, 1, example_update())
        (tmp_path / "run").rename(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="moved or removed: put it back"):
            close_with(store, 2, example_update())
        (tmp_path / "elsewhere").rename(tmp_path / "run")
        close_with(store, 2, example_update())
        assert store.aggregate_manifest(1) is not None

    @pytest.mark.parametrize("how", ["moved", "removed"])
    def test_another_store_at_its_old_place_is_left_alone(self, store, make_store, tmp_path, how):
        """Whoever moves or removes a directory that is open, and begins another run under its
        name, loses nothing of that run to the earlier store."""
        close_with(store, 1, example_update())
        late = staged(store, 2, example_update())
        if how == "moved":
            (tmp_path / "run").rename(tmp_path / "elsewhere")
        else:
            shutil.rmtree(tmp_path / "run")
        other = make_store()
        other.open()
        closed = close_with(other, 1, example_update(2.0))
        part = staged(other, 2, example_update(3.0))
        before = sorted((tmp_path / "run").rglob("*"))
        for touch in (
            lambda: close_with(store, 2, example_update()),
            lambda: store.write_aggregate(2, encode(example_update())),
            lambda: store.close_step(closing(2, late), late),
            lambda: store.commit([StepOpened(3, None, 1.0, None)], durable=True),
            lambda: store.payload(late),
            lambda: store.aggregate_manifest(1),
            lambda: store.aggregate_part(1, "0"),
            lambda: store.prune(0),
            lambda: store.run,
        ):
            with pytest.raises(StoreError, match="another stands in its place"):
                touch()
        store.discard(late.parts)
        store.close()
        assert sorted((tmp_path / "run").rglob("*")) == before
        other.payload(part).verify()
        other.close()
        other.open()
        assert other.aggregate_manifest(1) == closed
        Payload(closed, [other.aggregate_part(1, name)[1] for name in closed.parts]).verify()
        other.close()

    @pytest.mark.parametrize("moment", ["writing", "placing", "clearing", "pruning"])
    def test_another_store_that_begins_in_the_middle_is_left_alone(
        self, store, make_store, tmp_path, monkeypatch, moment
    ):
        """At whichever moment of a close the directory is moved and another run begins there."""
        other = make_store()
        finish = []

        def others_begin():
            (tmp_path / "run").rename(tmp_path / "elsewhere")
            other.open()
            close_with(other, 1, example_update(2.0))
            close_with(other, 3, example_update(3.0))
            finish.append(staged(other, 2, example_update(4.0)))
            written = other.write_aggregate(2, encode(example_update(4.0)))
            finish.append(manifest_of(example_update(4.0), [name for name, _ in written]))

        def then_others_begin(holder, name, when=lambda *_: True):
            call = getattr(holder, name)

            def called(*arguments):
                result = call(*arguments)
                if not finish and when(*arguments):
                    others_begin()
                return result

            monkeypatch.setattr(holder, name, called)

        def parts(update):
            for schema, batches in encode(update):
                yield schema, batches
                if not finish:
                    others_begin()

        close_with(store, 1, example_update())
        if moment == "writing":
            with pytest.raises(StoreError):
                store.write_aggregate(2, parts(example_update()))
        elif moment == "placing":
            synced = lambda path: path.suffix == ".unfinished"  # noqa: E731
            then_others_begin(store.files, "sync_directory", synced)
            with pytest.raises(StoreError, match="another stands in its place"):
                close_with(store, 3, example_update())
        elif moment == "clearing":
            then_others_begin(store._open_tables, "close_step")
            close_with(store, 2, example_update())
        else:
            then_others_begin(store._open_tables, "prune")
            store.prune(0)
        store.close()
        part, manifest = finish
        other.payload(part).verify()
        other.close_step(closing(2, manifest), manifest)
        for step in (1, 2, 3):
            closed = other.aggregate_manifest(step)
            Payload(closed, [other.aggregate_part(step, name)[1] for name in closed.parts]).verify()
        other.close()

    def test_reading_a_ledger_that_fails_is_an_error_of_its_own(self, store):
        """An error of SQLite is a StoreError that says so."""
        store._open_tables._database.execute("drop table closed")
        with pytest.raises(StoreError, match=r"the ledger .* cannot be read"):
            store.closed_step(1)
