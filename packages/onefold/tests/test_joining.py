"""A client that joins while others of its name do."""

from __future__ import annotations

import pytest

import onefold
from onefold.errors import GaveUp
from onefold.ledger import Behind


def test_who_is_always_behind_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not ask for ever, and the message says what is wrong."""
    asked: list[int] = []

    def join_after(_self: object, worker: str, _life: str, incarnation: int) -> Behind:
        asked.append(incarnation)
        return Behind(worker, incarnation + 1)

    monkeypatch.setattr(onefold.Aggregator, "join_after", join_after)
    with (
        onefold.Aggregator(policy=onefold.Policy(roster=["a"])) as aggregator,
        onefold.Server(aggregator) as server,
        pytest.raises(GaveUp, match="only one process has this name"),
    ):
        onefold.connect(server.address, "a", timeout_seconds=0.5)
    assert asked == list(range(len(asked)))
    assert len(asked) > 1
