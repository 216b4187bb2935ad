"""The lock on a store's directory, and whether the directory is still the one that was locked.

Files are written, renamed and removed by their names, so whoever moves the directory of a running
server, and starts another at its old place, would have two servers write over each other. The lock
file tells them apart: only under the name of the directory that was locked is it the same file.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from onefold.errors import StoreError, StoreLocked

__all__ = ["DirectoryLock"]


class DirectoryLock:
    """Held from its construction to :meth:`close`, or to the end of the process.

    Args:
        directory: What to lock; it exists.

    Raises:
        StoreLocked: Another process has it, or another store of this one.
        OSError: The lock file cannot be made.
    """

    NAME = "lock"
    """The name of its file."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / self.NAME
        self._file = self._path.open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise StoreLocked(
                f"the directory {directory} is open in another process; a directory has one server "
                "at a time: stop the other, or use another directory"
            ) from None
        self._locked = os.fstat(self._file.fileno())

    def check(self) -> None:
        """See that the directory is where it was locked.

        Raises:
            StoreError: It is not there, or another one is.
        """
        directory = self._path.parent
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(
                f"the directory {directory}, or the file {self.NAME} in it, has been moved or "
                "removed: put it back, and it goes on"
            ) from None
        except OSError as error:
            raise StoreError(
                f"the directory {directory} cannot be reached: {error.strerror}; once it can, it "
                "goes on"
            ) from error
        if not os.path.samestat(found, self._locked):
            raise StoreError(
                f"the directory {directory} is not the one that this process has opened: that has "
                "been moved or removed, and another stands in its place, which is left as it is; "
                "stop this process, and start it again where its directory is now"
            )

    def close(self) -> None:
        """Give it back."""
        self._file.close()
