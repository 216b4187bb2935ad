"""Work in pieces on a few threads of our own.

Kernels release the interpreter's lock, so plain Python threads run them side by side. (Numba's own
threads abort after a fork, or when several Python threads use them at once.) Whoever calls works on
the pieces too, and takes them all if the other threads are busy with somebody else's, so calls from
any number of threads cannot wait for each other. Which thread does which piece is left to chance;
results do not depend on it. A sum that a signal handler or a finalizer makes stays on the thread
that it interrupts: that thread may be holding a lock which starting others takes.

How many threads: the ``threads`` of a call, else ``ONEFOLD_THREADS`` as it was at the first call,
else the processors that this process may use. A forked child starts threads of its own.

Threads take subnormal numbers for zero if the thread that starts them does
(:mod:`onefold.exact.subnormals`), so one that does starts none, and sums of floats are refused
there by whoever asks for them.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue

from onefold.checks import as_integer, show
from onefold.errors import InvalidInput
from onefold.exact.subnormals import knows_subnormals

__all__ = ["in_pieces", "thread_count"]


_STOP_SECONDS = 1.0


class _Job:
    """Pieces of work that several threads take, each of them once.

    No step leaves a lock behind that a Ctrl-C in its middle could not give back, which is why there
    are only lists and queues here (Python's own pool hangs after a few hundred).

    Args:
        work: What to do with the number of a piece.
        pieces: How many there are.
        helpers: How many threads may help.
    """

    def __init__(self, work: Callable[[int], None], pieces: int, helpers: int) -> None:
        self._work = work
        self._numbers = list(reversed(range(pieces)))
        self._helpers = helpers
        self._places = [None] * helpers
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def take(self) -> None:
        """Work until no piece is left."""
        while True:
            try:
                number = self._numbers.pop()
            except IndexError:
                return
            self._work(number)

    def help(self) -> None:
        """The same in another thread, unless it is over."""
        if not self._took_place():
            return
        error = None
        try:
            self.take()
        except BaseException as caught:  # noqa: BLE001 - whoever has the job raises it
            error = caught
        self._ended.put(error)

    def end(self) -> list[BaseException]:
        """Give out no more, wait for those who help, and return what they raised."""
        self._numbers.clear()
        helping = self._helpers
        while self._took_place():
            helping -= 1
        return [error for _ in range(helping) if (error := self._ended.get()) is not None]

    def _took_place(self) -> bool:
        try:
            self._places.pop()
        except IndexError:
            return False
        return True


class _Pool:
    """The threads of this process, made when first needed, and more of them when more are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def offer(self, job: _Job, helpers: int) -> None:
        """Let so many threads help with a job."""
        with self._lock:
            while len(self._threads) < helpers:
                thread = threading.Thread(target=self._serve, name="onefold-sums", daemon=True)
                thread.start()
                self._threads.append(thread)
        for _ in range(helpers):
            self._jobs.put(job)

    def stop(self) -> None:
        """End all threads, before what they work with is taken apart."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.help()
            del job  # and with it all that is summed, while there is nothing to do


_pool = _Pool()


def _begin_anew() -> None:
    global _pool  # noqa: PLW0603  # threads do not survive a fork, nor does who holds a lock
    _pool = _Pool()


def _stop() -> None:
    _pool.stop()


os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_stop)


class _Here(threading.local):
    """Whether this thread is sharing out work."""

    is_working = False


_here = _Here()


def in_pieces(work: Callable[[int], None], pieces: int, threads: int) -> None:
    """Call ``work`` with each number below ``pieces`` once, on up to ``threads`` threads.

    Raises:
        Exception: The first that ``work`` raised; not every piece may then have been done.
    """
    helpers = min(threads, pieces) - 1
    if helpers <= 0 or _here.is_working or not knows_subnormals():
        for piece in range(pieces):
            work(piece)
        return
    job = _Job(work, pieces, helpers)
    try:
        _here.is_working = True
        _pool.offer(job, helpers)
        job.take()
    finally:
        _here.is_working = False
        errors = job.end()
    if errors:
        raise errors[0]


def thread_count(threads: object = None) -> int:
    """The ``threads`` of a call, checked, or the default.

    Raises:
        InvalidInput: It is not a positive integer.
    """
    if threads is None:
        return _default_threads()
    count = as_integer(threads)
    if count is None or count < 1:
        raise InvalidInput(f"threads must be a positive integer, not {show(threads)}")
    return count


@cache
def _default_threads() -> int:
    wanted = os.environ.get("ONEFOLD_THREADS")
    if not wanted:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if not wanted.isdecimal() or int(wanted) < 1:
        raise InvalidInput(f"ONEFOLD_THREADS must be a positive integer, not {wanted!r}")
    return int(wanted)
