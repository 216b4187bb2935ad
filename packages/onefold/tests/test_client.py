"""A worker's end over a real network: what it sends again, what it keeps, when it gives up."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest

import onefold
from onefold import errors
from onefold.aggregator import Aggregator
from onefold.client import Client
from onefold.client.assembly import Assembly
from onefold.client.channel import FlightChannel, Unreachable
from onefold.launch import Job
from onefold.launch.server import ServerProcess
from onefold.parts import encoding
from onefold.policy import Policy
from onefold.receipt import Status
from onefold.server import Server
from onefold.testing.support import number, one, same_bits, sparse, wait_in_thread, who
from onefold.update import Array, Sparse, Tensor
from onefold.wire import Commit, Get, Pull, Put

BOUND_SECONDS = 60.0
AB = Policy(roster=["a", "b"])
ALONE = Policy(roster=["a"])


class Place:
    """A directory and a port, on which servers come and go, and their clients."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory, self.spools = directory / "run", directory / "spools"
        self.spools.mkdir()
        self._stack, self._serving = stack, ExitStack()
        stack.callback(self.stop)
        self._listen = "127.0.0.1:0"

    def start(self, policy: Policy = AB) -> Place:
        """Serve, on the same port as before."""
        self.aggregator = self._serving.enter_context(Aggregator(self.directory, policy))
        server = self._serving.enter_context(Server(self.aggregator, self._listen))
        self.address = server.address
        self._listen = self.address.removeprefix("grpc://")
        return self

    def stop(self) -> None:
        self._serving.close()

    def connect(self, worker: str, timeout_seconds: float = BOUND_SECONDS) -> Client:
        """A client that is closed at the end; its spool is under :attr:`spools`."""
        client = onefold.connect(
            self.address, worker, timeout_seconds=timeout_seconds, spool_directory=self.spools
        )
        return self._stack.enter_context(client)

    def staged(self) -> list[Path]:
        """The files of parts on the server's disk."""
        return sorted((self.directory / "staged").iterdir())

    def spooled(self) -> list[Path]:
        """The files of updates that clients keep."""
        return sorted(path for path in self.spools.rglob("*") if path.is_file())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Nothing is served yet."""
    with ExitStack() as stack:
        yield Place(tmp_path, stack)


class Calls:
    """Notes every call over a channel; ``before`` is called first, and may raise what it raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[object] = []
        self.before: Callable[[object], None] = lambda _command: None
        for name in ("act", "put", "get"):
            monkeypatch.setattr(FlightChannel, name, self._noting(getattr(FlightChannel, name)))

    def _noting(self, call: Callable[..., object]) -> Callable[..., object]:
        def noting(self_: object, command: object, *rest: object, **options: object) -> object:
            self.made.append(command)
            self.before(command)
            return call(self_, command, *rest, **options)

        return noting

    def count(self, kind: type) -> int:
        """How many commands of this kind were sent."""
        return sum(isinstance(command, kind) for command in list(self.made))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The calls of every client of the test."""
    return Calls(monkeypatch)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 256 bytes in blocks of 64."""
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 64)
    monkeypatch.setattr(encoding, "PART_BYTES_MAX", 256)
    monkeypatch.setattr("onefold.reduction.BLOCK_BYTES", 64)


small = pytest.mark.usefixtures("small_parts")


def finite(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Random bit patterns, with the extremes; what is not finite becomes negative zero."""
    kind = oracle.dtype_of(dtype)
    generator = np.random.default_rng(seed)
    size = int(np.prod(shape, dtype=int))
    values = np.frombuffer(generator.bytes(size * kind.itemsize), kind).copy()
    if dtype in oracle.FORMATS:
        form = oracle.FORMATS[dtype]
        bits = values.view(form.unsigned)
        bits[:5] = [form.infinity - 1, form.sign + form.infinity - 1, 1, form.sign + 1, form.sign]
        bits[bits % form.sign >= form.infinity] = form.sign
    else:
        values[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    return values.reshape(shape)


class TestBits:
    @small
    @pytest.mark.parametrize("dtype", oracle.DTYPES)
    def test_every_bit_comes_back(self, place: Place, dtype: str) -> None:
        """Any finite bits of every dtype, dense and sparse, in many parts: a sum of one is that."""
        a = place.start(ALONE).connect("a")
        coordinates = np.random.default_rng(1).permutation(60) - 30
        tensors: dict[str, Tensor] = {
            "dense": finite(dtype, (7, 30), 1),
            "other order": np.asfortranarray(finite(dtype, (20, 5), 2)),
            "strided": finite(dtype, (80,), 3)[::-2],
            "sparse": Sparse(coordinates, finite(dtype, (60,), 4)),
            "rows": Sparse(coordinates + 30, finite(dtype, (60, 3), 5), (60, 3)),
            "scalar": finite(dtype, (8,), 6)[7],
        }
        expected = {name: self.in_order(tensor) for name, tensor in tensors.items()}
        assert same_bits(a.reduce(0, tensors).tensors, expected)

    def in_order(self, tensor: Tensor) -> Tensor:
        """The same numbers, a sparse tensor's sorted by coordinate."""
        if not isinstance(tensor, Sparse):
            return tensor
        order = np.argsort(tensor.coordinates)
        return Sparse(tensor.coordinates[order], tensor.values[order], tensor.shape)

    def test_the_callers_arrays_are_free_after_the_push(self, place: Place) -> None:
        """Overwritten after push, they are still sent again as they were, with the same digest."""
        place.start()
        a, b = place.connect("a"), place.connect("b")
        values, coordinates = np.arange(1000.0), np.arange(3)
        update = {"w": values, "s": Sparse(coordinates, values[:3])}
        digest = a.push(7, update).digest
        values[:] = np.nan
        coordinates[:] = 99
        for path in place.staged():
            path.unlink()  # the server asks for it again
        zeros = {"w": np.zeros(1000), "s": sparse()}
        b.push(7, zeros)
        aggregate = a.pull(7)
        expected: dict[str, Tensor] = {"w": np.arange(1000.0), "s": sparse((0, 0), (1, 1), (2, 2))}
        assert same_bits(aggregate.tensors, expected)
        assert aggregate.contributors[0].digest == digest

    def test_sixteen_threads_get_the_exact_sum(self, place: Place) -> None:
        """Five steps of float32 of very different sizes: the bits of the Fraction, at everybody."""
        names, steps, size = [f"w{n:02}" for n in range(16)], 5, 40
        form = oracle.FORMATS["float32"]
        sent = {
            (name, step): finite("float32", (size,), 100 * step + n)
            for n, name in enumerate(names)
            for step in range(steps)
        }
        place.start(Policy(roster=names))

        def work(name: str) -> list[bytes]:
            client = place.connect(name)
            return [client.reduce(step, sent[name, step]).tensor.tobytes() for step in range(steps)]  # type: ignore[union-attr]

        expected = []
        for step in range(steps):
            bits = [sent[name, step].view(np.uint32).tolist() for name in names]
            sums = [
                oracle.encode(oracle.exact_sum(oracle.decode(bit, form) for bit in column), form)
                for column in zip(*bits, strict=True)
            ]
            expected.append(np.array(sums, np.uint32).tobytes())
        threads = [wait_in_thread(lambda name=name: work(name)) for name in names]  # type: ignore[misc]
        for thread in threads:
            assert thread.result() == expected


class TestParts:
    @small
    def test_a_large_update_goes_part_by_part(self, place: Place, calls: Calls) -> None:
        """1000 float64 are 32 parts of 256 bytes, one commit, and as many parts back, in order."""
        a = place.start(ALONE).connect("a")
        aggregate = a.reduce(0, np.arange(1000.0))
        assert np.array_equal(np.asarray(aggregate.tensor), np.arange(1000.0))
        puts = [command for command in calls.made if isinstance(command, Put)]
        assert [put.part for put in puts] == list(range(32))
        assert {put.manifest for put in puts} == {None}
        assert calls.count(Commit) == 1
        assert [get.part for get in calls.made if isinstance(get, Get)] == list(range(32))

    @small
    def test_parts_lost_before_the_commit_are_sent_again(self, place: Place, calls: Calls) -> None:
        """A server that has lost what it had staged gets all of it once more, under one attempt."""
        a = place.start(ALONE).connect("a")

        def lose(command: object) -> None:
            if isinstance(command, Commit) and calls.count(Commit) <= 2:
                place.staged()[0].unlink()

        calls.before = lose
        receipt = a.push(0, np.arange(100.0))
        assert (receipt.status, receipt.attempt) == (Status.ACCEPTED, 1)
        assert calls.count(Commit) == 3
        assert np.array_equal(np.asarray(a.pull(0).tensor), np.arange(100.0))

    @small
    def test_a_server_that_loses_everything_is_given_up(
        self, place: Place, calls: Calls, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Sending again and again ends, and says so."""
        monkeypatch.setattr("onefold.client.calls._BACKOFF_SECONDS_MAX", 0.001)
        a = place.start(ALONE).connect("a")

        def lose(command: object) -> None:
            if isinstance(command, Commit):
                for path in place.staged():
                    path.unlink()

        calls.before = lose
        with pytest.raises(errors.GaveUp, match="step 0 was sent 10 times"):
            a.push(0, np.arange(100.0))
        assert calls.count(Commit) == 10

    @small
    def test_a_lost_call_is_made_again(self, place: Place, calls: Calls) -> None:
        """Every call fails once before it is made; each says how often, and nothing is lost."""
        failed: set[tuple[object, ...]] = set()

        def lose(command: object) -> None:
            key = (type(command), getattr(command, "part", None), getattr(command, "step", None))
            if key not in failed:
                failed.add(key)
                raise Unreachable("lost")

        calls.before = lose
        a = place.start(ALONE).connect("a")
        values = np.arange(100.0)
        assert a.push(0, values).status is Status.ACCEPTED
        assert np.array_equal(np.asarray(a.pull(0).tensor), values)
        puts = [(put.part, put.retry) for put in calls.made if isinstance(put, Put)]
        assert puts == [(part, retry) for part in range(4) for retry in (0, 1)]
        assert len(a.status().receipts) == 1
        assert calls.count(Get) == 8


class TestRefusals:
    def test_a_fenced_life_is_over_for_good(self, place: Place) -> None:
        """Once told, every call of it raises Fenced, without a word to the server."""
        place.start()
        old, new = place.connect("a"), place.connect("a")
        with pytest.raises(errors.Fenced):
            old.push(7, one(2))
        new.push(7, one(3))
        place.connect("b").push(7, one(5))
        place.stop()  # nobody is asked any more
        for call in (
            lambda: old.push(7, one(2)),
            lambda: old.pull(7),
            lambda: old.reduce(7, one(2)),
            old.leave,
            old.status,
        ):
            with pytest.raises(errors.Fenced) as caught:
                call()
            assert caught.value.receipt.status is Status.FENCED
        place.start()
        assert number(new.pull(7)) == 8

    def test_a_mismatch_is_raised_by_reduce(self, place: Place) -> None:
        """Refused with the receipt, whose reason names both sides; push only returns it."""
        place.start()
        a, b = place.connect("a"), place.connect("b")
        a.push(7, np.zeros(3, np.float32))
        with pytest.raises(errors.Refused, match="mismatch") as caught:
            b.reduce(7, np.zeros(4))
        receipt = caught.value.receipt
        assert (receipt.status, receipt.worker, receipt.step) == (Status.MISMATCH, "b", 7)
        assert {"float32[3]", "float64[4]"} <= set(receipt.reason.replace(",", "").split())
        assert b.push(7, np.zeros(4)) == receipt

    def test_another_run_on_the_port_is_refused(self, place: Place) -> None:
        """A server with another directory is not the one that was joined: push and pull say so."""
        a = place.start().connect("a")
        a.push(7, one(2))
        place.stop()
        place.directory = place.directory.with_name("other")
        place.start()
        for call in (lambda: a.push(7, one(2)), lambda: a.pull(7), a.leave):
            with pytest.raises(errors.Refused) as caught:
                call()
            assert caught.value.receipt.status is Status.OTHER_RUN


class TestTimes:
    def test_not_yet_at_the_timeout(self, place: Place) -> None:
        """A step that others have not contributed to raises NotYet, at any timeout."""
        a = place.start().connect("a")
        a.push(7, one(2))
        for seconds in (0, 0.05, 0.3):
            with pytest.raises(errors.NotYet, match="step 7 has not closed"):
                a.pull(7, timeout_seconds=seconds)
        place.connect("b").push(7, one(5))  # the ticker may be closing the step still
        assert [number(a.pull(7, timeout_seconds=wait)) for wait in (60, 0)] == [7, 7]

    def test_a_wait_longer_than_the_patience_without_answer(self, place: Place) -> None:
        """``timeout_seconds`` of the client is for a server that is silent; this one is not."""
        a = place.start().connect("a", timeout_seconds=1)
        with pytest.raises(errors.NotYet):
            a.pull(7, timeout_seconds=2.5)

    def test_gave_up_without_a_server(self, place: Place) -> None:
        """Where nobody listens, connect and status give up at the deadline and name the address."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and never listens
            address = f"grpc://127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(errors.GaveUp, match=address):
                onefold.connect(address, "a", timeout_seconds=0.3, spool_directory=place.spools)
            with pytest.raises(errors.GaveUp, match=address):
                onefold.client.fetch_status(address, timeout_seconds=0.3)
        assert list(place.spools.iterdir()) == []

    def test_gave_up_and_pushed_again(self, place: Place) -> None:
        """A push that gave up goes on where it was when the server is back: one attempt."""
        a = place.start(ALONE).connect("a", timeout_seconds=1)
        place.stop()
        with pytest.raises(errors.GaveUp, match="'put' of step 7 within"):
            a.push(7, one(2))
        place.start(ALONE)
        for _ in range(30):
            with suppress(errors.GaveUp):
                receipt = a.push(7, one(2))
                break
        assert receipt.stands
        assert receipt.attempt == 1

    def test_a_server_that_starts_late_is_found(self, place: Place, calls: Calls) -> None:
        """Connect goes on trying until there is a server."""
        place.start()
        place.stop()
        waiting = threading.Semaphore(0)
        calls.before = lambda _command: waiting.release()
        connecting = wait_in_thread(lambda: place.connect("a"))
        for _ in range(2):  # the first try has failed
            assert waiting.acquire(timeout=BOUND_SECONDS)
        place.start()
        assert connecting.result().joined.incarnation == 1

    def test_closing_ends_a_wait(self, place: Place, calls: Calls) -> None:
        """A pull that waits in another thread ends with the client, not with its timeout."""
        a = place.start().connect("a")
        waiting = threading.Event()
        calls.before = lambda command: waiting.set() if isinstance(command, Pull) else None
        pulling = wait_in_thread(lambda: a.pull(7))
        assert waiting.wait(BOUND_SECONDS)
        a.close()
        with pytest.raises(errors.TransportError, match="closed"):
            pulling.result()

    def test_a_step_that_is_too_far_is_waited_for(self, place: Place, calls: Calls) -> None:
        """Reduce waits for earlier steps to close, and then contributes after all."""
        place.start(Policy(roster=["a", "b"], open_steps_max=2))
        a, b = place.connect("a"), place.connect("b")
        for step in (0, 1):
            a.push(step, one(step))
        waiting = threading.Event()
        calls.before = lambda command: waiting.set() if isinstance(command, Pull) else None
        reducing = wait_in_thread(lambda: a.reduce(2, one(2)))
        assert waiting.wait(BOUND_SECONDS)
        for step in (0, 1, 2):
            b.push(step, one(100 * step))
        assert number(reducing.result()) == 202
        assert a.status().receipts["too_far"] >= 1


@pytest.mark.usefixtures("spools_all_in_files")
class TestSpool:
    def test_it_is_emptied_when_steps_close_and_removed_at_the_end(self, place: Place) -> None:
        """An update is kept from its push until its step is known to be closed, and no longer."""
        place.start()
        a, b = place.connect("a"), place.connect("b")
        assert place.spooled() == []
        a.push(7, {"w": np.ones(3), "n": np.ones(3, np.int8)})
        a.push(7, {"w": np.ones(4), "n": np.ones(3, np.int8)})
        assert len(place.spooled()) == 2  # the one in place of the other
        b.push(7, {"w": np.ones(4), "n": np.ones(3, np.int8)})
        a.pull(7)
        b.pull(7)
        assert place.spooled() == []
        a.push(8, one(2))
        a.close()
        b.close()
        assert list(place.spools.iterdir()) == []

    def test_what_cannot_count_is_not_kept(self, place: Place) -> None:
        """A refused update, and one to a step that is over, leave the spool at once."""
        place.start(Policy(roster=["a", "b"], keep_steps=1))
        a, b = place.connect("a"), place.connect("b")
        a.push(7, one(2))
        assert b.push(7, np.zeros(3)).status is Status.MISMATCH
        assert b.push(70, one(2)).status is Status.TOO_FAR
        assert len(place.spooled()) == 1
        b.push(7, one(5))
        assert a.push(7, one(2)).status is Status.CLOSED
        a.push(8, one(2))
        b.push(8, one(2))
        with pytest.raises(errors.Expired):
            b.pull(7)
        with pytest.raises(errors.NoUpdate):
            b.pull(3)
        a.pull(8)
        b.pull(8)
        assert place.spooled() == []

    def test_it_does_not_grow_without_pulls(self, place: Place) -> None:
        """A worker that only pushes keeps few updates, though it never asks what became of them."""
        a = place.start(ALONE).connect("a")
        for step in range(20):
            assert a.push(step, one(step)).status is Status.ACCEPTED
        assert len(place.spooled()) <= 5
        assert [number(a.pull(step)) for step in range(20)] == list(range(20))


def damage(path: Path) -> None:
    """Change one number in a part, as a bad disk would: the file can still be read."""
    data = bytearray(path.read_bytes())
    position = data.index(np.float64(1234.5).tobytes())
    data[position : position + 8] = np.float64(4321.5).tobytes()
    path.write_bytes(data)


class TestResend:
    def test_a_damaged_part_is_sent_again_after_a_restart(self, place: Place) -> None:
        """The server finds it out when it starts, and the client that waits sends it again."""
        place.start()
        a = place.connect("a")
        a.push(7, np.array([1234.5, 1.0]))
        place.stop()
        (part,) = place.staged()
        damage(part)
        place.start()
        assert place.aggregator.status().open_steps[0].contributed == ()
        pulling = wait_in_thread(lambda: a.pull(7))
        b = place.connect("b")
        aggregate = b.reduce(7, np.array([0.5, 1.0]))
        assert np.asarray(aggregate.tensor).tolist() == [1235.0, 2.0]
        assert who(aggregate) == ["a", "b"]
        assert same_bits(pulling.result().tensors, aggregate.tensors)

    @pytest.mark.parametrize("size_bytes", [None, 0, 100])
    def test_a_lost_part_is_sent_again(self, place: Place, size_bytes: int | None) -> None:
        """Removed or cut, found out when the step is summed: both get the whole sum."""
        place.start()
        a, b = place.connect("a"), place.connect("b")
        a.push(7, np.array([1234.5, 1.0]))
        (part,) = place.staged()
        data = part.read_bytes()
        part.unlink()
        if size_bytes is not None:
            part.write_bytes(data[:size_bytes])
        assert b.push(7, np.array([0.5, 1.0])).status is Status.ACCEPTED
        with pytest.raises(errors.NotYet):
            b.pull(7, timeout_seconds=0)
        for worker in (a, b):
            aggregate = worker.pull(7)
            assert np.asarray(aggregate.tensor).tolist() == [1235.0, 2.0]
        assert place.spooled() == []


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    """A server process that gives freed memory back at once, where its C library can."""
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.setenv(name, str(128 << 10))
    server = ServerProcess(Job(("x",), 2), tmp_path)
    assert server.start(), server.process.complaint()
    yield server
    server.stop()


@contextmanager
def two_clients(server: ServerProcess) -> Iterator[tuple[Client, Client]]:
    with (
        onefold.connect(server.address, "0", timeout_seconds=BOUND_SECONDS) as a,
        onefold.connect(server.address, "1", timeout_seconds=BOUND_SECONDS) as b,
    ):
        yield a, b


class TestServerKilled:
    def restart(self, server: ServerProcess) -> None:
        server.process.kill()
        assert server.start(), server.process.complaint()

    def test_while_a_pull_waits(self, server: ServerProcess, calls: Calls) -> None:
        """The pull goes on as if nothing had been, and gives what it would have given."""
        polls = threading.Semaphore(0)
        calls.before = lambda command: polls.release() if isinstance(command, Pull) else None
        with two_clients(server) as (a, b):
            a.push(0, np.array([0.1, 1e300]))
            pulling = wait_in_thread(lambda: a.pull(0))
            assert polls.acquire(timeout=BOUND_SECONDS)
            self.restart(server)
            assert polls.acquire(timeout=BOUND_SECONDS)  # it has noticed, and asked again
            aggregate = b.reduce(0, np.array([0.2, -1e300]))
            exact = float(Fraction(0.1) + Fraction(0.2))
            assert np.asarray(aggregate.tensor).tolist() == [exact, 0.0]
            assert same_bits(pulling.result().tensors, aggregate.tensors)
            assert [c.attempt for c in aggregate.contributors] == [1, 1]

    def test_while_an_aggregate_is_on_its_way(
        self, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed between two blocks of a part: the part begins again, and every bit is right."""
        begun, blocks = [], 0
        add, restart_part = Assembly.add, Assembly.restart_part

        def beginning(assembly: Assembly) -> None:
            begun.append(blocks)
            restart_part(assembly)

        def adding(assembly: Assembly, batch: object) -> None:
            nonlocal blocks
            add(assembly, batch)
            blocks += 1
            if blocks == 1:
                self.restart(server)

        monkeypatch.setattr(Assembly, "restart_part", beginning)
        monkeypatch.setattr(Assembly, "add", adding)
        size = 4 << 20  # 32 MiB: far more than what is under way at a time
        values = np.random.default_rng(0).standard_normal(size)
        with two_clients(server) as (a, b):
            a.push(0, values)
            b.push(0, np.zeros(size))
            assert np.asarray(a.pull(0).tensor).tobytes() == values.tobytes()
        assert begun[0] == 0
        assert 1 <= begun[1] < 32


def anonymous_bytes(pid: int) -> int:
    """The memory of a process that is no file's."""
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if "RssAnon" in line) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is read from Linux's /proc")
def test_the_server_does_not_hold_what_passes_through(server: ServerProcess) -> None:
    """96 MiB pushed and pulled by each of two: the server grows by less than two of the four."""
    assert server.process._process is not None
    pid, done, seen = server.process._process.pid, threading.Event(), list[int]()

    def watch() -> None:
        while not done.wait(0.005):
            seen.append(anonymous_bytes(pid))

    watching = threading.Thread(target=watch)
    with two_clients(server) as (a, b):
        before = anonymous_bytes(pid)
        watching.start()
        try:
            values = np.arange(24 << 20, dtype=np.float32)
            a.push(0, values)
            b.push(0, values)
            for client in (a, b):
                assert np.array_equal(np.asarray(client.pull(0).tensor), 2 * values)
        finally:
            done.set()
            watching.join(BOUND_SECONDS)
    assert len(seen) > 10
    assert max(seen) - before < 1.5 * values.nbytes
