"""HTTP/2, gRPC and Flight messages as bytes, written by hand so that each may also be wrong."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Iterable

import pyarrow as pa

__all__ = [
    "DATA",
    "END_HEADERS",
    "END_STREAM",
    "HEADERS",
    "PREFACE",
    "SETTINGS",
    "ended",
    "flight_data",
    "frame",
    "grpc",
    "headers",
    "proto",
    "request",
]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4
_FRAME_BYTES_MAX = 16384


def frame(kind: int, flags: int, stream: int, body: bytes, *, length: int | None = None) -> bytes:
    """A frame; ``length`` may lie."""
    size = len(body) if length is None else length
    return struct.pack(">I", size & 0xFFFFFF)[1:] + struct.pack(">BBI", kind, flags, stream) + body


def headers(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A block of headers: literals, without the table and without Huffman's code."""
    return b"".join(b"\0" + _string(name) + _string(value) for name, value in fields)


def _string(text: bytes) -> bytes:
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, size = len(text) - 127, b"\x7f"
    while rest > 127:
        size, rest = size + bytes([rest & 127 | 128]), rest >> 7
    return size + bytes([rest]) + text


def grpc(message: bytes, *, compressed: int = 0, length: int | None = None) -> bytes:
    """A message as gRPC frames it."""
    return struct.pack(">BI", compressed, len(message) if length is None else length) + message


def proto(*fields: tuple[int, bytes | int]) -> bytes:
    """A protobuf message of bytes and numbers."""
    made = b""
    for number, value in fields:
        if isinstance(value, int):
            made += _varint(number << 3) + _varint(value)
        else:
            made += _varint(number << 3 | 2) + _varint(len(value)) + value
    return made


def _varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def request(method: bytes, stream: int, messages: Iterable[bytes], *, kind: bytes = b"") -> bytes:
    """A whole call of the Flight service: its headers, its messages, and the end of its stream."""
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/arrow.flight.protocol.FlightService/" + method),
        (b":authority", b"localhost"),
        (b"te", b"trailers"),
        (b"content-type", kind or b"application/grpc"),
    ]
    made = frame(HEADERS, END_HEADERS, stream, headers(fields))
    for message in messages:
        for at in range(0, max(1, len(message)), _FRAME_BYTES_MAX):
            made += frame(DATA, 0, stream, message[at : at + _FRAME_BYTES_MAX])
    return made + frame(DATA, END_STREAM, stream, b"")


def flight_data(command: bytes, stream: bytes) -> list[list[tuple[int, bytes | int]]]:
    """The fields of the messages by which a client puts an Arrow stream."""
    made: list[list[tuple[int, bytes | int]]] = []
    for message in pa.ipc.MessageReader.open_stream(io.BytesIO(stream)):
        body = b"" if message.body is None else message.body.to_pybytes()
        made.append([(2, message.metadata.to_pybytes()), (1000, body)])
    made[0].insert(0, (1, proto((1, 2), (2, command))))
    return made


def ended(connection: socket.socket, stream: int, data: bytes) -> tuple[bool, bytes]:
    """Read until the other side has ended a stream; False if it has reset it, or the connection.

    After a reset gRPC may answer nothing more on the same connection. Returns also what was read
    beyond.
    """
    while True:
        while len(data) >= 9:
            size = int.from_bytes(data[:3], "big")
            if len(data) < 9 + size:
                break
            kind, flags = data[3], data[4]
            number = int.from_bytes(data[5:9], "big") & 0x7FFFFFFF
            data = data[9 + size :]
            if kind == GOAWAY or (kind == RST_STREAM and number == stream):
                return False, b""
            if kind in (DATA, HEADERS) and flags & END_STREAM and number == stream:
                return True, data
        more = connection.recv(1 << 16)
        if not more:
            return False, b""
        data += more
