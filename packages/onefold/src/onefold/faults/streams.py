"""One whole Flight call, kept so that it can be forwarded, and forwarded again."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import flight

__all__ = ["Action", "Answer", "Get", "Put", "Stream", "plain_message"]

_MEMORY_BYTES_MAX = 8 << 20
"""A put larger than this is kept in a temporary file, so that a proxy's memory stays small."""

# A call that outlives its caller must end some day; the longest wait that a client asks a server
# for in one call is well below this.
_OPTIONS = flight.FlightCallOptions(timeout=120.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered: the messages of a put or an action."""

    messages: tuple[bytes, ...]

    @property
    def byte_count(self) -> int:
        """The size of all messages."""
        return sum(map(len, self.messages))


class Put:
    """A ``DoPut``, read to its end from ``reader``; ``close()`` frees what it holds.

    The stream is always drained, even where the call is to be lost: a handler that answers before
    it has drained its stream loses the answer.
    """

    def __init__(
        self, descriptor: flight.FlightDescriptor, reader: flight.MetadataRecordBatchReader
    ) -> None:
        self._descriptor = descriptor
        self._metadata: list[tuple[bool, pa.Buffer | None]] = []
        self._spool = tempfile.SpooledTemporaryFile(_MEMORY_BYTES_MAX)  # noqa: SIM115 - see close()
        self._schema = reader.schema
        self.byte_count = 0
        with pa.ipc.new_stream(self._spool, self._schema) as writer:
            for chunk in _chunks(reader):
                if chunk.data is not None:
                    writer.write_batch(chunk.data)
                    self.byte_count += chunk.data.nbytes
                self._metadata.append((chunk.data is not None, chunk.app_metadata))

    def forward(self, client: flight.FlightClient) -> Answer:
        """Send it to a server and wait for the whole answer."""
        writer, answers = client.do_put(self._descriptor, self._schema, _OPTIONS)
        messages: list[bytes] = []
        with writer:
            self._spool.seek(0)
            batches = pa.ipc.open_stream(self._spool)
            for has_data, metadata in self._metadata:
                _write(writer, batches.read_next_batch() if has_data else None, metadata)
            writer.done_writing()
            while (message := answers.read()) is not None:
                messages.append(message.to_pybytes())
        return Answer(tuple(messages))

    def close(self) -> None:
        """Free the memory or file."""
        self._spool.close()


@dataclass(frozen=True, slots=True)
class Action:
    """A ``DoAction``."""

    action: flight.Action

    @property
    def byte_count(self) -> int:
        """The size of the body."""
        return int(self.action.body.size)

    def forward(self, client: flight.FlightClient) -> Answer:
        """Send it to a server and wait for the whole answer."""
        results = client.do_action(self.action, _OPTIONS)
        return Answer(tuple(result.body.to_pybytes() for result in results))

    def close(self) -> None:
        """Nothing to free."""


class Get:
    """A ``DoGet``; the answer streams, so that a proxy never holds an aggregate."""

    def __init__(self, ticket: flight.Ticket) -> None:
        self._ticket = ticket
        self.byte_count = len(ticket.ticket)

    def forward(self, client: flight.FlightClient) -> Stream:
        """Send it to a server and wait for the answer's beginning."""
        return Stream(client.do_get(self._ticket, _OPTIONS))

    def close(self) -> None:
        """Nothing to free."""


class Stream:
    """The answer to a ``DoGet``, as it comes. ``byte_count`` grows as it is read."""

    def __init__(self, reader: flight.FlightStreamReader) -> None:
        self._reader = reader
        self.schema = reader.schema
        self.byte_count = 0

    def __iter__(self) -> Iterator[tuple[pa.RecordBatch, pa.Buffer | None]]:
        for chunk in _chunks(self._reader):
            self.byte_count += chunk.data.nbytes
            yield chunk.data, chunk.app_metadata

    def cancel(self) -> None:
        """Want no more of it."""
        self._reader.cancel()


def plain_message(error: Exception) -> str:
    """What a server said, without what gRPC adds on each side of each hop."""
    return re.split(r"\. (?:Detail|gRPC client debug context|Client context): ", str(error))[0]


def _chunks(reader: flight.MetadataRecordBatchReader) -> Iterator[flight.FlightStreamChunk]:
    while True:
        try:
            yield reader.read_chunk()
        except StopIteration:
            return


def _write(
    writer: flight.FlightStreamWriter, batch: pa.RecordBatch | None, metadata: pa.Buffer | None
) -> None:
    if batch is None:
        writer.write_metadata(metadata)
    elif metadata is None:
        writer.write_batch(batch)
    else:
        writer.write_with_metadata(batch, metadata)
