"""What the aggregator keeps and drops of what is sent, and what it makes of a disk that fails."""

from __future__ import annotations

import dataclasses
import errno
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from onefold import aggregator as aggregator_module
from onefold.aggregator import Aggregator
from onefold.errors import Damaged, InvalidUpdate, NotYet, ProtocolError, StoreError
from onefold.ledger import Joined
from onefold.parts import Manifest, encode, manifest_of
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.store import unnamed
from onefold.testing.support import Clock, number, one, reasons, who
from onefold.update import Update
from onefold.wire import decode_answer, encode_answer

AB = Policy(roster=["a", "b"])
SEVERAL = Update({"w": np.arange(6.0), "n": np.array([1, 2])})
"""Of two dtypes, hence in two parts."""

Open = Callable[..., Aggregator]


@pytest.fixture(params=["memory", "directory"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens an aggregator that is shut down at the end."""
    with ExitStack() as stack:

        def opened(policy: Policy = AB, **options: object) -> Aggregator:
            directory = None if request.param == "memory" else tmp_path / "run"
            made = Aggregator(directory, policy, **options)  # type: ignore[arg-type]
            return stack.enter_context(made)

        yield opened


def staged_bytes(aggregator: Aggregator) -> int:
    return aggregator.status().staged_bytes


def stage(
    aggregator: Aggregator, step: int, worker: str, update: Update, **who: object
) -> Manifest:
    """Stage the parts of an update as a server does; its manifest."""
    parts = [
        aggregator.stage(step, schema, batches, worker=worker, **who)  # type: ignore[arg-type]
        for schema, batches in encode(update)
    ]
    return manifest_of(update, parts)


class TestNotKept:
    """A part whose update would be refused whatever is in it is read and not kept."""

    @pytest.mark.parametrize(
        ("status", "step", "worker", "incarnation", "run"),
        [
            (Status.OTHER_RUN, 8, "a", 2, "another"),
            (Status.UNKNOWN_WORKER, 8, "c", 2, None),
            (Status.UNKNOWN_WORKER, 8, "a", 2**62 + 1, None),
            (Status.FENCED, 8, "a", 1, None),
            (Status.CLOSED, 7, "a", 2, None),
            (Status.TOO_FAR, 10, "a", 2, None),
        ],
        ids=str,
    )
    def test_it_is_read_to_its_end(
        self,
        opened: Open,
        status: Status,
        step: int,
        worker: str,
        incarnation: int,
        run: str | None,
    ) -> None:
        """The commit is answered as if it had been kept, and counted among the receipts."""
        aggregator = opened()
        for life in ("1", "2"):
            aggregator.join("a", life)
        for each in ("a", "b"):
            aggregator.push(7, each, one(1))
        aggregator.push(8, "b", one(1))
        before = staged_bytes(aggregator)
        schema, batches = next(encode(one(5)))
        sender = {"worker": worker, "incarnation": incarnation, "run": run}
        part = aggregator.stage(step, schema, batches, **sender)
        assert next(iter(batches), None) is None
        assert staged_bytes(aggregator) == before
        receipt = aggregator.commit(
            *(step, worker, manifest_of(one(5), [part])),
            attempt=0,
            incarnation=incarnation,
            run=run,
        )
        assert receipt.status is status
        assert aggregator.status().receipts[status] == 1

    def test_what_came_to_be_refused_meanwhile_is_dropped(self, opened: Open) -> None:
        """The step closes while a part for it comes in."""
        aggregator = opened()
        aggregator.push(7, "a", one(2), attempt=0)
        schema, batches = next(encode(one(5)))

        def slow() -> Iterator[pa.RecordBatch]:
            yield from batches
            aggregator.close(7)

        part = aggregator.stage(7, schema, slow(), worker="b")
        assert staged_bytes(aggregator) == 0
        late = aggregator.commit(7, "b", manifest_of(one(5), [part]), attempt=0)
        assert late.status is Status.CLOSED

    def test_what_can_be_accepted_later_is_asked_for_again(self, opened: Open) -> None:
        """A part was too far ahead when it came and is not when it is committed: Damaged."""
        aggregator = opened(Policy(open_steps_max=1))
        aggregator.push(7, "a", one(2), attempt=0)
        manifest = stage(aggregator, 8, "a", one(5))
        aggregator.close(7)
        with pytest.raises(Damaged, match="send all parts"):
            aggregator.commit(8, "a", manifest, attempt=0)
        again = stage(aggregator, 8, "a", one(5))
        assert aggregator.commit(8, "a", again, attempt=0).status is Status.ACCEPTED

    def test_who_sends_what_cannot_be_used_is_told_at_once(self, opened: Open) -> None:
        """No name, or no step: it raises, and nothing is kept."""
        aggregator = opened()
        for step, worker in ((7, ""), (2**62 + 1, "a")):
            with pytest.raises(InvalidUpdate):
                stage(aggregator, step, worker, one(5))
        assert staged_bytes(aggregator) == 0


class TestDropped:
    """What is never committed does not pile up, and what stands is never dropped."""

    def test_parts_that_nobody_commits_expire(self, opened: Open) -> None:
        """Ten minutes after the last sign of life of their sender, and not before."""
        clock = Clock()
        aggregator = opened(clock=clock)
        manifest = stage(aggregator, 7, "a", SEVERAL)
        kept = staged_bytes(aggregator)
        clock.advance(unnamed.UNNAMED_SECONDS_MAX - 1)
        aggregator.tick()
        assert staged_bytes(aggregator) == kept > 0
        clock.advance(1)
        aggregator.tick()
        assert staged_bytes(aggregator) == 0
        with pytest.raises(Damaged):
            aggregator.commit(7, "a", manifest, attempt=0)

    def test_parts_expire_whatever_becomes_of_the_clock(self, opened: Open) -> None:
        """What came while it was ahead grows old once it is right, as what came before does."""
        clock = Clock()
        aggregator = opened(clock=clock)
        stage(aggregator, 7, "a", SEVERAL)
        clock.advance(86_400)
        stage(aggregator, 7, "b", SEVERAL)
        clock.advance(-86_400)
        aggregator.tick()
        stage(aggregator, 7, "a", SEVERAL)
        clock.advance(unnamed.UNNAMED_SECONDS_MAX - 1)
        aggregator.tick()
        assert [aggregator.uncommitted_parts(worker) > 0 for worker in "ab"] == [True, True]
        clock.advance(1)
        aggregator.tick()
        assert staged_bytes(aggregator) == 0

    def test_a_slow_sender_is_waited_for(self, opened: Open) -> None:
        """As long as blocks of it come in, its earlier parts stay, however long it takes."""
        clock = Clock()
        aggregator = opened(clock=clock)

        def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                clock.advance(unnamed.UNNAMED_SECONDS_MAX - 1)
                aggregator.tick()
                yield batch

        parts = [
            aggregator.stage(7, schema, slow(batches), worker="a")
            for schema, batches in encode(SEVERAL)
        ]
        clock.advance(unnamed.UNNAMED_SECONDS_MAX - 1)
        receipt = aggregator.commit(7, "a", manifest_of(SEVERAL, parts), attempt=0)
        assert receipt.status is Status.ACCEPTED

    def test_what_stands_does_not_expire(self, opened: Open) -> None:
        """Contributions stay as long as their step is open, also after a failed write."""
        clock = Clock()
        aggregator = opened(clock=clock)
        aggregator.push(7, "a", one(2), attempt=0)
        aggregator.commit(7, "b", stage(aggregator, 7, "b", one(5)), attempt=0)
        assert number(aggregator.pull(7)) == 7
        aggregator.push(8, "a", one(3), attempt=0)
        clock.advance(unnamed.UNNAMED_SECONDS_MAX)
        aggregator.tick()
        assert number(aggregator.close(8)) == 3

    def test_a_write_that_was_interrupted_keeps_its_parts(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Written down but never answered, an update stands, and its parts stay."""
        clock = Clock()
        aggregator = opened(clock=clock)
        commit = aggregator._store.commit

        def interrupted(*arguments: object, **named: object) -> None:
            commit(*arguments, **named)  # type: ignore[arg-type]
            raise KeyboardInterrupt

        monkeypatch.setattr(aggregator._store, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            aggregator.push(7, "a", one(2), attempt=0)
        monkeypatch.undo()
        clock.advance(unnamed.UNNAMED_SECONDS_MAX)
        aggregator.tick()
        assert number(aggregator.close(7)) == 2

    def test_a_push_that_breaks_off_leaves_nothing(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of an update whose second part cannot be kept the first is not kept either."""
        aggregator = opened()
        keep, kept = aggregator._store.stage, []

        def full_at_the_second(*arguments: object, **named: object) -> str:
            if kept:
                raise StoreError("the disk is full")
            kept.append(keep(*arguments, **named))  # type: ignore[arg-type]
            return kept[0]

        monkeypatch.setattr(aggregator._store, "stage", full_at_the_second)
        with pytest.raises(StoreError, match="full"):
            aggregator.push(7, "a", SEVERAL)
        assert staged_bytes(aggregator) == 0

    @pytest.mark.parametrize("fault", ["a part is missing", "another digest"])
    def test_a_refused_commit_drops_its_parts(self, opened: Open, fault: str) -> None:
        """Also those that are as they should be, since all of them are to be sent again."""
        aggregator = opened()
        manifest = stage(aggregator, 7, "a", SEVERAL)
        if fault == "another digest":
            manifest = dataclasses.replace(manifest, digest="0" * 32)
        else:
            aggregator.discard(manifest.parts[:1])
        assert staged_bytes(aggregator) > 0
        with pytest.raises((ProtocolError, Damaged)):
            aggregator.commit(7, "a", manifest, attempt=0)
        assert staged_bytes(aggregator) == 0

    def test_a_commit_has_a_say_about_its_own_parts_only(self, opened: Open) -> None:
        """Naming what another sent, for this step or another, neither takes nor drops it."""
        aggregator = opened(Policy())
        theirs = stage(aggregator, 7, "a", one(2))
        standing = stage(aggregator, 8, "a", one(3))
        aggregator.commit(8, "a", standing, attempt=0)
        for step, worker, manifest in ((7, "b", theirs), (8, "a", theirs), (8, "b", standing)):
            with pytest.raises(Damaged, match="not here"):
                aggregator.commit(step, worker, manifest, attempt=1)
        aggregator.discard(standing.parts)
        assert aggregator.commit(7, "a", theirs, attempt=0).status is Status.ACCEPTED
        assert [number(aggregator.close(step)) for step in (7, 8)] == [2, 3]


class TestUploads:
    """An upload and the end of the aggregator."""

    def test_what_comes_in_at_a_shutdown_is_not_kept(self, tmp_path: Path) -> None:
        """The next owner of the directory finds nothing of it, and the sender is told."""
        aggregator, other = Aggregator(tmp_path / "run").open(), Aggregator(tmp_path / "run")
        schema, batches = next(encode(one(5)))

        def slow() -> Iterator[pa.RecordBatch]:
            aggregator.shutdown()
            other.open()
            yield from batches

        with pytest.raises(StoreError, match="closed while a part came in"):
            aggregator.stage(7, schema, slow())
        assert list((tmp_path / "run/staged").iterdir()) == []
        other.shutdown()


def part_file(aggregator: Aggregator, directory: Path, step: int, worker: str) -> Path:
    standing = aggregator._register.standing(step, worker)
    assert standing is not None
    (part,) = Manifest.from_json(json.loads(standing.payload)).parts
    return directory / "run/staged" / f"{part}.arrow"


class TestFailingDisk:
    """What cannot be read now is not taken for damage, and damage is told."""

    @pytest.fixture
    def unreadable(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        """Lets every opening of a part fail, until ``monkeypatch.undo``."""

        def unreadable() -> None:
            def failing(path: str) -> None:
                raise OSError(errno.EMFILE, "Too many open files", path)

            monkeypatch.setattr(pa, "memory_map", failing)

        return unreadable

    def test_a_passing_failure_takes_nothing_away(
        self, tmp_path: Path, unreadable: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At a close and at a start it is a StoreError; then everything is there."""
        with Aggregator(tmp_path / "run") as aggregator:
            for worker in ("a", "b"):
                aggregator.push(7, worker, one(2), attempt=0)
            unreadable()
            with pytest.raises(StoreError, match="Too many open files") as caught:
                aggregator.close(7)
            assert caught.type is StoreError
        with pytest.raises(StoreError, match="Too many open files") as caught:
            Aggregator(tmp_path / "run").open()
        assert caught.type is StoreError
        monkeypatch.undo()
        with Aggregator(tmp_path / "run") as aggregator:
            assert who(aggregator.close(7)) == ["a", "b"]

    @pytest.mark.parametrize("roster", [None, ["a", "b", "c"]], ids=["no roster", "roster"])
    @pytest.mark.parametrize("when", ["at the close", "at the start"])
    def test_a_lost_contribution_is_told(
        self, tmp_path: Path, roster: list[str] | None, when: str
    ) -> None:
        """In the status while it is waited for, and in the aggregate if it never came again."""
        policy = Policy(roster=roster)
        told = "accepted as attempt 3, then its numbers were lost; waiting for it to be sent again"
        aggregator = Aggregator(tmp_path / "run", policy).open()
        aggregator.push(7, "a", one(2), attempt=3)
        aggregator.push(7, "b", one(5), attempt=0)
        path = part_file(aggregator, tmp_path, 7, "a")
        if when == "at the start":
            aggregator.shutdown()
        path.unlink()
        aggregator.open()
        if when == "at the close":
            with pytest.raises(NotYet):
                aggregator.close(7)
        assert aggregator.status().open_steps[0].problem == f"worker 'a': {told}"
        aggregate = aggregator.close(7)
        assert who(aggregate) == ["b"]
        assert reasons(aggregate)["a"] == told
        aggregator.shutdown()

    def test_a_lost_contribution_that_came_again_counts(self, tmp_path: Path) -> None:
        """Nothing is told of it then."""
        with Aggregator(tmp_path / "run") as aggregator:
            aggregator.push(7, "a", one(2), attempt=3)
            part_file(aggregator, tmp_path, 7, "a").unlink()
            with pytest.raises(NotYet):
                aggregator.close(7)
            assert aggregator.push(7, "a", one(2), attempt=3).status is Status.ACCEPTED
            assert aggregator.status().open_steps[0].problem is None
            aggregate = aggregator.close(7)
            assert (number(aggregate), aggregate.excluded) == (2, ())

    def test_a_rotten_aggregate_is_not_given_out(self, tmp_path: Path) -> None:
        """One flipped bit in a closed aggregate is Damaged in a local pull too."""
        with Aggregator(tmp_path / "run") as aggregator:
            aggregator.push(7, "a", one(1234.5))
            assert number(aggregator.close(7)) == 1234.5
            path = tmp_path / "run/aggregates/7/0.arrow"
            data = bytearray(path.read_bytes())
            data[data.index(np.array([1234.5]).tobytes()) + 6] ^= 16
            path.write_bytes(data)
            with pytest.raises(Damaged, match="step 7 is not what was written"):
                aggregator.pull(7)


class TestUnexpected:
    """An error that nobody foresaw is that of one step."""

    def test_it_is_told_who_waits_for_the_step(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Who pushes to another is answered, and the log has it once, with its traceback."""
        aggregator = opened()

        def failing(*_arguments: object, **_named: object) -> None:
            raise MemoryError("too large")

        monkeypatch.setattr(aggregator_module, "write_aggregate", failing)
        for worker in ("a", "b"):
            assert aggregator.push(7, worker, one(1), attempt=0).status is Status.ACCEPTED
        assert aggregator.push(8, "a", one(1), attempt=0).status is Status.ACCEPTED
        with pytest.raises(StoreError, match="step 7 could not be closed: MemoryError: too large"):
            aggregator.pull(7)
        (record,) = caplog.records
        assert record.exc_info
        monkeypatch.undo()
        assert number(aggregator.pull(7)) == 2

    def test_a_failure_to_prune_does_not_undo_a_close(
        self, opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The step is closed and has no problem; the log has it, and the next close prunes."""

        def full(_keep_steps: int) -> None:
            raise StoreError("the disk is full")

        aggregator = opened(Policy(keep_steps=1))
        monkeypatch.setattr(aggregator._store, "prune", full)
        aggregator.push(7, "a", one(2))
        assert number(aggregator.close(7)) == 2
        assert "the disk is full" in caplog.text


class TestBounds:
    """Numbers at the ends of their ranges."""

    def test_the_step_after_the_last_can_be_told(self, opened: Open) -> None:
        """A worker that joins after the highest step there is gets an answer it can read."""
        aggregator = opened(Policy())
        with pytest.raises(InvalidUpdate, match="2\\^62"):
            aggregator.push(2**62 + 1, "a", one(1))
        aggregator.push(2**62, "a", one(1))
        aggregator.close(2**62)
        joined = aggregator.join("a", "life")
        assert decode_answer(encode_answer(joined), Joined) == joined

    def test_joins_go_on_after_the_highest_incarnation(self, opened: Open) -> None:
        """One that no join gave leaves room for all that joins will give."""

        def push(incarnation: int) -> Receipt:
            return aggregator.push(7, "a", one(1), attempt=0, incarnation=incarnation)

        aggregator = opened()
        assert push(2**62 + 1).status is Status.UNKNOWN_WORKER
        assert push(2**62).status is Status.ACCEPTED
        joined = aggregator.join("a", "life")
        assert joined.incarnation == 2**62 + 1
        assert decode_answer(encode_answer(joined), Joined) == joined
        assert push(joined.incarnation).status is Status.REPLACED
