"""How much a server takes: each limit is told by name, and what is refused leaves nothing."""

from __future__ import annotations

import dataclasses
import math
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight
from secured import AB, BOUND_SECONDS, CERTIFICATES, TLS, Secured, serving

from onefold.aggregator import Aggregator
from onefold.errors import GaveUp, InvalidInput, OverLimit, StagingFull
from onefold.ledger import Joined
from onefold.parts import encode, manifest_of
from onefold.receipt import Receipt
from onefold.server import Limits, Security
from onefold.server.connections import end_connection
from onefold.server.service import _Incoming
from onefold.server.uploads import Uploads
from onefold.store.unnamed import UNNAMED_SECONDS_MAX
from onefold.testing.support import Clock, number, one, wait_in_thread
from onefold.update import Sparse, Update
from onefold.wire import Commit, Join, Put, Staged, encode_command

MANY = Update({"w": np.arange(6.0), "n": np.array([1, 2]), "s": Sparse([3, 1], np.ones(2))})


def wait_until(condition: object, what: str) -> None:
    """Ask again and again, for a bounded time."""
    assert callable(condition)
    waiting = threading.Event()
    for _ in range(int(BOUND_SECONDS / 0.02)):
        if condition():
            return
        waiting.wait(0.02)
    raise AssertionError(f"not within {BOUND_SECONDS} s: {what}")


class Sender:
    """Sends the parts of updates, each once."""

    def __init__(self, secured: Secured, worker: str) -> None:
        self.channel = secured.channel()
        joined = self.channel.act(Join(worker, worker), Joined, seconds=BOUND_SECONDS)
        self.putting = Put(joined.run, worker, joined.incarnation, 7, 1)

    def stage(self, update: Update) -> list[str]:
        return [
            self.channel.put(
                self.putting, (schema, list(batches)), Staged, seconds=BOUND_SECONDS
            ).part
            for schema, batches in encode(update)
        ]

    def commit(self, update: Update, parts: list[str]) -> Receipt:
        names = ("run", "worker", "incarnation", "step", "attempt")
        who = {name: getattr(self.putting, name) for name in names}
        command = Commit(**who, manifest=manifest_of(update, parts))
        return self.channel.act(command, Receipt, seconds=BOUND_SECONDS)


@pytest.fixture(params=["memory", "directory"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where the server keeps what it has."""
    return tmp_path / "run" if request.param == "directory" else None


def nothing_is_left(secured: Secured, directory: Path | None) -> None:
    """No part, no file, and a whole step goes as ever."""
    assert secured.aggregator.staged_bytes() == 0
    if directory is not None:
        assert list((directory / "staged").iterdir()) == []
    a, b = secured.client("a"), secured.client("b")
    a.push(8, one(2))
    b.push(8, one(5))
    assert number(a.pull(8)) == 7


SPARSE = Update({"s": Sparse(np.arange(10), np.ones(10))})
TOO_MUCH = {
    "tensors": (Limits(tensors_max=2), MANY, "tensors_max"),
    "name": (Limits(name_bytes_max=5), Update({"ÄÄÄ": np.ones(1)}), "name_bytes_max"),
    "entries": (Limits(entries_max=9), SPARSE, "entries_max"),
    "part": (Limits(part_bytes_max=1000), Update.of(np.ones(125)), "part_bytes_max"),
}
JUST_FITS = {
    "tensors": (Limits(tensors_max=3), MANY),
    "name": (Limits(name_bytes_max=6), Update({"ÄÄÄ": np.ones(1)})),
    "entries": (Limits(entries_max=10), SPARSE),
    "part": (Limits(part_bytes_max=2000), Update.of(np.ones(125))),
}


def with_schema_metadata(writer: flight.FlightStreamWriter, batch: pa.RecordBatch) -> None:
    writer.write_batch(batch)


def with_batch_metadata(writer: flight.FlightStreamWriter, batch: pa.RecordBatch) -> None:
    writer.write_with_metadata(batch, b"x" * 1000)


def with_metadata_alone(writer: flight.FlightStreamWriter, batch: pa.RecordBatch) -> None:
    writer.write_batch(batch)
    writer.write_metadata(b"x" * 1000)


def put(
    client: flight.FlightClient,
    descriptor: flight.FlightDescriptor,
    batch: pa.RecordBatch,
    write: Callable[[flight.FlightStreamWriter, pa.RecordBatch], None],
) -> None:
    writer, answers = client.do_put(descriptor, batch.schema)
    with writer:
        write(writer, batch)
        writer.done_writing()
        answers.read()


def batch_of_one() -> pa.RecordBatch:
    _, batches = next(encode(Update.of(np.ones(1))))
    return next(iter(batches))


class TestOneUpdate:
    @pytest.mark.parametrize("what", TOO_MUCH)
    def test_too_much_is_refused_for_good(self, directory: Path | None, what: str) -> None:
        """At once, by the limit's name, to a client that would try for ever; nothing is left."""
        limits, update, name = TOO_MUCH[what]
        with serving(directory, limits=limits) as secured:
            client = secured.client("a", seconds=1e6)
            with pytest.raises(OverLimit, match=rf"worker 'a', step 7: .*{name}.*raise the limit"):
                wait_in_thread(lambda: client.push(7, update)).result()
            nothing_is_left(secured, directory)

    @pytest.mark.parametrize("what", JUST_FITS)
    def test_what_just_fits_is_taken(self, directory: Path | None, what: str) -> None:
        """A limit is the most that is taken, not the least that is refused."""
        limits, update = JUST_FITS[what]
        with serving(directory, limits=limits) as secured:
            assert secured.client("a").push(7, update).stands

    @pytest.mark.parametrize(
        "write", [with_schema_metadata, with_batch_metadata, with_metadata_alone]
    )
    def test_metadata_is_not_taken(
        self,
        directory: Path | None,
        write: Callable[[flight.FlightStreamWriter, pa.RecordBatch], None],
    ) -> None:
        """It would be kept, or read to its end, without being counted as what a part holds."""
        batch = batch_of_one()
        if write is with_schema_metadata:
            batch = batch.replace_schema_metadata({"note": "x" * 1000})
        with serving(directory) as secured:
            putting = Sender(secured, "a").putting
            descriptor = flight.FlightDescriptor.for_command(encode_command(putting))
            client = flight.FlightClient(secured.server.address)
            with pytest.raises(flight.FlightError, match="ProtocolError"):
                put(client, descriptor, batch, write)
            assert secured.aggregator.uncommitted_parts("a") == 0
            nothing_is_left(secured, directory)

    @pytest.mark.parametrize("offsets", [[2**62, 2**62 + 1], [0, 2**62], [-1, 1], [1, 0]])
    def test_offsets_that_lead_nowhere_are_not_followed(self, offsets: list[int]) -> None:
        """Not even to size the batch up: Arrow ends the process where one leads out of it."""
        schema, batches = next(encode(Update.of(np.ones(1000))))
        written = next(iter(batches)).serialize().to_pybytes()
        before, _, after = written.rpartition(np.array([0, 1000]).tobytes())
        lying = before + np.array(offsets).tobytes() + after
        batch = pa.ipc.read_record_batch(pa.py_buffer(lying), schema)
        chunks = [SimpleNamespace(data=batch, app_metadata=None)]
        with Aggregator(policy=AB) as aggregator:
            uploads = Uploads(Limits(), aggregator)
            with uploads.admit("a", 7, "nobody") as upload:
                incoming = _Incoming(chunks, SimpleNamespace(is_cancelled=bool), upload)
                with pytest.raises(pa.ArrowInvalid):
                    list(incoming.batches())
                incoming.pass_over()

    def test_a_part_without_a_batch_asks_for_room(self, directory: Path | None) -> None:
        """Where there is none, it is not kept either."""
        schema, batches = next(encode(Update.of(np.ones(100))))
        with serving(directory, limits=Limits(staged_bytes_max=100)) as secured:
            sender = Sender(secured, "a")
            secured.aggregator.stage(7, schema, batches)
            with pytest.raises(StagingFull):
                sender.channel.put(sender.putting, (schema, []), Staged, seconds=BOUND_SECONDS)

    def test_a_part_of_nothing_takes_room_too(self, directory: Path | None) -> None:
        """Record batches without a number are written, so they are counted."""
        with serving(directory, limits=Limits(part_bytes_max=10_000)) as secured:
            sender = Sender(secured, "a")
            schema, _ = next(encode(one(1)))
            empty = pa.RecordBatch.from_pylist([], schema=schema)
            with pytest.raises(OverLimit, match="part_bytes_max"):
                sender.channel.put(
                    sender.putting, (schema, [empty] * 1000), Staged, seconds=BOUND_SECONDS
                )
            nothing_is_left(secured, directory)

    def test_who_sends_for_ever_is_not_listened_to(self, directory: Path | None) -> None:
        """Reading stops at the limit: what is sent after it is not waited for, nor taken."""
        with serving(directory, limits=Limits(part_bytes_max=4 << 20)) as secured:
            sender = Sender(secured, "a")
            schema, batches = next(encode(Update.of(np.ones(1 << 17))))
            (batch,) = batches
            sent = 0

            def for_ever() -> Iterator[pa.RecordBatch]:
                nonlocal sent
                while sent < 10_000:  # ten GB, were they all taken
                    sent += 1
                    yield batch

            with pytest.raises(OverLimit):
                sender.channel.put(sender.putting, (schema, for_ever()), Staged, seconds=600)
            assert sent < 1000
            assert secured.aggregator.status().received_bytes <= 4 << 20
            nothing_is_left(secured, directory)

    def test_a_commit_of_others_parts_takes_none_away(self, directory: Path | None) -> None:
        """What a refused commit names of another worker's stays, and counts."""
        with serving(directory, limits=Limits(tensors_max=3)) as secured:
            a, b = Sender(secured, "a"), Sender(secured, "b")
            parts = a.stage(MANY)
            more = Update({**MANY.tensors, "more": np.ones(1)})
            with pytest.raises(OverLimit):
                b.commit(more, parts)
            assert a.commit(MANY, parts).stands

    @pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Limits)])
    def test_a_limit_is_a_positive_number(self, field: str) -> None:
        values: list[object] = [0, -1, True, "1", math.nan]
        for value in values + ([] if field == "staged_bytes_max" else [None]):
            with pytest.raises(InvalidInput, match=field):
                Limits(**{field: value})


class TestRoom:
    def test_full_is_waited_for(self, directory: Path | None) -> None:
        """A push for which there is no room goes on by itself once a step has closed."""
        update = Update.of(np.ones(1000))
        with serving(directory, limits=Limits(staged_bytes_max=22_000)) as secured:
            a = secured.client("a")
            assert a.push(0, update).stands
            assert a.push(1, update).stands
            with pytest.raises(GaveUp, match=r"worker 'b', step 1: .*staged_bytes_max"):
                secured.client("b", seconds=0.5).push(1, update)
            b = secured.client("b")
            third = wait_in_thread(lambda: b.push(1, update))
            secured.aggregator.close(0)
            assert third.result().stands
            assert secured.aggregator.pull(1).count == 2

    def test_what_is_on_its_way_takes_room(self, directory: Path | None) -> None:
        """An upload that stands still counts in full, and no longer once its client is gone."""
        update = Update.of(np.ones(1 << 17))
        with serving(directory, limits=Limits(staged_bytes_max=1_500_000)) as secured:
            a, b = Sender(secured, "a"), Sender(secured, "b")
            stalled = Stalled(secured, a.putting, update)
            wait_until(lambda: secured.aggregator.status().received_bytes >= 1 << 20, "a batch")
            with pytest.raises(StagingFull, match="staged_bytes_max"):
                b.stage(update)
            stalled.go_away()

            def is_taken() -> bool:
                with suppress(StagingFull):
                    return bool(b.stage(update))
                return False

            wait_until(is_taken, "room")

    def test_a_run_that_goes_on_counts_what_it_has(self, tmp_path: Path) -> None:
        """Bytes of an earlier life of the server take room as well."""
        update = Update.of(np.ones(1000))
        with serving(tmp_path / "run") as secured:
            secured.client("a").push(0, update)
        limits = Limits(staged_bytes_max=12_000)
        with serving(tmp_path / "run", limits=limits) as secured, pytest.raises(StagingFull):
            Sender(secured, "b").stage(update)

    def test_parts_that_are_not_committed_are_counted(self, directory: Path | None) -> None:
        """Per worker; committed, dropped, or their step closed, there is room again."""
        clock = Clock()
        limits = Limits(uncommitted_parts_per_worker_max=3)
        with serving(directory, limits=limits, clock=clock) as secured:
            a, b = Sender(secured, "a"), Sender(secured, "b")
            parts = a.stage(MANY)
            with pytest.raises(StagingFull, match="uncommitted_parts_per_worker_max"):
                a.stage(MANY)
            assert b.commit(MANY, b.stage(MANY)).stands
            assert a.commit(MANY, parts).stands  # which closes the step
            a.putting = dataclasses.replace(a.putting, step=8)
            a.stage(MANY)
            with pytest.raises(StagingFull):
                a.stage(MANY)
            clock.advance(UNNAMED_SECONDS_MAX)
            secured.aggregator.tick()
            assert secured.aggregator.staged_bytes() == 0
            a.stage(MANY)

    def test_leftovers_of_a_closed_step_are_gone(self, directory: Path | None) -> None:
        """Parts that were sent twice and committed once do not wait for ten minutes."""
        limits = Limits(uncommitted_parts_per_worker_max=9)
        with serving(directory, limits=limits) as secured:
            a, b = Sender(secured, "a"), Sender(secured, "b")
            a.stage(MANY)
            a.commit(MANY, a.stage(MANY))
            assert secured.aggregator.uncommitted_parts("a") == 3
            b.commit(MANY, b.stage(MANY))
            assert secured.aggregator.uncommitted_parts("a") == 0
            assert secured.aggregator.staged_bytes() == 0


class Stalled:
    """A client that stops in the middle of a part and stays."""

    def __init__(self, secured: Secured, putting: Put, update: Update, **tls: object) -> None:
        assert secured.server._uploads is not None
        self.uploads = secured.server._uploads
        self.port = int(secured.server.address.rpartition(":")[2])
        self.flight = flight.FlightClient(
            secured.server.address, **tls, generic_options=[("grpc.use_local_subchannel_pool", 1)]
        )
        schema, batches = next(encode(update))
        descriptor = flight.FlightDescriptor.for_command(encode_command(putting))
        self.writer, self.answers = self.flight.do_put(descriptor, schema)
        self.writer.write_batch(next(batches))

    def go_away(self) -> None:
        """Lose the connection, without a word."""
        (peer,) = {upload.peer for upload in self.uploads._going_on}
        assert end_connection(peer, self.port)
        with pytest.raises(pa.ArrowException):
            self.writer.close()


class TestStandingStill:
    @pytest.mark.parametrize("tls", [False, True])
    def test_it_is_ended(self, directory: Path | None, tls: bool) -> None:
        """A client that is silent in the middle of a part loses its connection, and its bytes."""
        security = Security(**TLS) if tls else Security()
        with serving(directory, security, Limits(silent_seconds_max=0.5)) as secured:
            roots = {"tls_ca": CERTIFICATES / "ca.pem"} if tls else {}
            joined = secured.client("a", **roots).joined
            putting = Put(joined.run, "a", joined.incarnation, 7, 1)
            options = {"tls_root_certs": (CERTIFICATES / "ca.pem").read_bytes()} if tls else {}
            stalled = Stalled(secured, putting, Update.of(np.ones(1 << 16)), **options)
            uploads = stalled.uploads
            wait_until(lambda: secured.aggregator.status().received_bytes > 0, "the first batch")
            wait_until(lambda: not uploads._going_on, "the end of the upload")
            assert secured.aggregator.staged_bytes() == 0
            if directory is not None:
                assert list((directory / "staged").iterdir()) == []
            with pytest.raises(pa.ArrowException):
                stalled.writer.close()
            assert secured.client("b", **roots).push(7, one(1)).stands

    def test_others_go_on_meanwhile(self, directory: Path | None) -> None:
        """Only the connection that stands still is ended."""
        with serving(directory, limits=Limits(silent_seconds_max=0.5)) as secured:
            joined = secured.client("a").joined
            putting = Put(joined.run, "a", joined.incarnation, 99, 1)
            b = secured.client("b", seconds=BOUND_SECONDS)
            waiting = wait_in_thread(lambda: b.pull(0))
            stalled = Stalled(secured, dataclasses.replace(putting, step=0), one(1))
            uploads = stalled.uploads
            wait_until(lambda: uploads._going_on, "the upload")
            wait_until(lambda: not uploads._going_on, "its end")
            with pytest.raises(pa.ArrowException):
                stalled.writer.close()
            b.push(0, one(1))
            secured.client("a").push(0, one(2))
            assert number(waiting.result()) == 3

    def test_a_worker_has_so_many_on_their_way(self, directory: Path | None) -> None:
        """One more is refused as long as they are, by the limit's name; others are not bound."""
        with serving(directory, limits=Limits(uploads_per_worker_max=2)) as secured:
            a, b = Sender(secured, "a"), Sender(secured, "b")
            stalled = [Stalled(secured, a.putting, one(1)) for _ in range(2)]
            uploads = stalled[0].uploads
            wait_until(lambda: len(uploads._going_on) == 2, "both uploads")
            with pytest.raises(StagingFull, match="uploads_per_worker_max"):
                a.stage(one(1))
            assert b.stage(one(1))
            for each in stalled:
                each.writer.close()
            wait_until(lambda: not uploads._going_on, "their end")
            assert a.stage(one(1))


class Kept:
    """What a store has, as it is told."""

    def __init__(self) -> None:
        self.bytes = self.asked = 0

    def staged_bytes(self) -> int:
        self.asked += 1
        return self.bytes

    def uncommitted_parts(self, _worker: str) -> int:
        return 0


class TestUploads:
    """The accounting alone."""

    def test_only_waiting_counts_as_silence(self) -> None:
        """The time that the server takes to write is not the client's; both limits end a wait."""
        clock = Clock(0.0)
        limits = Limits(silent_seconds_max=60, upload_seconds_max=150)
        uploads = Uploads(limits, Kept(), clock)
        with uploads.admit("a", 7, "ipv4:127.0.0.1:1") as upload:
            upload.wait()
            clock.advance(59.9)
            assert uploads.overdue() == []
            clock.advance(0.1)
            assert uploads.overdue() == [upload]
            upload.add(10)
            clock.advance(1000)  # the disk was slow
            assert uploads.overdue() == []
            upload.wait()
            assert uploads.overdue() == [upload]  # on its way for longer than any may be
            upload.end()
            assert uploads.overdue() == []
        assert uploads.overdue() == []

    def test_the_store_is_seldom_asked(self) -> None:
        """While there is room, once a second whatever comes; never where nothing is limited."""
        clock, kept = Clock(0.0), Kept()
        uploads = Uploads(Limits(staged_bytes_max=10**9), kept, clock)
        for _ in range(1000):
            with uploads.admit("a", 7, "") as upload:
                upload.add(100)
            clock.advance(0.005)
        assert 4 <= kept.asked <= 6
        unlimited = Kept()
        uploads = Uploads(Limits(), unlimited, clock)
        with uploads.admit("a", 7, "") as upload:
            upload.add(10**6)
        assert unlimited.asked == 0

    def test_never_more_than_the_limit(self) -> None:
        """Whatever the order, what is kept and on its way is at most the limit; seed 7."""
        generator = np.random.default_rng(7)
        clock, kept, limit = Clock(0.0), Kept(), 10_000
        uploads = Uploads(Limits(staged_bytes_max=limit, uploads_per_worker_max=99), kept, clock)
        refused = taken = 0
        for _ in range(3000):
            clock.advance(float(generator.random()) * 0.05)
            size = int(generator.integers(1, 2000))
            try:
                with uploads.admit("a", 7, "") as upload:
                    upload.add(size)
                    kept.bytes += size
                    taken += 1
            except StagingFull:
                refused += 1
            assert kept.bytes <= limit
            if generator.random() < 0.3:
                kept.bytes = int(kept.bytes * generator.random())
        assert refused > 100
        assert taken > 1000

    def test_what_ends_while_the_store_is_asked_is_counted(self) -> None:
        """An answer that is older than a part does not let that part be forgotten."""

        class Slow(Kept):
            def staged_bytes(self) -> int:
                answer = self.bytes
                if self.asked == 1:
                    self.bytes += 60
                    ending.close()
                self.asked += 1
                return answer

        clock, kept, ending = Clock(0.0), Slow(), ExitStack()
        uploads = Uploads(Limits(staged_bytes_max=100), kept, clock)
        ending.enter_context(uploads.admit("a", 7, "")).add(60)
        clock.advance(2)
        with uploads.admit("b", 7, "") as upload:
            upload.add(10)
            assert kept.asked == 2
            with pytest.raises(StagingFull, match="with this one 110"):
                upload.add(40)

    def test_nothing_is_left_of_who_has_gone(self) -> None:
        """A worker that ends, however it ends, leaves no entry behind."""
        uploads = Uploads(Limits(part_bytes_max=5), Kept(), Clock(0.0))
        for name in map(str, range(100)):
            with suppress(OverLimit), uploads.admit(name, 7, "") as upload:
                upload.add(10)
        assert not uploads._per_worker
        assert not uploads._going_on
        assert uploads._on_their_way_bytes == 0


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


class TestConnections:
    """Ending a connection by its two ends."""

    @pytest.mark.parametrize(
        ("host", "written"), [("127.0.0.1", "ipv4:127.0.0.1"), ("::1", "ipv6:%5B::1%5D")]
    )
    def test_the_one_that_is_meant(self, host: str, written: str) -> None:
        """And no other, also where a port is right and the rest is not."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as listening:
            try:
                listening.bind((host, 0))
            except OSError:
                pytest.skip("this machine has no such address")
            listening.listen()
            port = listening.getsockname()[1]
            clients = [socket.create_connection((host, port)) for _ in range(2)]
            accepted = [listening.accept()[0] for _ in range(2)]
            meant = clients[0].getsockname()[1]
            before = open_descriptors()
            for peer, to in [
                (f"{written}:{meant}", port + 1),
                (f"{written}:1", port),
                (f"ipv4:192.0.2.1:{meant}", port),
                ("unix:/tmp/x", port),
                ("", port),
            ]:
                assert not end_connection(peer, to)
            assert end_connection(f"{written}:{meant}", port)
            assert clients[0].recv(1) == b""
            clients[1].send(b"x")
            assert accepted[1].recv(1) == b"x"
            assert open_descriptors() == before
            for each in (*clients, *accepted):
                each.close()
