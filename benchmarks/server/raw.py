"""Arrow Flight and nothing else: what comes is thrown away, and what goes is in memory.

``python -m benchmarks.server.raw`` is the server. It prints its port and ends with its input.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import flight

__all__ = ["RawClient", "raw_server"]

Part = tuple[pa.Schema, Sequence[pa.RecordBatch]]


class _Server(flight.FlightServerBase):
    def __init__(self) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._kept: list[pa.RecordBatch] = []

    def do_put(
        self,
        _context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Read all, and say so. What is put as ``keep`` can be got."""
        batches = [chunk.data for chunk in reader if descriptor.command == b"keep"]
        for _ in reader:
            pass
        self._kept = batches or self._kept
        writer.write(b"got it")

    def do_get(
        self, _context: flight.ServerCallContext, _ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        """What was kept."""
        schema = self._kept[0].schema
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(schema, self._kept))


class RawClient:
    """Its client, with the calls that the real one makes."""

    def __init__(self, address: str) -> None:
        self._flight = flight.FlightClient(address)

    def put(self, part: Part, command: bytes = b"drop") -> None:
        """A part, until it is acknowledged."""
        schema, batches = part
        descriptor = flight.FlightDescriptor.for_command(command)
        writer, answers = self._flight.do_put(descriptor, schema)
        with writer:
            for batch in batches:
                writer.write_batch(batch)
            writer.done_writing()
            answers.read()

    def get(self) -> int:
        """What was kept, batch by batch; how many bytes it is."""
        return sum(chunk.data.nbytes for chunk in self._flight.do_get(flight.Ticket(b"")))

    def close(self) -> None:
        """Give the connection up."""
        self._flight.close()


@contextmanager
def raw_server() -> Iterator[RawClient]:
    """A server in a process of its own, and a client that is connected to it."""
    command = [sys.executable, "-m", "benchmarks.server.raw"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        client = RawClient(f"grpc://127.0.0.1:{int(process.stdout.readline())}")
        try:
            yield client
        finally:
            client.close()
            process.stdin.close()


if __name__ == "__main__":
    served = _Server()
    print(served.port, flush=True)
    sys.stdin.read()
    served.shutdown()
