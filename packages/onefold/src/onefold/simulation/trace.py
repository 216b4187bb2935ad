"""What happened, in lines of text, for whoever looks into a violation."""

from __future__ import annotations

import json
from collections.abc import Callable

__all__ = ["Trace"]


class Trace:
    """The lines of one run; they are made only if they are wanted.

    Args:
        now: Gives virtual seconds.
        is_kept: Whether they are wanted.
    """

    def __init__(self, now: Callable[[], float], *, is_kept: bool) -> None:
        self._now = now
        self._is_kept = is_kept
        self.lines: list[str] = []

    def __call__(self, who: str, what: object) -> None:
        """Note what became of something; ``what`` is text, an error, or an encoded answer."""
        if self._is_kept:
            self.lines.append(f"{self._now():9.3f}  {who}: {_shown(what)}")


def _shown(what: object) -> str:
    if isinstance(what, Exception):
        return f"{type(what).__name__}: {what}"
    if isinstance(what, tuple):
        return "a part of the aggregate"
    if not isinstance(what, bytes):
        return str(what)
    words = json.loads(what)
    match words["answer"]:
        case "receipt":
            return f"{words['status']}: {words['reason']}"
        case "joined":
            first = words["first_open_step"]
            return f"joined as incarnation {words['incarnation']}, first open step {first}"
        case "closed":
            closed = words["closed"]
            who = [
                f"{c['worker']}.{c['incarnation']}.{c['attempt']}" for c in closed["contributors"]
            ]
            return (
                f"step {closed['step']} closed ({closed['outcome']}): {', '.join(who) or 'nobody'}"
            )
        case "behind":
            return f"behind incarnation {words['incarnation']}"
        case name:
            return str(name)
