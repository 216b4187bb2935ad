"""A store in memory, for one process."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from onefold.errors import Damaged, Expired
from onefold.ledger import Change, Closing, Contributed, StepClosed, Unrecorded
from onefold.parts import Manifest, Payload
from onefold.store.base import Part, WrittenPart

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps everything in Arrow memory, copied on receipt."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex
        self._lock = threading.RLock()
        self._changes: list[Change] = []
        self._staged: dict[str, pa.Buffer] = {}
        self._aggregates: dict[int, dict[str, pa.Buffer]] = {}
        self._closed: dict[int, tuple[StepClosed, Manifest | None]] = {}
        self._pruned: set[int] = set()

    def open(self) -> None:
        """Nothing to acquire."""

    def close(self) -> None:
        """Nothing to release; what is kept goes with the object."""

    def changes(self) -> Iterator[Change]:
        """What was committed and is not over."""
        with self._lock:
            return iter(list(self._changes))

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:  # noqa: ARG002
        """Keep the changes; memory has no better."""
        with self._lock:
            for change in changes:
                self._forget_replaced(change)
            self._changes += changes

    def stage(self, step: int, part: Part, *, durable: bool) -> str:  # noqa: ARG002
        """Copy a part."""
        name = f"{step}-{uuid.uuid4().hex}"
        buffer = _copied(part)
        with self._lock:
            self._staged[name] = buffer
        return name

    def discard(self, parts: Iterable[str]) -> None:
        """Forget staged parts."""
        with self._lock:
            for part in parts:
                self._staged.pop(part, None)

    def payload(self, manifest: Manifest) -> Payload:
        """The staged parts that a manifest names."""
        with self._lock:
            try:
                buffers = [self._staged[part] for part in manifest.parts]
            except KeyError as missing:
                raise Damaged(f"the part {missing} is missing") from None
        return Payload(manifest, [_read(buffer)[1] for buffer in buffers])

    def write_aggregate(self, step: int, parts: Iterable[Part]) -> list[WrittenPart]:
        """Keep the parts of an aggregate; visible once the step is closed."""
        written = {str(index): _copied(part) for index, part in enumerate(parts)}
        with self._lock:
            self._aggregates[step] = written
        return [(name, _read(buffer)[1]) for name, buffer in written.items()]

    def close_step(self, closing: Closing, manifest: Manifest | None) -> None:
        """Make the aggregate visible and drop the step's contributions."""
        step = closing.closed.step
        with self._lock:
            self._closed[step] = (closing.closed, manifest)
            self._changes = [
                change
                for change in self._changes
                if isinstance(change, StepClosed) or getattr(change, "step", None) != step
            ]
            self._changes += closing.changes
            self.discard([name for name in self._staged if name.startswith(f"{step}-")])

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        with self._lock:
            entry = self._closed.get(step)
            return entry[0] if entry else None

    def aggregate_manifest(self, step: int) -> Manifest | None:
        """The manifest of a closed step's aggregate."""
        with self._lock:
            if step in self._pruned:
                raise Expired(f"the aggregate of step {step} was pruned (keep_steps)")
            return self._closed[step][1]

    def aggregate_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of a visible aggregate."""
        self.aggregate_manifest(step)
        with self._lock:
            if part not in self._aggregates.get(step, {}):
                raise Damaged(f"the aggregate of step {step} has no part {part!r}")
            return _read(self._aggregates[step][part])

    def prune(self, keep_steps: int) -> None:
        """Drop the tensors of all but the last steps to close."""
        with self._lock:
            for step in list(self._closed)[:-keep_steps]:
                self._aggregates.pop(step, None)
                self._pruned.add(step)

    def staged_bytes(self) -> int:
        """How many bytes of parts are staged."""
        with self._lock:
            return sum(buffer.size for buffer in self._staged.values())

    def _forget_replaced(self, change: Change) -> None:
        """An earlier contribution has no part in rebuilding the ledger."""
        if not isinstance(change, Contributed | Unrecorded):
            return
        worker = change.worker if isinstance(change, Unrecorded) else change.contribution.worker
        self._changes = [
            kept
            for kept in self._changes
            if not (
                isinstance(kept, Contributed)
                and (kept.step, kept.contribution.worker) == (change.step, worker)
            )
        ]


def _copied(part: Part) -> pa.Buffer:
    schema, batches = part
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def _read(buffer: pa.Buffer) -> tuple[pa.Schema, list[pa.RecordBatch]]:
    with pa.ipc.open_file(buffer) as reader:
        return reader.schema, [reader.get_batch(i) for i in range(reader.num_record_batches)]
