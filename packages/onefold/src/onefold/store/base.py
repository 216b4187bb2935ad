"""What every store does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

from onefold.errors import Damaged, Expired, NoUpdate
from onefold.ledger import Change, Closing, Outcome, StepClosed
from onefold.parts import Manifest, Payload

__all__ = ["Part", "Store", "WrittenPart", "check_readable"]

Part: TypeAlias = tuple[pa.Schema, Iterable[pa.RecordBatch]]
WrittenPart: TypeAlias = tuple[str, Sequence[pa.RecordBatch]]


class Store(Protocol):
    """Keeps parts, changes and aggregates. Safe to use from several threads.

    Parts are staged before the ledger has decided about the update that they make up, so a part
    belongs to nobody until a committed contribution names it (its ``payload`` is the manifest as
    JSON). What no contribution names is swept when the store opens.
    """

    @property
    def run(self) -> str:
        """The id of the run, made once."""

    def open(self) -> None:
        """Acquire what the store needs.

        Raises:
            StoreLocked: Another process has it open.
            StoreError: It cannot be used.
        """

    def close(self) -> None:
        """Release it."""

    def fact(self, name: str, initial: str) -> str:
        """What is known of the run by ``name``: what was first said of it, ``initial`` if nothing.

        It is durable when this returns.
        """

    def changes(self) -> Iterator[Change]:
        """The changes that rebuild the ledger: members, the signature, and the open steps."""

    def commit(self, changes: Sequence[Change], *, durable: bool) -> None:
        """Write changes down, all or none; with ``durable`` they survive a power cut."""

    def stage(self, step: int, part: Part, *, durable: bool) -> str:
        """Keep a part as it streams in, whole or not at all, and return its name."""

    def discard(self, parts: Iterable[str]) -> None:
        """Forget staged parts; unknown names are ignored."""

    def payload(self, manifest: Manifest) -> Payload:
        """The staged parts that a manifest names.

        Raises:
            Damaged: A part is missing or is not whole.
            ProtocolError: The parts do not make up the manifest.
            StoreError: A part cannot be read now; later it may.
        """

    def write_aggregate(self, step: int, parts: Iterable[Part]) -> list[WrittenPart]:
        """Keep the parts of an aggregate, durable but not yet visible; their names and content."""

    def close_step(self, closing: Closing, manifest: Manifest | None) -> None:
        """Make a closed step and its aggregate visible, durably; drop its contributions."""

    def closed_step(self, step: int) -> StepClosed | None:
        """What a step closed with; None if it never did."""

    def aggregate_manifest(self, step: int) -> Manifest | None:
        """The manifest of a closed step's aggregate; None if it was skipped.

        Raises:
            Expired: It was pruned.
            Damaged: It is not whole, or the step has not closed.
            StoreError: It cannot be read now.
        """

    def aggregate_part(self, step: int, part: str) -> tuple[pa.Schema, Sequence[pa.RecordBatch]]:
        """A part of a visible aggregate.

        Raises:
            Expired: It was pruned.
            NoUpdate: The step was skipped.
            Damaged: It is not whole, or the step has not closed.
            StoreError: It cannot be read now.
        """

    def prune(self, keep_steps: int) -> None:
        """Drop the tensors of all but the last ``keep_steps`` steps to close."""

    def staged_bytes(self) -> int:
        """How many bytes of parts are staged."""


def check_readable(step: int, outcome: Outcome | None, *, pruned: bool) -> None:
    """Check that a step has an aggregate that may be read; ``outcome`` is None while it is open.

    Raises:
        Damaged: The step has not closed; what lies in its place is not yet an aggregate.
        NoUpdate: It was skipped.
        Expired: Its tensors were pruned.
    """
    if outcome is None:
        raise Damaged(f"step {step} has no aggregate: it has not closed; pull it to wait for that")
    if outcome == "skipped":
        raise NoUpdate(f"step {step} was skipped and has no aggregate")
    if pruned:
        raise Expired(f"the aggregate of step {step} was pruned (keep_steps)")
