"""What every store must do: subclass :class:`StoreContract` and give it a ``make_store``.

::

    class TestMine(StoreContract):
        @pytest.fixture
        def make_store(self):
            return MyStore
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from onefold.errors import Damaged, Expired, NoUpdate, ProtocolError
from onefold.ledger import (
    Closing,
    Contributed,
    Contribution,
    Contributor,
    Excluded,
    IncarnationSeen,
    Ledger,
    RefusalNoted,
    SignatureFixed,
    StepClosed,
    StepOpened,
    Unrecorded,
    WorkerJoined,
    WorkerLeft,
)
from onefold.parts import Manifest, Payload, encode, manifest_of
from onefold.policy import Policy
from onefold.store import Store
from onefold.update import Sparse, Update

__all__ = ["StoreContract"]


def example_update(scale: float = 1.0) -> Update:
    """An update of several kinds and dtypes."""
    return Update(
        {
            "dense": np.arange(6, dtype=np.float32).reshape(2, 3) * np.float32(scale),
            "rows": Sparse(np.array([4, -1]), np.ones((2, 3), np.float64) * scale),
            "nothing": np.zeros((0, 4), np.int8),
        },
        weight=3,
    )


def staged(store: Store, step: int, update: Update) -> Manifest:
    """The manifest of an update whose parts have been staged."""
    parts = [store.stage(step, part, durable=False) for part in encode(update)]
    return manifest_of(update, parts)


def contribution(worker: str, manifest: Manifest, arrival: int = 1) -> Contribution:
    """A contribution of staged parts."""
    return Contribution(
        worker=worker,
        digest=manifest.digest,
        signature=manifest.signature,
        weight=manifest.weight,
        incarnation=1,
        attempt=None,
        arrival=arrival,
        payload=json.dumps(manifest.to_json()),
        nonfinite="tensor 'dense', element 0: nan",
    )


def closing(step: int, manifest: Manifest) -> Closing:
    """A closing of a step with one contributor and one excluded worker."""
    return Closing(
        selected=(),
        closed=StepClosed(
            step=step,
            outcome="update",
            contributors=(Contributor("a", 1, None, 3, manifest.digest),),
            excluded=(Excluded("b", "nothing had come"),),
            closed_at=12.5,
        ),
        fixed=SignatureFixed(step, manifest.signature) if step == 1 else None,
    )


def close_with(store: Store, step: int, update: Update) -> Manifest:
    """Close a step whose aggregate is ``update``."""
    written = store.write_aggregate(step, encode(update))
    manifest = manifest_of(update, [name for name, _ in written])
    store.close_step(closing(step, manifest), manifest)
    return manifest


class StoreContract:
    """The contract suite."""

    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        """Makes stores that are the same place: one opened after another goes on."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, make_store: Callable[[], Store]) -> Iterator[Store]:
        """An open store."""
        store = make_store()
        store.open()
        yield store
        store.close()

    def test_staged_parts_are_what_was_staged(self, store: Store) -> None:
        """What is staged comes back with the same digest, and does not follow its source."""
        values = np.ones(5, np.float32)
        manifest = staged(store, 1, Update({"w": values}))
        values[:] = 7
        payload = store.payload(manifest)
        assert payload.digest() == manifest.digest
        assert payload.update().tensors["w"].tolist() == [1] * 5  # type: ignore[union-attr]

    def test_every_kind_of_tensor_survives(self, store: Store) -> None:
        """Dense, sparse with rows, and empty tensors of several dtypes keep every bit."""
        update = example_update()
        payload = store.payload(staged(store, 1, update))
        payload.verify()
        assert payload.update().signature == update.signature

    def test_discarded_parts_are_gone(self, store: Store) -> None:
        """A manifest whose parts were discarded is Damaged; discarding twice is harmless."""
        manifest = staged(store, 1, example_update())
        store.discard(manifest.parts)
        store.discard(manifest.parts)
        with pytest.raises(Damaged):
            store.payload(manifest)
        assert store.staged_bytes() == 0

    def test_a_part_is_staged_whole_or_not_at_all(self, store: Store) -> None:
        """A stream that breaks leaves nothing staged."""
        schema, batches = next(encode(example_update()))

        def broken() -> Iterator[object]:
            yield next(iter(batches))
            raise ConnectionResetError("the worker is gone")

        with pytest.raises(Exception, match="the worker is gone"):
            store.stage(1, (schema, broken()), durable=False)
        assert store.staged_bytes() == 0

    @pytest.mark.parametrize("name", ["../../etc/passwd", "", "x", "1-" + "0" * 31])
    def test_a_name_that_was_never_given_reads_nothing(self, store: Store, name: str) -> None:
        """Names of parts come from the network; a made-up one is refused, never followed."""
        manifest = staged(store, 1, example_update()).with_parts([name])
        with pytest.raises((Damaged, ProtocolError)):
            store.payload(manifest)

    def test_a_fact_is_what_was_said_first(self, store: Store) -> None:
        """Said again, it stays; facts do not mix."""
        assert store.fact("colour", "red") == "red"
        assert store.fact("colour", "blue") == "red"
        assert store.fact("size", "") == ""

    def test_changes_rebuild_the_same_ledger(self, store: Store) -> None:
        """A ledger made from the kept changes answers as the one that made them."""
        manifest = staged(store, 2, example_update())
        store.commit(
            [
                WorkerJoined("b", "life-1", 1),
                WorkerJoined("a", "life-2", 1),
                WorkerJoined("a", "life-3", 2),
                IncarnationSeen("c", 4),
                WorkerLeft("b"),
                StepOpened(2, ("a",), 100.0, 160.0, 1),
                Contributed(2, contribution("a", manifest)),
                RefusalNoted(2, "c", "refused: mismatch"),
            ],
            durable=True,
        )
        ledger = Ledger(store.run, Policy(roster=3, deadline_seconds=60), store.changes())
        assert ledger.members.seated() == ("b", "a")
        assert ledger.members.has_left("b")
        assert [ledger.members.incarnation(worker) for worker in "abc"] == [2, 1, 4]
        assert ledger.join("a", "life-2")[0].incarnation == 1
        open_step = ledger.steps.open[2]
        assert open_step.opened == StepOpened(2, ("a",), 100.0, 160.0, 1)
        assert open_step.standing == {"a": contribution("a", manifest)}
        assert open_step.refusals == {"c": "refused: mismatch"}

    def test_a_later_contribution_takes_the_place_of_the_earlier(self, store: Store) -> None:
        """One contribution is kept for (step, worker), and none after it was unrecorded."""
        first, second = (staged(store, 2, example_update(scale)) for scale in (1.0, 2.0))
        store.commit(
            [
                StepOpened(2, None, 1.0, None),
                Contributed(2, contribution("a", first)),
                Contributed(2, contribution("a", second, arrival=2)),
            ],
            durable=False,
        )
        ledger = Ledger(store.run, Policy(), store.changes())
        assert ledger.steps.open[2].standing["a"].digest == second.digest
        store.commit([Unrecorded(2, "a", "lost")], durable=False)
        ledger = Ledger(store.run, Policy(), store.changes())
        assert ledger.steps.open[2].standing == {}
        assert ledger.steps.open[2].refusals == {"a": "lost"}

    def test_a_closed_step_is_told_in_full(self, store: Store) -> None:
        """What a step closed with comes back as it was; its contributions are gone."""
        manifest = staged(store, 1, example_update())
        store.commit(
            [StepOpened(1, None, 1.0, None), Contributed(1, contribution("a", manifest))],
            durable=False,
        )
        aggregate = close_with(store, 1, example_update(2.0))
        assert store.closed_step(1) == closing(1, aggregate).closed
        assert store.closed_step(2) is None
        assert store.staged_bytes() == 0
        ledger = Ledger(store.run, Policy(), store.changes())
        assert ledger.steps.open == {}
        assert ledger.steps.highest_closed == 1

    def test_an_aggregate_is_what_was_written(self, store: Store) -> None:
        """The aggregate's parts make up its manifest, and have its digest."""
        close_with(store, 1, example_update(2.0))
        manifest = store.aggregate_manifest(1)
        assert manifest is not None
        parts = [store.aggregate_part(1, part)[1] for part in manifest.parts]
        Payload(manifest, parts).verify()
        with pytest.raises(Damaged):
            store.aggregate_part(1, "17")

    def test_an_aggregate_is_written_again_after_a_failure(self, store: Store) -> None:
        """Writing the same step's aggregate again starts afresh."""
        store.write_aggregate(1, encode(example_update(9.0)))
        manifest = close_with(store, 1, Update({"w": np.ones(3)}))
        parts = [store.aggregate_part(1, part)[1] for part in manifest.parts]
        Payload(manifest, parts).verify()

    def test_a_skipped_step_has_no_manifest(self, store: Store) -> None:
        """A skipped step is closed and has no numbers."""
        closed = StepClosed(5, "skipped", (), (Excluded("a", "nan"),), 1.0)
        store.close_step(Closing((), closed), None)
        assert store.closed_step(5) == closed
        assert store.aggregate_manifest(5) is None

    def test_what_has_not_closed_has_no_aggregate(self, store: Store) -> None:
        """What was written for it can be read by nobody before the step is closed."""
        (name, _), *_ = store.write_aggregate(1, encode(example_update()))
        for step in (1, 9):
            with pytest.raises(Damaged, match=f"step {step} has no aggregate"):
                store.aggregate_part(step, name)
            with pytest.raises(Damaged, match=f"step {step} has no aggregate"):
                store.aggregate_manifest(step)
        store.close_step(Closing((), StepClosed(5, "skipped", (), (), 1.0)), None)
        with pytest.raises(NoUpdate):
            store.aggregate_part(5, name)

    def test_the_first_signature_to_be_fixed_stays(self, store: Store) -> None:
        """Steps that close at the same time may both bring one."""
        update = example_update()
        for step in (1, 2):
            closed = StepClosed(step, "update", (), (), 1.0)
            fixed = SignatureFixed(step, update.signature)
            store.close_step(Closing((), closed, fixed), None)
        kept = [change for change in store.changes() if isinstance(change, SignatureFixed)]
        assert kept == [SignatureFixed(1, update.signature)]

    def test_pruning_keeps_the_newest_and_every_record(self, store: Store) -> None:
        """Pruned aggregates are Expired; what the steps closed with is still told."""
        for step in (1, 2, 3):
            close_with(store, step, example_update())
        store.prune(1)
        for step in (1, 2):
            with pytest.raises(Expired):
                store.aggregate_manifest(step)
            with pytest.raises(Expired):
                store.aggregate_part(step, "0")
            assert store.closed_step(step) is not None
        assert store.aggregate_manifest(3) is not None
