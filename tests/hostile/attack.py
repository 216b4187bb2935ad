# ruff: noqa: T201  # a program for people
"""Attack a running server through its socket, and see after each batch that it serves as before.

Run by ``fuzz.py``, or as ``python tests/hostile/attack.py --seconds 60 --seed 1``. The server is
another process, so a crash of native code is seen. After each batch of hostile connections two
workers push and pull a step: the sum must have the right bits, nothing may be staged, and the
server must not have taken more memory than it is allowed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import http2
import numpy as np
import onefold_targets
from mutations import mutated_bytes, mutated_json, unframed
from streams import update_seeds

import onefold
from onefold import wire
from onefold.launch.plan import Job
from onefold.launch.server import ServerProcess
from onefold.status import RunStatus

__all__ = ["Attack", "Broken"]

ANSWER_SECONDS = 20.0
SETTLE_SECONDS = 60.0
GROWTH_BYTES_MAX = 512 << 20
"""How much more anonymous memory than after its first batch a server may ever have."""
WINDOW_BYTES = 60_000
"""Somewhat less than HTTP/2 lets a client send before it is told to go on."""
VERBS = (b"DoAction", b"DoGet", b"DoPut", b"DoExchange", b"ListFlights", b"GetFlightInfo")
VERBS += (b"GetSchema", b"ListActions", b"Handshake", b"PollFlightInfo", b"Nothing")


class Broken(Exception):
    """The server did not stand it; the message says what and how to see it again."""


class Attack:
    """A server, two honest workers, and whoever comes."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.done: Counter[str] = Counter()
        self._server = ServerProcess(Job(("true",), 2), directory)
        self._seeds = [unframed(seed) for seed in update_seeds()]
        self._commands = [wire.encode_command(each) for each in onefold_targets._COMMANDS]
        self._step = 0
        self._allowed_bytes = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[Attack]:
        """Server and workers, until the end."""
        if not self._server.start():
            raise Broken("the server did not start")
        try:
            address = self._server.address
            self._place = ("127.0.0.1", int(address.rpartition(":")[2]))
            with (
                onefold.connect(address, "0", timeout_seconds=SETTLE_SECONDS) as first,
                onefold.connect(address, "1", timeout_seconds=SETTLE_SECONDS) as second,
            ):
                self._workers = (first, second)
                self._serves()
                yield self
        finally:
            self._server.stop()

    def batch(self, number: int, size: int = 40) -> None:
        """Hostile connections, all from one seed; then the server serves as before.

        Raises:
            Broken: It does not.
        """
        rng = Random(f"{self.seed} {number}")
        kept: list[socket.socket] = []
        try:
            for _ in range(size):
                way = rng.choice(_WAYS)
                self.done[way.__name__.strip("_")] += way(self, rng, kept)
            for connection in kept:
                connection.close()
            self._serves()
        except (onefold.OnefoldError, OSError, Broken, AssertionError) as error:
            again = f"--seed {self.seed} --first {number} --batches 1"
            raise Broken(f"in batch {number} ({again}): {error!r}") from error
        finally:
            for connection in kept:
                connection.close()

    def memory_bytes(self) -> int:
        """The server's anonymous memory."""
        process = self._server.process._process
        assert process is not None
        assert process.poll() is None, f"the server ended with status {process.returncode}"
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) << 10
        raise AssertionError("no RssAnon")

    def _serves(self) -> None:
        """A whole step with the right bits, nothing staged, memory as before."""
        self._step += 1
        first, second = self._workers
        values = np.array([1e16, 1.0, self._step])
        for worker, update in ((first, values), (second, -values / 3)):
            # Where a call had to be made again, it is called a duplicate.
            assert worker.push(self._step, {"w": update}).stands
        expected = onefold.sum_dense([values, -values / 3])
        for worker in self._workers:
            assert worker.pull(self._step).tensors["w"].tobytes() == expected.tobytes()
        pause = threading.Event()
        end = time.monotonic() + SETTLE_SECONDS
        while (status := first.status()).staged_bytes and time.monotonic() < end:
            pause.wait(0.05)  # of a connection that was cut the server learns a little later
        _check_clean(status)
        memory = self.memory_bytes()
        self._allowed_bytes = self._allowed_bytes or memory + GROWTH_BYTES_MAX
        assert memory < self._allowed_bytes, f"{memory} bytes of anonymous memory"

    def _connected(self) -> socket.socket:
        connection = socket.create_connection(self._place, ANSWER_SECONDS)
        connection.settimeout(ANSWER_SECONDS)
        return connection

    def _send(self, data: bytes, rng: Random, kept: list[socket.socket]) -> None:
        """Send, then leave at once, half of the connection, or stay till the batch is over."""
        with contextlib.suppress(OSError):
            connection = self._connected()
            how = rng.randrange(3)
            if how and len(kept) < 30:
                kept.append(connection)
            with contextlib.suppress(OSError):
                connection.sendall(data)
                if how == 1:
                    connection.shutdown(socket.SHUT_WR)
            if connection not in kept:
                connection.close()

    def _garbage(self, rng: Random, kept: list[socket.socket]) -> int:
        """No HTTP at all, an older one, or the beginning of ours cut anywhere."""
        text = b"POST /arrow.flight.protocol.FlightService/DoPut HTTP/1.1\r\nHost: x\r\n\r\n"
        random = rng.randbytes(rng.choice((0, 1, 9, 24, 300, 9000)))
        begun = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b"")
        data = rng.choice((random, text, begun[: rng.randrange(34)], b"\x16\x03\x01" + random))
        self._send(data, rng, kept)
        return 1

    def _frames(self, rng: Random, kept: list[socket.socket]) -> int:
        """A right beginning, then frames of any kind, whose lengths may lie."""
        data = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b"")
        count = rng.choice((1, 5, 30))
        for _ in range(count):
            body = rng.randbytes(rng.choice((0, 4, 5, 8, 36, 500, 16384)))
            length = rng.choice((None, None, None, 0, 2**24 - 1, len(body) + 1))
            stream = rng.choice((0, 1, 2, 3, 2**31 - 1, rng.getrandbits(32)))
            data += http2.frame(rng.randrange(12), rng.randrange(256), stream, body, length=length)
        self._send(data, rng, kept)
        return count

    def _headers(self, rng: Random, kept: list[socket.socket]) -> int:
        """Headers without end, with wrong names, or that are none."""
        many = [(b"x-%d" % index, rng.randbytes(40)) for index in range(rng.choice((1, 50, 2000)))]
        long = [(b"x" * rng.choice((1, 8000, 100_000)), b"y" * rng.choice((0, 9000, 900_000)))]
        block = rng.choice((http2.headers(many), http2.headers(long), rng.randbytes(200)))
        data = http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b"")
        pieces = [block[at : at + 16384] for at in range(0, len(block), 16384)]
        for index, piece in enumerate(pieces):
            is_last = index == len(pieces) - 1 and rng.random() < 0.8
            flags = http2.END_HEADERS * is_last | rng.choice((0, http2.END_STREAM))
            data += http2.frame(9 if index else http2.HEADERS, flags, 1, piece)
        self._send(data, rng, kept)
        return 1

    def _calls(self, rng: Random, _: list[socket.socket]) -> int:
        """Calls as gRPC has them, of anything; each is waited for, or cut in the middle."""
        count, answered = rng.choice((1, 8, 16)), 0
        with contextlib.suppress(ConnectionError), self._connected() as connection:
            connection.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b""))
            beyond = b""
            for index in range(count):
                stream = 2 * index + 1
                data = self._call(rng, stream)
                cut = rng.randrange(len(data)) if rng.random() < 0.05 else WINDOW_BYTES
                if cut < len(data):  # what has not come to its end has no answer
                    connection.sendall(data[:cut])
                    break
                connection.sendall(data)
                answered += 1
                goes_on, beyond = self._ended(connection, stream, beyond)
                if not goes_on:
                    break
        return answered

    def _ended(self, connection: socket.socket, stream: int, beyond: bytes) -> tuple[bool, bytes]:
        try:
            return http2.ended(connection, stream, beyond)
        except TimeoutError as error:
            raise Broken(f"a call has no answer within {ANSWER_SECONDS} s") from error

    def _call(self, rng: Random, stream: int) -> bytes:
        method = rng.choice(
            (b"DoPut", b"DoPut", b"DoPut", b"DoAction", b"DoGet", rng.choice(VERBS))
        )
        kind = rng.choice((b"", b"", b"", b"", b"application/grpc+json", b"text/html"))
        command = mutated_json(rng.choice(self._commands), rng)
        if _is_valid(command):
            command = command[:-1]
        match method:
            case b"DoAction":
                messages = [http2.proto((1, b"join"), (2, command))]
            case b"DoGet":
                messages = [http2.proto((1, command))]
            case b"DoPut" | b"DoExchange":
                messages = self._put(rng)
            case _:
                messages = [http2.proto((1, 2), (2, command))]
        framed = [_grpc(message, rng) for message in messages]
        return http2.request(method, stream, framed, kind=kind)

    def _put(self, rng: Random) -> list[bytes]:
        """The messages of a put by a real worker, for the next step, one of them changed."""
        stated, stream = rng.choice(self._seeds)
        joined = self._workers[0].joined
        manifest = {**json.loads(stated), "digest": "0" * 32, "parts": ["0"]}
        put = wire.Put(joined.run, "0", joined.incarnation, self._step + 1, 1, 0)
        words = json.loads(wire.encode_command(put)) | {"manifest": manifest}
        command = json.dumps(words).encode()
        if rng.random() < 0.2:
            command = mutated_json(command, rng)
        made = http2.flight_data(command, stream)
        at = rng.randrange(len(made))
        match rng.randrange(8):
            case 0:
                made.insert(at, made[rng.randrange(len(made))])
            case 1:
                del made[at]
            case 2:
                made[at].append((3, rng.randbytes(20)))
            case 3:
                return [mutated_bytes(http2.proto(*fields), rng) for fields in made]
            case 4:
                made[at].append((rng.choice((1, 2, 3, 4, 999, 1000)), rng.randrange(2**32)))
            case _:
                made[at] = [
                    (number, mutated_bytes(value, rng) if isinstance(value, bytes) else value)
                    for number, value in made[at]
                ]
        return [http2.proto(*fields) for fields in made]


def _is_valid(command: bytes) -> bool:
    """Whether it may do what it says: without authentication anybody can join as a worker."""
    with contextlib.suppress(onefold.OnefoldError):
        return isinstance(wire.decode_command(command), wire.Join | wire.Leave)
    return False


def _check_clean(status: RunStatus) -> None:
    assert status.staged_bytes == 0, f"{status.staged_bytes} bytes stay staged"
    assert not status.open_steps, f"open steps {status.open_steps}"


def _grpc(message: bytes, rng: Random) -> bytes:
    if rng.random() < 0.9:
        return http2.grpc(message)
    length = rng.choice((None, 0, len(message) + 1, 2**31, 2**32 - 1))
    return http2.grpc(message, compressed=rng.choice((0, 1, 255)), length=length)


_WAYS: tuple[Callable[[Attack, Random, list[socket.socket]], int], ...] = (
    Attack._garbage,
    Attack._frames,
    Attack._headers,
    Attack._calls,
    Attack._calls,
    Attack._calls,
)


def main() -> int:
    """Attack until the time is over; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: 600)")
    parser.add_argument("--seed", type=int, help="of all batches (default: from the clock)")
    parser.add_argument("--first", type=int, default=0, help="the first batch (default: 0)")
    parser.add_argument("--batches", type=int, help="stop after so many")
    parser.add_argument("--keep", type=Path, help="where the server's output is kept")
    asked = parser.parse_args()
    seed = int(time.time()) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="attacked-", dir=asked.keep))
    start, number = time.monotonic(), asked.first
    attack = Attack(seed, directory)
    try:
        with attack.running():
            while time.monotonic() - start < asked.seconds:
                attack.batch(number)
                number += 1
                print(f"{time.monotonic() - start:5.0f} s  {dict(attack.done)}", flush=True)
                if asked.batches and number - asked.first >= asked.batches:
                    break
            print(f"{attack.memory_bytes():,} bytes of anonymous memory at the end")
    except Broken as error:
        print(f"BROKEN: {error}; the server's output is in {directory}")
        return 1
    finally:
        print(f"stat::number_of_executed_units: {sum(attack.done.values())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
