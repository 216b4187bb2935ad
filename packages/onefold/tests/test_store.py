"""The stores: the contract suite on each, and what only a directory does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onefold.errors import Damaged, StoreError, StoreLocked
from onefold.ledger import Contributed, Ledger, StepOpened
from onefold.parts import encode
from onefold.policy import Policy
from onefold.store import DirectoryStore, MemoryStore
from onefold.testing.stores import StoreContract, close_with, contribution, example_update, staged


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
        (tmp_path / "run/staged/2-half.unfinished").write_text("half")
        again = reopen()
        with pytest.raises(Damaged):
            again.payload(orphan)
        assert list((tmp_path / "run/staged").iterdir()) == []
        assert list((tmp_path / "run/aggregates").iterdir()) == []

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
        with pytest.raises(StoreError, match=str(path)):
            DirectoryStore(path).open()

    def test_a_ledger_of_another_kind_is_an_error(self, tmp_path):
        """A file that is no database is a StoreError, not a crash."""
        (tmp_path / "ledger.sqlite").write_text("no database" * 100)
        with pytest.raises(StoreError, match="ledger"):
            DirectoryStore(tmp_path).open()
