"""Bugs that are planted to see that the model finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock

from disk import Disk

from onefold.parts import Payload
from onefold.register import Register
from onefold.store import directory
from onefold.store.directory import DirectoryStore
from onefold.store.tables import Tables

__all__ = ["PLANTED"]


class _Unsynced(Disk):
    """Says that it has synced a file when it has not."""

    def written(self, path: Path, *, sync: bool) -> None:
        super().written(path, sync=sync and self.unlike(path))

    def unlike(self, path: Path) -> bool:
        raise NotImplementedError


class _StagedUnsynced(_Unsynced):
    def unlike(self, path: Path) -> bool:
        return path.parent.name != "staged"


class _AggregatesUnsynced(_Unsynced):
    def unlike(self, path: Path) -> bool:
        return path.parent.name == "staged"


class _Holes(Disk):
    """Takes a few bytes out of the middle of what was not synced: it still looks like a part."""

    def _content_after(self, file: object, rng: Random) -> bytes:  # noqa: ARG002
        data = file.content
        if file.synced:
            return data
        middle = len(data) // 2
        return data[:middle] + bytes(8) + data[middle + 8 :]


class _NamesUnsynced(Disk):
    """Never brings the names in one directory to the disk."""

    name = ""

    def synced(self, path: Path) -> None:
        if path.name != self.name:
            super().synced(path)


class _StagedNamesUnsynced(_NamesUnsynced):
    name = "staged"


class _AggregateNamesUnsynced(_NamesUnsynced):
    name = "aggregates"


@contextmanager
def never_durable() -> Iterator[None]:
    """Commits of the ledger are not synced, nor is its log emptied."""
    transact = Tables._transact

    def hasty(self: Tables, work: Callable[[], object], *, durable: bool) -> object:
        return transact(self, work, durable=False)

    with (
        mock.patch.object(Tables, "_transact", hasty),
        mock.patch.object(Tables, "_settle"),
    ):
        yield


@contextmanager
def believed() -> Iterator[None]:
    """What is staged is not compared with its digest."""
    with mock.patch.object(Payload, "verify"):
        yield


@contextmanager
def nothing_recovered() -> Iterator[None]:
    """Neither at the start nor at the close."""
    with (
        mock.patch.object(Register, "_recovered", Register._kept),
        mock.patch.object(Payload, "verify"),
    ):
        yield


@contextmanager
def told_before_it_is_kept() -> Iterator[None]:
    """A step is closed in the ledger before its aggregate is in its place."""
    close = DirectoryStore.close_step

    def hasty(self: DirectoryStore, closing: object, manifest: object) -> None:
        data = directory._manifest_bytes(manifest) if manifest else b""
        self._tables.close_step(closing.changes, directory._digest(data) if manifest else None)
        with mock.patch.object(Tables, "close_step"):
            close(self, closing, manifest)

    with mock.patch.object(DirectoryStore, "close_step", hasty):
        yield


@contextmanager
def swept_first() -> Iterator[None]:
    """The contributions of a step are removed before it has closed."""
    close = DirectoryStore.close_step

    def hasty(self: DirectoryStore, closing: object, manifest: object) -> None:
        step = closing.closed.step
        self.discard(path.stem for path in self._staged.glob(f"{step}-*.arrow"))
        close(self, closing, manifest)

    with mock.patch.object(DirectoryStore, "close_step", hasty):
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


PLANTED: dict[str, tuple[type[Disk], Callable[[], object]]] = {
    "staged parts are not synced": (_StagedUnsynced, _nothing),
    "parts of aggregates are not synced": (_AggregatesUnsynced, _nothing),
    "names of staged parts are not synced": (_StagedNamesUnsynced, _nothing),
    "names of aggregates are not synced": (_AggregateNamesUnsynced, _nothing),
    "the ledger is not synced": (Disk, never_durable),
    "digests are not compared": (_Holes, believed),
    "nothing is recovered": (Disk, nothing_recovered),
    "a step is told before it is kept": (Disk, told_before_it_is_kept),
    "contributions are removed first": (Disk, swept_first),
}
