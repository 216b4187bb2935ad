"""Virtual time, and threads of which exactly one runs at a time.

A client blocks: it waits for an answer, or before it tries again. To run it as it is, each client
has a thread, and the threads hand one baton around: the scheduler gives it to a task, which runs
until it parks (to wait for something) or ends, and gives it back. So nothing happens at the same
time as anything else, and the order is that of virtual time, which only the scheduler moves.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from threading import Lock

__all__ = ["Killed", "Scheduler", "Task"]


class Killed(BaseException):
    """The process that a task stands for has been killed."""


class Task:
    """A process of one thread. It runs within :meth:`resume` only, until it parks or ends.

    Args:
        name: For traces.
        body: What it does.
    """

    def __init__(self, name: str, body: Callable[[], None]) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.has_ended = False
        self.is_frozen = False
        self._body = body
        self._is_killed = False
        self._mine, self._yours = Lock(), Lock()
        self._mine.acquire()
        self._yours.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Let it run until it parks or ends."""
        if self.has_ended:
            return
        self._mine.release()
        self._yours.acquire()

    def park(self) -> None:
        """Give the baton back, and go on when it is resumed; called by the task itself.

        Raises:
            Killed: It has been killed meanwhile.
        """
        self._yours.release()
        self._mine.acquire()
        if self._is_killed:
            raise Killed

    def kill(self) -> None:
        """End it where it is parked."""
        self._is_killed = True
        self.resume()
        self._thread.join()

    def _run(self) -> None:
        self._mine.acquire()
        try:
            if not self._is_killed:
                self._body()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - whoever made the task looks at it
            self.error = error
        finally:
            self.has_ended = True
            self._yours.release()


class Scheduler:
    """What happens when, in virtual seconds from 0.

    Args:
        after_each: Called after each thing that happened.
    """

    def __init__(self, after_each: Callable[[], None]) -> None:
        self.now = 0.0
        self.events = 0
        self._after_each = after_each
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._entries = 0

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something in ``seconds`` from now."""
        self._entries += 1
        heapq.heappush(self._agenda, (self.now + max(seconds, 0.0), self._entries, action))

    def step(self) -> bool:
        """Do what comes next; False if nothing does."""
        if not self._agenda:
            return False
        self.now, _, action = heapq.heappop(self._agenda)
        action()
        self.events += 1
        self._after_each()
        return True

    def wake(self, task: Task, seconds: float, is_wanted: Callable[[], bool]) -> None:
        """Resume a task in ``seconds``, or when it is no longer frozen, if that is still wanted."""

        def act() -> None:
            if task.is_frozen:
                self.after(1.0, act)
            elif not task.has_ended and is_wanted():
                task.resume()

        self.after(seconds, act)
