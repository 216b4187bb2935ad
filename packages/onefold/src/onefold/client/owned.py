"""Temporary directories whose owner may be killed: who is gone is seen, and tidied up after.

The owner holds a lock (``flock``) on the directory itself for as long as it lives. The system takes
the lock back however the process ends, so a directory whose lock can be had has no owner any more.
Whoever tidies up holds the lock while it removes. An owner that gets no lock on the directory that
it has just made, or finds it gone, was taken for dead in that moment, and makes another.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["OwnedDirectory", "remove_orphans"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class OwnedDirectory:
    """A new temporary directory that this process owns, until :meth:`remove` or its end.

    Args:
        prefix: What its name begins with.
        parent: Where to make it; None for the system's usual place.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, prefix: str, parent: Path | str | None) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).absolute()
            lock = _owner_lock(self.path)
            if lock is not None:
                break
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Remove it with all that is in it."""
        self._finalizer()


def remove_orphans(prefix: str, parent: Path | str | None) -> None:
    """Remove what owners that are gone left behind, as far as it is this user's."""
    place = Path(tempfile.gettempdir() if parent is None else parent)
    with suppress(OSError):
        for path in place.iterdir():
            if path.name.startswith(prefix):
                _remove_orphan(path)


def _remove(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # and no child that it forked
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _remove_orphan(path: Path) -> None:
    with suppress(OSError), _opened(path) as lock:  # gone, or somebody else's
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where its owner lives
            shutil.rmtree(path, ignore_errors=True)


def _owner_lock(path: Path) -> int | None:
    """The lock on a new directory; None if it was taken for an orphan just now."""
    try:
        lock = os.open(path, _DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:  # a file system that cannot lock a directory cannot do so for an orphan either
        return lock
    if path.exists():
        return lock
    os.close(lock)
    return None


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, _DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
