"""A store in memory that knows what of it is on the disk, and a disk that fails.

Whatever is written can be cut off: the server is killed before it (nothing was written) or after it
(it was written, and nobody was told), or the disk refuses it. A killed server loses nothing that
was written. A power cut loses what was not synced: of the ledger any number of the last commits,
of the staged parts any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from onefold.aggregate import Aggregate
from onefold.errors import Expired, StoreError
from onefold.ledger import Change, Closing, StepClosed
from onefold.parts import Manifest, Payload
from onefold.simulation.choices import Choices
from onefold.store import MemoryStore
from onefold.store.base import Part, WrittenPart

__all__ = ["Crashed", "Disk", "SimulatedStore"]


class Crashed(BaseException):
    """The server's process has been killed, in the middle of a call."""


@dataclass(slots=True)
class Disk:
    """What a server's directory holds.

    Attributes:
        transactions: The commits, and whether each was durable, with the aggregate that it made
            visible.
        parts: The staged parts, and whether each was synced.
        aggregates: The parts of aggregates, by step.
    """

    choices: Choices
    rates: Mapping[str, float]
    run: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    transactions: list[tuple[tuple[Change, ...], bool]] = field(default_factory=list)
    manifests: dict[int, Manifest | None] = field(default_factory=dict)
    parts: dict[str, tuple[pa.Buffer, bool]] = field(default_factory=dict)
    aggregates: dict[int, dict[str, pa.Buffer]] = field(default_factory=dict)
    prunings: list[int] = field(default_factory=list)
    writes: int = 0

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Do one write, or fail to.

        Raises:
            StoreError: The disk refuses it.
            Crashed: The server is killed before or after it.
        """
        self.writes += 1
        if self._strikes("write error", what):
            raise StoreError(f"{what}: no space left on the simulated disk")
        if self._strikes("crash before", what):
            raise Crashed
        yield
        if self._strikes("crash after", what):
            raise Crashed

    def lose_power(self) -> None:
        """Lose what was not synced."""
        kept = len(self.transactions)
        while kept and not self.transactions[kept - 1][1]:
            kept -= 1
        unsynced = len(self.transactions) - kept
        kept += self.choices.whole(0, unsynced, "commits that survive", self.writes)
        del self.transactions[kept:]
        # What has survived a power cut is on the disk.
        self.transactions = [(changes, True) for changes, _ in self.transactions]
        for place, (name, (buffer, is_synced)) in enumerate(list(self.parts.items())):
            fate = self.choices.among(("kept", "lost", "torn"), "part", self.writes, place)
            if is_synced or fate == "kept":
                self.parts[name] = (buffer, True)
            elif fate == "lost":
                del self.parts[name]
            else:
                self.parts[name] = (_torn(buffer), True)

    def _strikes(self, kind: str, what: str) -> bool:
        return self.choices.strikes(self.rates[kind], kind, self.writes, what)


class SimulatedStore(MemoryStore):
    """What a server that has just been started finds on a disk, and writes to it."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self.run = disk.run = disk.run or self.run
        self._facts = disk.facts
        self._staged = {name: buffer for name, (buffer, _) in disk.parts.items()}
        self._aggregates = dict(disk.aggregates)
        self._manifests = dict(disk.manifests)
        for changes, _ in disk.transactions:
            self._log.add(changes)
        for keep_steps in disk.prunings:
            super().prune(keep_steps)

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:
        """Write changes down, all or none."""
        what = f"commit of {type(changes[0]).__name__}"
        with self._disk.writing(what):
            super().commit(changes, durable=durable)
            self._disk.transactions.append((tuple(changes), durable))

    def stage(self, step: int, part: Part, *, durable: bool) -> str:
        """Keep a part."""
        with self._disk.writing("part"):
            name = super().stage(step, part, durable=durable)
            self._disk.parts[name] = (self._staged[name], durable)
        return name

    def discard(self, parts: Iterable[str]) -> None:
        """Forget staged parts."""
        for part in list(parts):
            super().discard([part])
            self._disk.parts.pop(part, None)

    def write_aggregate(self, step: int, parts: Iterable[Part]) -> list[WrittenPart]:
        """Keep the parts of an aggregate."""
        with self._disk.writing("aggregate"):
            written = super().write_aggregate(step, parts)
            self._disk.aggregates[step] = self._aggregates[step]
        return written

    def close_step(self, closing: Closing, manifest: Manifest | None) -> None:
        """Close a step, durably."""
        with self._disk.writing("commit of StepClosed"):
            super().close_step(closing, manifest)
            self._disk.transactions.append((closing.changes, True))
            self._disk.manifests[closing.closed.step] = manifest

    def aggregate(self, closed: StepClosed) -> Aggregate:
        """What a step closed with, as it is on the disk; without tensors if they were pruned."""
        try:
            manifest = self.aggregate_manifest(closed.step)
        except Expired:
            manifest = None
        if manifest is None:
            return Aggregate.of(closed, {})
        parts = [self.aggregate_part(closed.step, part)[1] for part in manifest.parts]
        return Aggregate.of(closed, Payload(manifest, parts).update().tensors)

    def prune(self, keep_steps: int) -> None:
        """Drop the tensors of all but the last steps to close."""
        with self._disk.writing("pruning"):
            super().prune(keep_steps)
            self._disk.prunings.append(keep_steps)


def _torn(buffer: pa.Buffer) -> pa.Buffer:
    """The same file with other bytes where numbers were, if there are any."""
    content = bytearray(buffer.to_pybytes())
    with pa.ipc.open_file(buffer) as reader:
        for index in range(reader.num_record_batches):
            numbers = reader.get_batch(index).column("values").values.buffers()[1]
            start = 0 if numbers is None else numbers.address - buffer.address
            for place in range(start, start + (0 if numbers is None else numbers.size)):
                content[place] ^= 0xFF
    return pa.py_buffer(bytes(content))
