"""A running server stands whatever comes through its socket.

``make fuzz`` attacks for as long as it is told to.
"""

from __future__ import annotations

from pathlib import Path

import attack
import http2
import pyarrow as pa
import pytest
from attack import Attack, Broken
from streams import stream_of

from onefold import wire
from onefold.parts import part_schema


def put_of(victim: Attack, stream: bytes) -> list[list[tuple[int, bytes | int]]]:
    """The messages of a put by a worker, which names no manifest."""
    joined = victim._workers[0].joined
    put = wire.Put(joined.run, "0", joined.incarnation, victim._step + 1, 1)
    return http2.flight_data(wire.encode_command(put), stream)


def sent(victim: Attack, messages: list[list[tuple[int, bytes | int]]]) -> None:
    """Make a put, and wait for what becomes of it."""
    framed = [http2.grpc(http2.proto(*fields)) for fields in messages]
    with victim._connected() as connection:
        connection.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0, b""))
        connection.sendall(http2.request(b"DoPut", 1, framed))
        http2.ended(connection, 1, b"")


def test_it_serves_as_before(tmp_path: Path) -> None:
    """After hundreds of malformed connections and calls a step has the right bits.

    Nothing stays staged, and memory is as it was.
    """
    with Attack(5, tmp_path).running() as victim:
        for number in range(6):
            victim.batch(number, size=20)
    assert victim.done.keys() == {"garbage", "frames", "headers", "calls"}
    assert victim.done["calls"] > 100


def test_a_message_without_data_after_a_dictionary(tmp_path: Path) -> None:
    """Arrow's reader follows a null pointer there: such a stream must not be read at all.

    A step goes as if it had never come, in the same process.
    """
    names = pa.array(["w"]).dictionary_encode()
    column = pa.record_batch([names], ["tensor"])
    with Attack(1, tmp_path).running() as victim:
        schema, dictionary, _ = put_of(victim, stream_of(column.schema, [column]))
        for message in ([], [(3, b"metadata")]):
            sent(victim, [schema, dictionary, message])
            victim._serves()


def test_what_is_valid_is_taken(tmp_path: Path) -> None:
    """The attack speaks well enough to be understood: one of its puts, unchanged, is kept."""
    schema = part_schema("dense", "float64")
    batch = pa.record_batch([["w"], [0], [[1.0]]], schema=schema)
    with Attack(1, tmp_path).running() as victim:
        sent(victim, put_of(victim, stream_of(schema, [batch])))
        assert victim._workers[0].status().staged_bytes > 0
        with pytest.raises(AssertionError, match="bytes stay staged"):
            attack._check_clean(victim._workers[0].status())


def test_a_server_that_ends_is_noticed(tmp_path: Path) -> None:
    """What the attack looks for it finds: a server that a signal ended."""
    with Attack(1, tmp_path).running() as victim:
        process = victim._server.process._process
        assert process is not None
        process.kill()
        process.wait()
        with pytest.raises((AssertionError, OSError, Broken)):
            victim.memory_bytes()


def test_the_frames_are_what_others_write() -> None:
    """The bytes of a frame, a message and a header are those of the standards."""
    assert http2.frame(http2.SETTINGS, 1, 0, b"") == bytes([0, 0, 0, 4, 1, 0, 0, 0, 0])
    assert http2.grpc(b"ab") == b"\0\0\0\0\2ab"
    assert http2.proto((1, 2), (1000, b"x")) == b"\x08\x02\xc2\x3e\x01x"
    assert http2.headers([(b"te", b"trailers")]) == b"\0\2te\x08trailers"
    assert http2.headers([(b"x", b"y" * 300)])[3:6] == b"\x7f\xad\x01"
