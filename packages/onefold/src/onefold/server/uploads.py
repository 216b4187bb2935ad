"""Parts on their way in: how many, how large, how long silent.

What is counted here is what the store does not know of yet. The bytes staged there are asked for
only when they matter: between two askings their number is at most what it was, and what has come
since.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from onefold.errors import OverLimit, StagingFull
from onefold.server.limits import Limits

__all__ = ["Staging", "Upload", "Uploads"]

_MEASURE_SECONDS_MIN = 0.1
"""How often the store is asked at most, while there is no room."""

_MEASURE_SECONDS_MAX = 1.0
"""How often it is asked at least, since what is not pushed over the network comes there too."""


class Staging(Protocol):
    """What is asked of an aggregator."""

    def staged_bytes(self) -> int:
        """How many bytes of parts are kept."""

    def uncommitted_parts(self, worker: str) -> int:
        """How many parts a worker has sent and not committed."""


class Upload:
    """One part on its way.

    Args:
        uploads: All of them.
        worker: Who sends it.
        step: For which step.
        peer: The other end of its connection, as gRPC writes it.
        now: On the clock of :class:`Uploads`.
    """

    def __init__(self, uploads: Uploads, worker: str, step: int, peer: str, now: float) -> None:
        self._uploads = uploads
        self.worker, self.step, self.peer = worker, step, peer
        self.begun_at = now
        self.waits_since: float | None = None
        self.size_bytes = 0

    def wait(self) -> None:
        """From now on whoever sends is waited for: the time that is taken here is not theirs."""
        self._uploads.wait(self)

    def end(self) -> None:
        """All has come, or no more will be read."""
        self.waits_since = None

    def add(self, size_bytes: int) -> None:
        """A record batch has come.

        Raises:
            OverLimit: The part has become too large.
            StagingFull: All parts together have.
        """
        self._uploads.add(self, size_bytes)


class Uploads:
    """All parts on their way. Several threads may use it.

    Args:
        limits: How much is taken.
        staging: Tells what is kept already.
        clock: Gives seconds that never go back.
    """

    def __init__(
        self, limits: Limits, staging: Staging, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._staging = staging
        self._clock = clock
        self._lock = threading.Lock()
        self._going_on: set[Upload] = set()
        self._per_worker: Counter[str] = Counter()
        self._kept_bytes = 0  # at most, since the store has been asked
        self._on_their_way_bytes = 0
        self._measured_at = float("-inf")

    @contextmanager
    def admit(self, worker: str, step: int, peer: str) -> Iterator[Upload]:
        """Let a part come in, for as long as the block lasts.

        Raises:
            StagingFull: The worker has too many on their way or not committed.
        """
        upload = Upload(self, worker, step, peer, self._clock())
        self._begin(upload)
        try:
            yield upload
        finally:
            self._end(upload)

    def wait(self, upload: Upload) -> None:
        """As :meth:`Upload.wait`."""
        upload.waits_since = self._clock()

    def add(self, upload: Upload, size_bytes: int) -> None:
        """As :meth:`Upload.add`."""
        upload.end()
        limit = self._limits.part_bytes_max
        with self._lock:
            upload.size_bytes += size_bytes
            self._on_their_way_bytes += size_bytes
        if upload.size_bytes > limit:
            raise OverLimit(
                f"{_where(upload)}a part has at most {limit} bytes here (part_bytes_max), of this "
                f"one {upload.size_bytes} have come; raise the limit of the server (clients send "
                "parts of up to about 64 MiB), or send a smaller update"
            )
        self._check_room(upload)

    def overdue(self) -> list[Upload]:
        """The parts whose next piece is waited for, and has been, or they, for too long."""
        now = self._clock()
        with self._lock:
            return [upload for upload in self._going_on if self._is_overdue(upload, now)]

    def _is_overdue(self, upload: Upload, now: float) -> bool:
        since = upload.waits_since
        if since is None:
            return False
        silent_seconds, seconds = now - since, now - upload.begun_at
        limits = self._limits
        return silent_seconds >= limits.silent_seconds_max or seconds >= limits.upload_seconds_max

    def _begin(self, upload: Upload) -> None:
        worker, limits = upload.worker, self._limits
        uncommitted = self._staging.uncommitted_parts(worker)
        with self._lock:
            if self._per_worker[worker] >= limits.uploads_per_worker_max:
                raise StagingFull(
                    f"{_where(upload)}a worker sends at most {limits.uploads_per_worker_max} parts "
                    "at the same time here (uploads_per_worker_max), and as many are on their way; "
                    "those that stand still are ended after "
                    f"{limits.silent_seconds_max:g} s, then send this one again"
                )
            if uncommitted + self._per_worker[worker] >= limits.uncommitted_parts_per_worker_max:
                raise StagingFull(
                    f"{_where(upload)}a worker has at most "
                    f"{limits.uncommitted_parts_per_worker_max} parts here that are not committed "
                    f"(uncommitted_parts_per_worker_max), this one has {uncommitted}; commit them, "
                    "or wait: what is abandoned is dropped after ten minutes"
                )
            self._per_worker[worker] += 1
            self._going_on.add(upload)

    def _end(self, upload: Upload) -> None:
        with self._lock:
            self._going_on.discard(upload)
            self._per_worker[upload.worker] -= 1
            if not self._per_worker[upload.worker]:
                del self._per_worker[upload.worker]
            # Whether it was kept, only the store knows: it is asked before anybody is refused.
            self._on_their_way_bytes -= upload.size_bytes
            self._kept_bytes += upload.size_bytes

    def _check_room(self, upload: Upload) -> None:
        limit = self._limits.staged_bytes_max
        if limit is None:
            return
        self._measure(_MEASURE_SECONDS_MAX)
        if self._staged_bytes() <= limit:
            return
        self._measure(_MEASURE_SECONDS_MIN)
        staged = self._staged_bytes()
        if staged > limit:
            raise StagingFull(
                f"{_where(upload)}the parts of open steps have at most {limit} bytes here "
                f"(staged_bytes_max), with this one {staged}; there is room again once steps have "
                "closed: then send it again, or raise the limit of the server"
            )

    def _staged_bytes(self) -> int:
        with self._lock:
            return self._kept_bytes + self._on_their_way_bytes

    def _measure(self, older_seconds: float) -> None:
        """Ask the store, unless it has been asked within ``older_seconds``."""
        with self._lock:
            now = self._clock()
            if now - self._measured_at < older_seconds:
                return
            self._measured_at = now
            before = self._kept_bytes
        measured = self._staging.staged_bytes()
        with self._lock:
            # What has ended meanwhile may be in the measure as well; the next one tells.
            self._kept_bytes += measured - before


def _where(upload: Upload) -> str:
    return f"worker {upload.worker!r}, step {upload.step}: "
