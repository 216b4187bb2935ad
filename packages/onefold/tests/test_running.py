"""The life of a server by itself."""

from __future__ import annotations

import threading

import pytest

from onefold.aggregator import Aggregator
from onefold.server import Server

BOUND_SECONDS = 60.0


def test_the_ticker_survives_what_nobody_foresaw(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that is none of onefold's is logged with its traceback; the next tick is made."""
    ticks = threading.Semaphore(0)

    def failing(_aggregator: Aggregator) -> None:
        ticks.release()
        raise MemoryError("too large")

    with Aggregator() as aggregator:
        monkeypatch.setattr(Aggregator, "tick", failing)
        with Server(aggregator):
            for _ in range(3):
                assert ticks.acquire(timeout=BOUND_SECONDS)
        monkeypatch.undo()
    assert caplog.records[0].exc_info
    assert "the next one tries again" in caplog.text
