"""A disk that forgets, in a power cut, what was not synced.

:class:`Disk` is a directory with a record of what has reached the disk. :meth:`Disk.after` makes
the directory that is there after the process has been killed (nothing is lost) or the power cut:

* A file that was not synced is whole, cut short at any byte, has blocks of zeros, or is garbage.
* Names that were given, changed or removed since their directory was synced are so or not, each for
  itself and in any order.
* The ledger keeps its file, which SQLite writes only in checkpoints, and of its write-ahead log
  what was there at the last synchronisation. The rest is whole, cut at the end of any frame or
  within one, or torn block by block into what was written, what was there before, and zeros. Of a
  checkpoint that is going on, each half page of the file is old or new.

What SQLite promises and this builds on: a commit with ``synchronous = full`` syncs the log before
it returns; a checkpoint syncs the log, writes the pages, syncs the file; the log is begun anew only
after a complete checkpoint, and its new header is synced before the first frame is written
(https://www.sqlite.org/wal.html, https://www.sqlite.org/fileformat2.html#walformat).
"""

from __future__ import annotations

import copy
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Union

from struck import Strike, StruckFiles

LEDGER = "ledger.sqlite"
LOG = "ledger.sqlite-wal"
_BLOCK = 512
_LOG_HEADER = 32
_FRAME_HEADER = 24


@dataclass
class _File:
    content: bytes
    synced: bool


@dataclass
class _Folder:
    """``names`` as the process sees them, ``kept`` as the last sync left them, and what came since.

    A pending operation is the name that goes, the name that comes and what is then there.
    """

    names: dict[str, _Node] = field(default_factory=dict)
    kept: dict[str, _Node] = field(default_factory=dict)
    pending: list[tuple[str | None, str | None, _Node]] = field(default_factory=list)

    def sync(self) -> None:
        self.kept = dict(self.names)
        self.pending = []

    def change(self, gone: str | None, come: str | None, node: _Node) -> None:
        if gone is not None:
            self.names.pop(gone, None)
        if come is not None:
            self.names[come] = node
        self.pending.append((gone, come, node))


_Node = Union[_File, _Folder]  # noqa: UP007 - evaluated before the classes are complete


@dataclass
class _Ledger:
    """What has reached the disk of the ledger.

    ``log_synced`` bytes of the log are safe; ``log_before`` is the log as it was at that moment.
    """

    level: str = "full"
    begun: bool = False
    file: bytes = b""
    log_before: bytes = b""
    log_synced: int = 0
    torn: tuple[bytes, bytes, bytes] | None = None  # of a checkpoint: file before, after, the log
    half: int | None = None  # where the frames begin that a commit was about to write


class Disk(StruckFiles):
    """The directory of a run. ``losses`` counts what power cuts took from it."""

    def __init__(self, root: Path, strike: Strike | None = None, seed: int = 0) -> None:
        super().__init__(strike, seed)
        self.root = root
        self.losses: Counter[str] = Counter()
        self._tree = _folder_of(root)
        self._last_log = b""
        self._ledger = _Ledger(
            begun=(root / LEDGER).exists(),
            file=_content(root / LEDGER),
            log_before=_content(root / LOG),
            log_synced=len(_content(root / LOG)),
        )

    def connect(self, path: Path) -> sqlite3.Connection:
        """Some runs have SQLite checkpoint by itself, within commits, and not after 1000 pages."""
        connection = super().connect(path)
        if self.rng.random() < 0.4:
            connection.execute(f"pragma wal_autocheckpoint = {self.rng.randint(1, 8)}")
        return connection

    # Keeping the record.

    def written(self, path: Path, *, sync: bool) -> None:
        node = _File(path.read_bytes(), sync)
        self._parent(path).change(None, path.name, node)

    def renamed(self, path: Path, place: Path) -> None:
        parent = self._parent(path)
        parent.change(path.name, place.name, parent.names[path.name])

    def removed(self, path: Path) -> None:
        parent = self._parent(path)
        if path.name in parent.names:
            parent.change(path.name, None, parent.names[path.name])

    def made(self, path: Path) -> None:
        self._parent(path).change(None, path.name, _Folder())

    def synced(self, path: Path) -> None:
        if path == self.root or self.root in path.parents:
            self._folder(path).sync()

    def stating(self) -> None:
        self._last_log = self._now()[1]

    def stated(self) -> None:
        """Note what the last statement has brought to the disk."""
        ledger = self._ledger
        file, log = self._now()
        ledger.begun = True
        wrote = log != self._last_log  # a commit of nothing syncs nothing
        if file != ledger.file or (ledger.level == "full" and wrote) or not log:
            # A checkpoint, or a commit that was synced. A log that this emptied may come back
            # whole, as may one that was removed.
            ledger.file = file
            ledger.log_before = log or self._last_log
            ledger.log_synced = _end(ledger.log_before)
        else:
            self._note_new_log(log)

    def half_done(self, what: str, do: Callable[[], object]) -> None:
        """A commit has written and not yet synced; a checkpoint has copied some pages."""
        ledger = self._ledger
        file, log = self._now()
        do()
        after, log_after = self._now()
        if file != after:  # what a commit appends before it checkpoints is synced by that
            ledger.torn = (file, after, log_after if what == "commit" else log)
            return
        begun_anew = log[:_LOG_HEADER] != log_after[:_LOG_HEADER]
        ledger.half = _LOG_HEADER if begun_anew else _end(log)
        self._note_new_log(log_after)

    def _note_new_log(self, log: bytes) -> None:
        ledger = self._ledger
        if log and log[:_LOG_HEADER] != ledger.log_before[:_LOG_HEADER]:
            ledger.log_synced = _LOG_HEADER  # begun anew, and its header has been synced

    def set_level(self, level: str) -> None:
        self._ledger.level = level

    def _now(self) -> tuple[bytes, bytes]:
        return _content(self.root / LEDGER), _content(self.root / LOG)

    def _parent(self, path: Path) -> _Folder:
        return self._folder(path.parent)

    def _folder(self, path: Path) -> _Folder:
        folder = self._tree
        for name in path.relative_to(self.root).parts:
            folder = folder.names[name]
        return folder

    # What is there afterwards.

    def after_kill(self, root: Path, strike: Strike | None, seed: int) -> Disk:
        """All that was written; what was not synced still is not."""
        shutil.copytree(self.root, root, ignore=shutil.ignore_patterns("*-shm", "lock"))
        half_log = self._ledger.half
        if self._ledger.torn is not None:
            before, after, log = self._ledger.torn
            (root / LEDGER).write_bytes(_mixed(before, after, self.rng))
            (root / LOG).write_bytes(log)
        elif half_log is not None and self.rng.random() < 0.5:
            log = _content(root / LOG)
            (root / LOG).write_bytes(log[: self.rng.randint(min(half_log, len(log)), len(log))])
        disk = Disk(root, strike, seed)
        disk._tree = copy.deepcopy(self._tree)
        if self._ledger.torn is None:  # a checkpoint syncs the log before it begins
            disk._ledger = copy.deepcopy(self._ledger)
            disk._ledger.half = None
            disk._ledger.level = "full"
        return disk

    def after_power_cut(self, root: Path, strike: Strike | None, seed: int, rng: Random) -> Disk:
        """What was synced, and of the rest what chance decides."""
        root.mkdir()
        probability = rng.choice([0.0, 0.5, 0.5, 0.9, 1.0])
        self._write_folder(self._tree, root, rng, probability)
        self._write_ledger(root, rng)
        return Disk(root, strike, seed)

    def _write_folder(self, folder: _Folder, place: Path, rng: Random, probability: float) -> None:
        names = dict(folder.kept)
        for gone, come, node in folder.pending:
            if rng.random() >= probability:
                self.losses["names"] += 1
                continue
            if gone is not None:
                names.pop(gone, None)
            if come is not None:
                names[come] = node
        for name, node in names.items():
            if isinstance(node, _Folder):
                (place / name).mkdir()
                self._write_folder(node, place / name, rng, probability)
            else:
                (place / name).write_bytes(self._content_after(node, rng))

    def _content_after(self, file: _File, rng: Random) -> bytes:
        data = file.content
        if file.synced or not data:
            return data
        match rng.choice(["whole", "cut", "empty", "one block", "one block", "zeros", "garbage"]):
            case "whole":
                return data
            case "cut":
                self.losses["cut files"] += 1
                return data[: rng.randrange(len(data))]
            case "empty":
                self.losses["empty files"] += 1
                return b""
            case "one block":
                self.losses["files without a block"] += 1
                size = rng.choice([64, 64, _BLOCK])  # persistent memory has lines, not sectors
                start = rng.randrange(0, len(data), size)
                stop = min(start + size, len(data))
                return data[:start] + bytes(stop - start) + data[stop:]
            case "garbage":
                self.losses["garbage files"] += 1
                return rng.randbytes(len(data))
            case _:
                self.losses["torn files"] += 1
                return _torn(data, b"", rng, 0)

    def _write_ledger(self, root: Path, rng: Random) -> None:
        ledger = self._ledger
        if not ledger.begun:  # not even its name is certain
            if rng.random() < 0.5:
                (root / LEDGER).write_bytes(b"")
            return
        if ledger.torn is not None:
            before, after, log = ledger.torn
            self.losses["checkpoints"] += 1
            file = _mixed(before, after, rng)
        else:
            file, log = ledger.file, self._log_after(rng)
        (root / LEDGER).write_bytes(file)
        if log:
            (root / LOG).write_bytes(log)

    def _log_after(self, rng: Random) -> bytes:
        ledger = self._ledger
        _, log = self._now()
        if not log:  # emptied, or removed, and that was not synced
            return ledger.log_before if rng.random() < 0.5 else b""
        safe = ledger.log_synced
        ends = [end for end in _frames(log) if end > safe]
        if len(log) == safe or not ends:
            return log
        match rng.choice(["whole", "frame", "frame", "within", "torn"]):
            case "whole":
                return log
            case "frame":
                end = rng.choice([safe, *ends])
                self.losses["frames"] += sum(other > end for other in ends)
                return log[:end]
            case "within":
                self.losses["frames"] += 1
                return log[: rng.randint(safe, len(log))]
            case _:
                self.losses["torn logs"] += 1
                return _torn(log, ledger.log_before, rng, safe)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _folder_of(path: Path) -> _Folder:
    """A directory, all of which has reached the disk; without the ledger."""
    folder = _Folder()
    for child in sorted(path.iterdir()):
        if child.is_dir():
            folder.names[child.name] = _folder_of(child)
        elif not child.name.startswith(LEDGER) and child.name != "lock":
            folder.names[child.name] = _File(child.read_bytes(), synced=True)
    folder.sync()
    return folder


def _frames(log: bytes) -> list[int]:
    """Where each frame of a log ends that is of its present generation."""
    page = int.from_bytes(log[8:12], "big")
    size = _FRAME_HEADER + page
    ends = []
    for start in range(_LOG_HEADER, len(log) - size + 1, size):
        if log[start + 8 : start + 16] != log[16:24]:
            break
        ends.append(start + size)
    return ends


def _end(log: bytes) -> int:
    return max(_frames(log), default=_LOG_HEADER)


def _torn(data: bytes, before: bytes, rng: Random, safe: int) -> bytes:
    """Each block from ``safe`` on as it was written, as it was before, or zeros."""
    result = bytearray(data)
    for start in range(safe, len(data), _BLOCK):
        stop = min(start + _BLOCK, len(data))
        match rng.choice(["written", "before", "zeros"]):
            case "before":
                old = before[start:stop]
                result[start:stop] = old + bytes(stop - start - len(old))
            case "zeros":
                result[start:stop] = bytes(stop - start)
    return bytes(result)


def _mixed(before: bytes, after: bytes, rng: Random) -> bytes:
    """Each block of a file of which some have been written."""
    result = bytearray(after)
    for start in range(0, len(after), _BLOCK):
        if rng.random() < 0.5:
            old = before[start : start + _BLOCK]
            result[start : start + _BLOCK] = old + bytes(_BLOCK - len(old))
    return bytes(result)
