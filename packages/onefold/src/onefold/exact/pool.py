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

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from onefold.checks import as_integer, show
from onefold.errors import InvalidInput
from onefold.exact.subnormals import knows_subnormals

__all__ = ["in_pieces", "thread_count"]


class _Pool:
    """The threads of this process, made when first needed, and more of them when more are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._size = 0

    def of_size(self, size: int) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None or self._size < size:
                self._threads = ThreadPoolExecutor(size, thread_name_prefix="onefold")
                self._size = size
            return self._threads


_pool = _Pool()


def _begin_anew() -> None:
    global _pool  # noqa: PLW0603  # threads do not survive a fork, nor does who holds a lock
    _pool = _Pool()


os.register_at_fork(after_in_child=_begin_anew)


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
    try:
        _here.is_working = True
        _share(work, pieces, threads, helpers)
    finally:
        _here.is_working = False


class _Here(threading.local):
    """Whether this thread is sharing out work."""

    is_working = False


_here = _Here()


def _share(work: Callable[[int], None], pieces: int, threads: int, helpers: int) -> None:
    numbers = _Numbers(pieces)
    pool = _pool.of_size(threads - 1)
    futures = [pool.submit(_take, work, numbers) for _ in range(helpers)]
    try:
        _take(work, numbers)
    finally:
        numbers.stop()
        running = [future for future in futures if not future.cancel()]
        errors = [error for future in running if (error := future.exception()) is not None]
    if errors:
        raise errors[0]


class _Numbers:
    """Numbers that several threads take, each of them once."""

    def __init__(self, count: int) -> None:
        self._numbers: Iterator[int] = iter(range(count))
        self._lock = threading.Lock()

    def take(self) -> int | None:
        with self._lock:
            return next(self._numbers, None)

    def stop(self) -> None:
        with self._lock:
            self._numbers = iter(())


def _take(work: Callable[[int], None], numbers: _Numbers) -> None:
    while (number := numbers.take()) is not None:
        work(number)


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
