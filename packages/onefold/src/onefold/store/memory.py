"""A store in memory, for one process."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from onefold.errors import Damaged
from onefold.ledger import (
    Change,
    Closing,
    Contributed,
    IncarnationSeen,
    Outcome,
    RefusalNoted,
    SignatureFixed,
    StepClosed,
    StepOpened,
    Unrecorded,
    WorkerJoined,
    WorkerLeft,
)
from onefold.parts import Manifest, Payload
from onefold.store.base import Part, WrittenPart, check_readable

__all__ = ["MemoryStore"]


class MemoryStore:
    """Keeps everything in Arrow memory, copied on receipt."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex
        self._lock = threading.RLock()
        self._facts: dict[str, str] = {}
        self._log = _Log()
        self._staged: dict[str, pa.Buffer] = {}
        self._aggregates: dict[int, dict[str, pa.Buffer]] = {}
        self._manifests: dict[int, Manifest | None] = {}
        self._pruned: set[int] = set()

    def __str__(self) -> str:
        return "memory"

    def open(self) -> None:
        """Nothing to acquire."""

    def close(self) -> None:
        """Nothing to release; what is kept goes with the object."""

    def fact(self, name: str, initial: str) -> str:
        """What was first said of the run by this name."""
        with self._lock:
            return self._facts.setdefault(name, initial)

    def changes(self) -> Iterator[Change]:
        """What was committed and is not over."""
        with self._lock:
            return iter(list(self._log.changes()))

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:  # noqa: ARG002
        """Keep the changes; memory has no better."""
        with self._lock:
            self._log.add(changes)

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
            self._manifests[step] = manifest
            self._log.add(closing.changes)
            self.discard([name for name in self._staged if name.startswith(f"{step}-")])

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        with self._lock:
            return self._log.closed(step)

    def aggregate_manifest(self, step: int) -> Manifest | None:
        """The manifest of a closed step's aggregate."""
        with self._lock:
            if self._outcome(step) == "skipped":
                return None
            check_readable(step, self._outcome(step), pruned=step in self._pruned)
            return self._manifests[step]

    def aggregate_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of a visible aggregate."""
        with self._lock:
            check_readable(step, self._outcome(step), pruned=step in self._pruned)
            if part not in self._aggregates.get(step, {}):
                raise Damaged(f"the aggregate of step {step} has no part {part!r}")
            return _read(self._aggregates[step][part])

    def prune(self, keep_steps: int) -> None:
        """Drop the tensors of all but the last steps to close."""
        with self._lock:
            for step in self._log.drop_oldest(keep_steps):
                self._pruned.add(step)
                self._aggregates.pop(step, None)

    def staged_bytes(self) -> int:
        """How many bytes of parts are staged."""
        with self._lock:
            return sum(buffer.size for buffer in self._staged.values())

    def _outcome(self, step: int) -> Outcome | None:
        closed = self._log.closed(step)
        return None if closed is None else closed.outcome


class _Log:
    """The changes that rebuild the ledger, without those that later ones made void.

    They are taken all or none, also where a Ctrl-C comes in between: they are noted at once and
    remembered one by one, and whoever comes next remembers again what was noted last. Remembering
    a list twice is as good as once.
    """

    def __init__(self) -> None:
        self._noted: tuple[Change, ...] = ()
        self._members: dict[tuple[str, ...], Change] = {}
        self._fixed: SignatureFixed | None = None
        self._highest: StepClosed | None = None
        self._open: dict[int, dict[tuple[str, str], Change]] = {}
        self._closed: dict[int, StepClosed] = {}
        self._newest: dict[int, None] = {}

    def add(self, changes: Iterable[Change]) -> None:
        """Take changes."""
        self._settle()
        self._noted = tuple(changes)
        self._settle()

    def changes(self) -> Iterator[Change]:
        """All that is not void, in an order in which a ledger can apply it."""
        self._settle()
        yield from self._members.values()
        yield from filter(None, (self._fixed, self._highest))
        for changes in self._open.values():
            yield from changes.values()

    def closed(self, step: int) -> StepClosed | None:
        """What a step closed with."""
        self._settle()
        return self._closed.get(step)

    def drop_oldest(self, keep_steps: int) -> list[int]:
        """All but the last steps to close, of those that have not been dropped before."""
        self._settle()
        dropped = list(itertools.islice(self._newest, max(0, len(self._newest) - keep_steps)))
        for step in dropped:
            del self._newest[step]
        return dropped

    def _settle(self) -> None:
        for change in self._noted:
            self._remember(change)
        self._noted = ()

    def _remember(self, change: Change) -> None:
        match change:
            case WorkerJoined(worker, life):
                self._members["life", worker, life] = change
                self._members.pop(("left", worker), None)
            case WorkerLeft(worker):
                self._members["left", worker] = change
            case IncarnationSeen(worker):
                self._members["seen", worker] = change
            case SignatureFixed():
                self._fixed = self._fixed or change
            case StepClosed(step):
                self._open.pop(step, None)
                self._closed[step] = change
                self._newest[step] = None
                if self._highest is None or step > self._highest.step:
                    self._highest = change
            case _:
                self._remember_open(self._open.setdefault(change.step, {}), change)

    @staticmethod
    def _remember_open(
        known: dict[tuple[str, str], Change],
        change: StepOpened | Contributed | Unrecorded | RefusalNoted,
    ) -> None:
        match change:
            case StepOpened():
                known["opened", ""] = change
            case Contributed(_, contribution):
                known["standing", contribution.worker] = change
                known.pop(("refusal", contribution.worker), None)
            case Unrecorded(step, worker, reason):
                known.pop(("standing", worker), None)
                known["refusal", worker] = RefusalNoted(step, worker, reason)
            case RefusalNoted(_, worker):
                known["refusal", worker] = change


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
