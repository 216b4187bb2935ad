"""The signals by which a command is ended politely; it is then to leave nothing behind."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["ending_by"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP, which under nohup stays ignored, call ``handler``."""
    before = {
        number: signal.signal(number, handler)
        for number in _SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
