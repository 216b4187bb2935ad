"""The server by itself, to a client that speaks plain Flight and may say anything."""

from __future__ import annotations

import dataclasses
import json
import random
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

import onefold
from onefold import wire
from onefold.aggregator import Aggregator
from onefold.errors import (
    AddressInUse,
    Damaged,
    InvalidInput,
    InvalidUpdate,
    OnefoldError,
    ProtocolError,
    Refused,
    StoreError,
    StoreLocked,
    TransportError,
)
from onefold.ledger import Joined
from onefold.parts import Manifest, Payload, encode, manifest_of, part_schema
from onefold.policy import Policy
from onefold.receipt import Receipt, Status
from onefold.server import Server
from onefold.server.service import Service
from onefold.status import RunStatus
from onefold.testing.support import Clock, number, one, pairs, wait_in_thread
from onefold.update import Sparse, Update
from onefold.wire import decode_answer, decode_failure, encode_command, verb_of

BOUND_SECONDS = 60.0
T = TypeVar("T")
AB = Policy(roster=["a", "b"])
# Of three kinds, hence in three parts.
SEVERAL = Update({"w": np.arange(6.0), "n": np.array([1, 2]), "s": Sparse([3, 1], np.ones(2))})


class Raw:
    """Plain Flight calls to a server; its errors are raised as they came."""

    def __init__(self, address: str) -> None:
        self.flight = flight.FlightClient(address)
        self.options = flight.FlightCallOptions(timeout=BOUND_SECONDS)

    def put(self, command: bytes, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
        descriptor = flight.FlightDescriptor.for_command(command)
        writer, answers = self.flight.do_put(descriptor, schema, self.options)
        with writer:
            for batch in batches:
                writer.write_batch(batch)
            writer.done_writing()
            answer = answers.read()  # None where the server failed: leaving `with` raises why
        return bytes(answer.to_pybytes())

    def act(self, body: bytes, kind: str = "x") -> bytes:
        (result,) = self.flight.do_action(flight.Action(kind, body), self.options)
        return bytes(result.body.to_pybytes())

    def get(self, ticket: bytes) -> list[pa.RecordBatch]:
        reader = self.flight.do_get(flight.Ticket(ticket), self.options)
        return [chunk.data for chunk in reader]

    def ask(self, command: wire.Command, expected: type[T]) -> T:
        return decode_answer(self.act(encode_command(command)), expected)

    def join(self, worker: str) -> Joined:
        return self.ask(wire.Join(worker, f"life of {worker}"), Joined)

    def status(self) -> RunStatus:
        return self.ask(wire.GetStatus(), RunStatus)

    def stage(self, command: wire.Put, update: Update) -> Manifest:
        """Put the parts of an update one by one; the manifest names them as the server does."""
        answers = [self.put(encode_command(command), *part) for part in encode(update)]
        return manifest_of(update, [decode_answer(answer, wire.Staged).part for answer in answers])

    def put_whole(self, command: wire.Put, update: Update) -> Receipt:
        whole = dataclasses.replace(command, manifest=manifest_of(update, ["0"]))
        return decode_answer(self.put(encode_command(whole), *next(encode(update))), Receipt)

    def commit(self, command: wire.Put, manifest: Manifest) -> Receipt:
        names = ("run", "worker", "incarnation", "step", "attempt")
        commit = wire.Commit(**{name: getattr(command, name) for name in names}, manifest=manifest)
        return self.ask(commit, Receipt)


@contextmanager
def failing(kind: type[OnefoldError], match: str = "") -> Iterator[None]:
    """The server fails with this error of its own, which travels whole."""
    with pytest.raises(flight.FlightError) as caught:
        yield
    assert caught.value.extra_info, str(caught.value)
    error = decode_failure(caught.value.extra_info)
    assert type(error) is kind, repr(error)
    assert match in str(error)


class Running:
    """A server with its aggregator and a raw client."""

    def __init__(self, aggregator: Aggregator, server: Server) -> None:
        self.aggregator, self.server = aggregator, server
        self.raw = Raw(server.address)

    def putting(self, worker: str, step: int = 7, attempt: int = 1) -> wire.Put:
        """The command of a worker that has joined."""
        joined = self.raw.join(worker)
        return wire.Put(joined.run, worker, joined.incarnation, step, attempt)

    def still_serves(self) -> None:
        """Nothing is staged, and a whole step with two clients goes as if nothing had been."""
        assert self.aggregator.status().staged_bytes == 0
        address = self.server.address
        with (
            onefold.connect(address, "a", timeout_seconds=BOUND_SECONDS) as a,
            onefold.connect(address, "b", timeout_seconds=BOUND_SECONDS) as b,
        ):
            step = a.joined.first_open_step
            a.push(step, one(2))
            b.push(step, one(5))
            assert number(a.pull(step)) == number(b.pull(step)) == 7


Start = Callable[..., Running]


@pytest.fixture(params=["memory", "directory"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts a server that is stopped at the end."""
    with ExitStack() as stack:

        def start(policy: Policy = AB, **options: object) -> Running:
            directory = None if request.param == "memory" else tmp_path / "run"
            made = Aggregator(directory, policy, **options)  # type: ignore[arg-type]
            aggregator = stack.enter_context(made)
            return Running(aggregator, stack.enter_context(Server(aggregator)))

        yield start


def pull(command: wire.Put, wait_seconds: float = 0.0, attempt: int | None = None) -> wire.Pull:
    who = (command.run, command.worker, command.incarnation)
    return wire.Pull(*who, command.step, attempt, wait_seconds)


class TestOnce:
    """What is sent twice counts once."""

    def test_a_whole_update_put_twice_is_a_duplicate(self, start: Start) -> None:
        """Put and commit in one call, repeated: duplicate, staged once, counted once."""
        running = start()
        a, b = running.putting("a"), running.putting("b")
        assert running.raw.put_whole(a, one(2)).status is Status.ACCEPTED
        staged_bytes = running.raw.status().staged_bytes
        for _ in range(3):
            receipt = running.raw.put_whole(a, one(2))
            assert (receipt.status, receipt.digest) == (Status.DUPLICATE, one(2).digest())
        assert running.raw.status().staged_bytes == staged_bytes > 0
        running.raw.put_whole(b, one(5))
        aggregate = running.aggregator.pull(7)
        assert (number(aggregate), aggregate.count) == (7, 2)

    def test_parts_put_and_committed_twice_are_a_duplicate(self, start: Start) -> None:
        """Parts, then the commit, all of it repeated, and the commit alone repeated."""
        running = start()
        a, b = running.putting("a"), running.putting("b")
        manifest = running.raw.stage(a, SEVERAL)
        assert len(manifest.parts) == 3
        assert running.raw.commit(a, manifest).status is Status.ACCEPTED
        staged_bytes = running.raw.status().staged_bytes
        assert running.raw.commit(a, manifest).status is Status.DUPLICATE
        assert running.raw.commit(a, running.raw.stage(a, SEVERAL)).status is Status.DUPLICATE
        assert running.raw.status().staged_bytes == staged_bytes > 0
        running.raw.commit(b, running.raw.stage(b, SEVERAL))
        tensors = running.aggregator.pull(7).tensors
        assert np.asarray(tensors["w"]).tolist() == [0, 2, 4, 6, 8, 10]
        assert pairs(tensors["s"]) == [(1, 2), (3, 2)]

    def test_what_comes_after_the_close_counted(self, start: Start) -> None:
        """A late repeat is told that it is in the aggregate, and nothing of it stays."""
        running = start()
        a, b = running.putting("a"), running.putting("b")
        running.raw.put_whole(a, one(2))
        running.raw.put_whole(b, one(5))
        late = running.raw.put_whole(a, one(2))
        assert (late.status, late.counted, late.counted_as) == (Status.CLOSED, True, 1)
        assert running.raw.status().staged_bytes == 0
        assert number(running.aggregator.pull(7)) == 7

    def test_a_join_repeated_is_the_same_life(self, start: Start) -> None:
        """The same life id gets the same incarnation; another fences it."""
        running = start()
        first = running.raw.join("a")
        assert running.raw.join("a") == first
        second = running.raw.ask(wire.Join("a", "another life"), Joined)
        assert second.incarnation == first.incarnation + 1
        command = wire.Put(first.run, "a", first.incarnation, 7, 1)
        assert running.raw.put_whole(command, one(2)).status is Status.FENCED


SCHEMA = part_schema("dense", "float64")


def batch(name: str = "", start: int = 0, values: tuple[float, ...] = (2.0,)) -> pa.RecordBatch:
    columns = {"tensor": [name], "start": [start], "values": [values]}
    return pa.RecordBatch.from_pydict(columns, SCHEMA)


def with_offsets(*offsets: int) -> pa.RecordBatch:
    """A batch of three values with such offsets, which Arrow would not make of them itself."""
    rows = len(offsets) - 1
    memory = np.zeros(rows + 1, np.int64)
    values = pa.array([1.0, 2.0, 3.0], pa.float64())
    buffers = [None, pa.py_buffer(memory)]
    column = pa.Array.from_buffers(SCHEMA.field("values").type, rows, buffers, children=[values])
    made = pa.RecordBatch.from_arrays([[""] * rows, [0] * rows, column], schema=SCHEMA)
    memory[:] = offsets
    return made


OTHER = pa.record_batch({"x": [1]})
BAD = {
    "other numbers": (SCHEMA, [batch(values=(3.0,))]),
    "another tensor": (SCHEMA, [batch("v")]),
    "too few": (SCHEMA, []),
    "too many": (SCHEMA, [batch(), batch(start=1)]),
    "twice": (SCHEMA, [batch(), batch()]),
    "another start": (SCHEMA, [batch(start=1)]),
    "another dtype": (part_schema("dense", "float32"), []),
    "another schema": (OTHER.schema, [OTHER]),
    "offsets outside": (SCHEMA, [with_offsets(0, 2**40)]),
    "offsets backwards": (SCHEMA, [with_offsets(0, 3, 1)]),
}


UNREADABLE: dict[str, dict[str, object]] = {
    "half a character": {"name": "\ud800", "shape": [0]},
    "65 dimensions": {"shape": [1] * 65},
    "empty but huge": {"shape": [0, 2**62, 2**62]},
    "huge rows": {"kind": "sparse", "shape": [5, 2**61], "entries": 0},
}


def noted_puts(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Set when the server begins with a put, and when it is done with it."""
    begun, ended, do_put = threading.Event(), threading.Event(), Service.do_put

    def noting(*arguments: object) -> None:
        begun.set()
        try:
            do_put(*arguments)  # type: ignore[arg-type]
        finally:
            ended.set()

    monkeypatch.setattr(Service, "do_put", noting)
    return begun, ended


class TestBadStreams:
    """A stream that is not what its manifest says is refused, and nothing of it stays."""

    @pytest.mark.parametrize("fault", BAD)
    def test_it_leaves_nothing_staged(self, start: Start, fault: str) -> None:
        """The error is a ProtocolError that travels whole; the right stream is then accepted."""
        running = start()
        schema, batches = BAD[fault]
        command = running.putting("a")
        whole = dataclasses.replace(command, manifest=manifest_of(one(2), ["0"]))
        with failing(ProtocolError):
            running.raw.put(encode_command(whole), schema, batches)
        assert running.raw.status().staged_bytes == 0
        assert running.raw.status().receipts == {}
        assert running.raw.put_whole(command, one(2)).status is Status.ACCEPTED

    def test_what_breaks_off_leaves_nothing_staged(
        self, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Of a client that goes away in the middle of a part no byte and no file is left."""
        _, ended = noted_puts(monkeypatch)
        running = start()
        command = encode_command(running.putting("a"))
        descriptor = flight.FlightDescriptor.for_command(command)
        options = flight.FlightCallOptions(timeout=1)  # it is never answered
        writer, answers = running.raw.flight.do_put(descriptor, SCHEMA, options)
        writer.write_batch(batch())
        assert answers.read() is None
        with pytest.raises(flight.FlightTimedOutError):
            writer.close()
        assert ended.wait(BOUND_SECONDS)
        assert running.raw.status().staged_bytes == 0
        assert list(tmp_path.glob("run/staged/*")) == []
        running.still_serves()

    def test_the_error_reaches_who_is_still_writing(self, start: Start) -> None:
        """However long the stream of a wrong command: it is not read, and the error comes whole."""
        running, size = start(), 1 << 17
        batches = (batch(start=n, values=(1.0,) * size) for n in range(32))
        with failing(ProtocolError, "does not go by DoPut"):
            running.raw.put(encode_command(wire.GetStatus()), SCHEMA, batches)
        running.still_serves()

    def test_a_false_commit_leaves_nothing_staged(self, start: Start) -> None:
        """Parts whose digest is not the one that is claimed are dropped with the commit."""
        running = start()
        a = running.putting("a")
        manifest = running.raw.stage(a, SEVERAL)
        with failing(ProtocolError, "digest"):
            running.raw.commit(a, dataclasses.replace(manifest, digest="0" * 32))
        assert running.raw.status().staged_bytes == 0

    @pytest.mark.parametrize("tensor", UNREADABLE)
    def test_what_no_client_could_read_is_refused(self, start: Start, tensor: str) -> None:
        """A tensor that no Update can be must not become one that nobody can pull."""
        running = start()
        filled = {"name": "w", "kind": "dense", "dtype": "float64", "entries": None}
        filled |= UNREADABLE[tensor]
        value = {"tensors": [filled], "weight": 1, "digest": "0" * 32, "parts": ["0"]}
        size = 1 if filled["shape"] == [1] * 65 else 0
        batches = [batch("w", values=(1.0,))] * size
        with failing(ProtocolError):
            with suppress(ProtocolError):  # as a client that does not check what it sends
                value["digest"] = Payload(Manifest.from_json(value), [batches]).digest()
            command = json.loads(encode_command(running.putting("a"))) | {"manifest": value}
            schema = part_schema(str(filled["kind"]), "float64")
            running.raw.put(json.dumps(command).encode(), schema, batches)
        running.still_serves()


COMMANDS = [
    wire.Put("r", "a", 1, 7, 1),
    wire.Get("r", "a", 1, 7, 0, "0"),
    wire.Commit("r", "a", 1, 7, 1, manifest_of(one(2), ["0"])),
    wire.Pull("r", "a", 1, 7, None, 0.0),
    wire.Join("a", "life"),
]


class TestGarbage:
    """Whatever is said over DoPut, DoAction and DoGet is answered, and the server serves on."""

    @pytest.mark.parametrize("data", [b"", b"\0", b"nonsense", b"[1]", b'{"protocol":2}'])
    def test_what_is_no_command_is_refused(self, start: Start, data: bytes) -> None:
        """By each way the answer is a ProtocolError that travels whole."""
        running = start()
        self.refused_each_way(running, data)
        running.still_serves()

    def refused_each_way(self, running: Running, data: bytes) -> None:
        with failing(ProtocolError):
            running.raw.put(data, SCHEMA, [batch()])
        with failing(ProtocolError):
            running.raw.act(data)
        with failing(ProtocolError):
            running.raw.get(data)

    def test_random_bytes_are_refused(self, start: Start) -> None:
        """Bytes from a seed, after as much of a true command, are a ProtocolError each way."""
        running, generator = start(), random.Random(0)
        beginning = encode_command(running.putting("a"))
        for _ in range(40):
            noise = generator.randbytes(generator.randrange(1, 200))
            data = beginning[: generator.randrange(len(beginning))] + noise
            self.refused_each_way(running, data)
        running.still_serves()

    @pytest.mark.parametrize("command", COMMANDS, ids=verb_of)
    def test_each_command_has_one_way(self, start: Start, command: wire.Command) -> None:
        """By another Flight call than its own a command is refused, and named."""
        running, data = start(), encode_command(command)
        if not isinstance(command, wire.Put):
            with failing(ProtocolError, f"'{verb_of(command)}' does not go by DoPut"):
                running.raw.put(data, SCHEMA, [])
        if isinstance(command, wire.Put | wire.Get):
            with failing(ProtocolError, f"'{verb_of(command)}' does not go by DoAction"):
                running.raw.act(data)
        if not isinstance(command, wire.Get):
            with failing(ProtocolError, f"'{verb_of(command)}' does not go by DoGet"):
                running.raw.get(data)
        running.still_serves()

    @pytest.mark.parametrize("name", ["7", "", "../manifest", "0.arrow", "1" * 5000, "²", "\0"])
    def test_an_aggregate_has_no_other_parts(self, start: Start, name: str) -> None:
        """The name of a part comes from a client: it names a part of this step or nothing."""
        running = start()
        running.still_serves()
        command = wire.Get(running.aggregator.run, "a", 1, 0, 0, name)
        with failing(Damaged):
            running.raw.get(encode_command(command))

    def test_an_open_step_has_no_aggregate(self, start: Start) -> None:
        """A part of a step that has not closed, or never was, cannot be had."""
        running = start()
        a = running.putting("a")
        running.raw.put_whole(a, one(2))
        for step in (7, 9):
            with failing(Damaged):
                running.raw.get(encode_command(wire.Get(a.run, "a", 1, step, 0, "0")))

    def test_what_cannot_be_used_is_told(self, start: Start) -> None:
        """Commands that can be read but make no sense have an error of their own."""
        running = start()
        a = running.putting("a")
        with failing(InvalidUpdate, "worker"):
            running.raw.put_whole(dataclasses.replace(a, worker=""), one(2))
        with failing(Damaged):
            running.raw.commit(a, manifest_of(one(2), ["7-" + "0" * 32]))
        running.still_serves()

    def test_what_is_no_flight_at_all_is_passed_over(self, start: Start) -> None:
        """Bytes on the bare socket, and Flight calls that are not onefold's, hurt nobody."""
        running, generator = start(), random.Random(0)
        host, _, port = running.server.address.removeprefix("grpc://").rpartition(":")
        for _ in range(5):
            with socket.create_connection((host, int(port)), timeout=BOUND_SECONDS) as other:
                other.sendall(generator.randbytes(1000))
        with pytest.raises((NotImplementedError, pa.ArrowException)):
            list(running.raw.flight.list_flights())
        path = flight.FlightDescriptor.for_path("a", "b")
        writer, _ = running.raw.flight.do_put(path, SCHEMA, running.raw.options)
        with failing(ProtocolError):
            writer.close()
        running.still_serves()


class TestPull:
    """What a pull is answered with."""

    def test_open_resend_or_closed(self, start: Start) -> None:
        """Open while others are missing, Resend while this update is, then what it closed with."""
        running = start()
        a, b = running.putting("a"), running.putting("b")

        def asked(attempt: int | None) -> wire.PullAnswer:
            return running.raw.ask(pull(a, attempt=attempt), wire.PullAnswer)

        assert [asked(None), asked(1)] == [wire.Open(), wire.Resend()]
        running.raw.put_whole(a, one(2))
        assert [asked(None), asked(1), asked(2)] == [wire.Open(), wire.Open(), wire.Resend()]
        running.raw.put_whole(b, one(5))
        for attempt in (None, 1, 2):
            answer = asked(attempt)
            assert isinstance(answer, wire.Closed)
            assert answer.closed.step == 7
            assert answer.manifest is not None
            (name,) = answer.manifest.parts
            batches = running.raw.get(encode_command(wire.Get(a.run, "a", 1, 7, 0, name)))
            assert [row["values"] for row in batches[0].to_pylist()] == [[7.0]]

    def test_another_run_is_refused(self, start: Start) -> None:
        """Pull, leave and get of another run than this fail as Refused; a put has its receipt."""
        running = start()
        for command in (wire.Pull("x", "a", 1, 7, None, 0.0), wire.Leave("x", "a", 1)):
            with failing(Refused, "other_run: it is for run x"):
                running.raw.act(encode_command(command))
        with failing(Refused, "worker 'a', step 7: other_run"):
            running.raw.get(encode_command(wire.Get("x", "a", 1, 7, 0, "0")))
        receipt = running.raw.put_whole(wire.Put("x", "a", 1, 7, 1), one(2))
        assert receipt.status is Status.OTHER_RUN
        running.still_serves()


class TestLife:
    """From a free port to the last call."""

    def test_a_busy_port_is_refused(self) -> None:
        """A port where another server, or anything else, listens raises AddressInUse."""
        with Aggregator(None, AB) as aggregator, Server(aggregator) as server:
            with Aggregator(None, AB) as other:
                listen = server.address.removeprefix("grpc://")
                with pytest.raises(AddressInUse, match=listen):
                    Server(other, listen).start()
            Running(aggregator, server).still_serves()
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listen = f"127.0.0.1:{listening.getsockname()[1]}"
            with Aggregator(None, AB) as aggregator, pytest.raises(AddressInUse, match=listen):
                Server(aggregator, listen).start()

    @pytest.mark.parametrize("listen", ["", "127.0.0.1", ":0", "127.0.0.1:x", "127.0.0.1:65536"])
    def test_an_address_is_host_and_port(self, listen: str) -> None:
        """Anything else is InvalidInput, not a failure of gRPC's."""
        with Aggregator(None, AB) as aggregator, pytest.raises(InvalidInput, match="HOST:PORT"):
            Server(aggregator, listen).start()

    def test_it_can_be_started_and_stopped_again(self, tmp_path: Path) -> None:
        """Its address is there while it runs; the port is free at once when it has stopped."""
        with Aggregator(tmp_path, AB) as aggregator:
            server = Server(aggregator)
            for _ in range(2):
                with pytest.raises(TransportError, match="not started"):
                    _ = server.address
                assert server.start() is server
                address = server.address
                assert server.start().address == address
                server.stop()
            with Server(aggregator, address.removeprefix("grpc://")) as again:
                assert again.address == address
                Running(aggregator, again).still_serves()

    def test_a_second_server_on_a_directory_is_refused(self, tmp_path: Path) -> None:
        """It does not start, and the first goes on."""
        with Aggregator(tmp_path, AB) as aggregator, Server(aggregator) as server:
            second = Server(Aggregator(tmp_path, AB))
            with pytest.raises(StoreLocked, match=str(tmp_path)):
                second.start()
            with pytest.raises(TransportError):
                _ = second.address
            Running(aggregator, server).still_serves()

    def test_stop_wakes_pending_pulls(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        """A pull that could wait for an hour is answered Open, and the server does stop."""
        monkeypatch.setattr("onefold.server.dispatch._POLL_SECONDS_MAX", 3600.0)
        waiting = threading.Semaphore(0)
        wait = Aggregator.wait

        def noting(aggregator: Aggregator, step: int, timeout_seconds: float) -> object:
            if timeout_seconds > 0:
                waiting.release()
            return wait(aggregator, step, timeout_seconds)

        monkeypatch.setattr(Aggregator, "wait", noting)
        running = start()
        a = running.putting("a")
        running.raw.put_whole(a, one(2))
        asked = pull(a, wait_seconds=3600.0)
        pulls = [wait_in_thread(lambda: running.raw.ask(asked, wire.Open)) for _ in range(3)]
        for _ in pulls:
            assert waiting.acquire(timeout=BOUND_SECONDS)
        running.server.stop(drain_seconds=BOUND_SECONDS)
        assert [waiter.result() for waiter in pulls] == [wire.Open()] * 3

    def test_stop_does_not_wait_for_who_says_nothing(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A client in the middle of a put that sends no more does not keep a server for ever."""
        begun, ended = noted_puts(monkeypatch)
        running = start()
        descriptor = flight.FlightDescriptor.for_command(encode_command(running.putting("a")))
        writer, answers = running.raw.flight.do_put(descriptor, SCHEMA)
        writer.write_batch(batch())
        assert begun.wait(BOUND_SECONDS)
        assert wait_in_thread(lambda: running.server.stop(drain_seconds=0.1)).result() is None
        assert not ended.is_set()
        with suppress(flight.FlightUnavailableError):  # the server has stopped: it need not answer
            writer.done_writing()  # it says something after all, so that the call ends
            answers.read()
        assert ended.wait(BOUND_SECONDS)


class TestTicker:
    """Steps close at their deadline though nobody calls."""

    LATE = Policy(roster=["a", "b"], deadline_seconds=60, minimum=1)

    def test_a_deadline_closes_a_step_without_a_call(self, start: Start) -> None:
        """The clock passes the deadline, nothing arrives, and the step is closed."""
        clock = Clock()
        running = start(self.LATE, clock=clock)
        running.raw.put_whole(running.putting("a"), one(2))
        register = running.aggregator._register
        with register._changed:
            assert 7 in register._ledger.steps.open
            clock.advance(61)
            assert register._changed.wait_for(
                lambda: register._ledger.steps.highest_closed == 7, BOUND_SECONDS
            )
        aggregate = running.aggregator.pull(7)
        assert number(aggregate) == 2
        assert [excluded.worker for excluded in aggregate.excluded] == ["b"]

    def test_a_failure_does_not_end_it(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        """After a tick that failed the next one tries again, until the server stops."""
        ticks = threading.Semaphore(0)

        def failing_tick(_aggregator: Aggregator) -> None:
            ticks.release()
            raise StoreError("the disk is full")

        running = start()
        monkeypatch.setattr(Aggregator, "tick", failing_tick)
        for _ in range(3):
            assert ticks.acquire(timeout=BOUND_SECONDS)
        monkeypatch.undo()
        running.still_serves()
        running.server.stop()
        assert not [t for t in threading.enumerate() if t.name == "onefold-ticker"]
