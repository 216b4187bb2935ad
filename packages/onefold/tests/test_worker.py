"""What a client is asked wrongly, and what it knows about its own refused updates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import onefold
from onefold.client import session, spool
from onefold.errors import InvalidInput, InvalidUpdate, NotYet, Refused, TransportError
from onefold.policy import Policy
from onefold.receipt import Status
from onefold.server import Server


@pytest.fixture
def address() -> Iterator[str]:
    """Of a server that waits for a and b."""
    aggregator = onefold.Aggregator(policy=Policy(roster=["a", "b"]))
    with aggregator, Server(aggregator) as server:
        yield server.address


@pytest.mark.parametrize(
    "arguments",
    [
        {"address": 3},
        {"address": "banana"},
        {"address": "grpc://banana"},
        {"address": "grpc://h:0"},
        {"address": "grpc://h:x"},
        {"address": "gopher://h:1"},
        {"worker": 3},
        {"worker": "a\nb"},
        {"timeout_seconds": "5"},
        {"timeout_seconds": math.nan},
        {"timeout_seconds": -1},
        {"timeout_seconds": 0},
    ],
    ids=str,
)
def test_what_cannot_be_connected_is_told_at_once(arguments: dict[str, object]) -> None:
    """InvalidInput, without a call to anybody."""
    given = {"address": "grpc://127.0.0.1:9", "worker": "a", **arguments}
    with pytest.raises(InvalidInput):
        onefold.connect(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", ["0", 2**70, 1.5, None, True])
def test_what_is_no_step_is_told(address: str, step: object) -> None:
    """Of push, pull and reduce alike, before anything is sent."""
    with onefold.connect(address, "a") as client:
        for call in (
            lambda: client.push(step, np.ones(1)),  # type: ignore[arg-type]
            lambda: client.reduce(step, np.ones(1)),  # type: ignore[arg-type]
            lambda: client.pull(step, 0),  # type: ignore[arg-type]
        ):
            with pytest.raises(InvalidInput, match="a step is an integer"):
                call()


@pytest.mark.parametrize("seconds", ["x", math.nan, -1])
def test_what_is_no_time_to_wait_is_told(address: str, seconds: object) -> None:
    """NaN would be waited for for ever."""
    with onefold.connect(address, "a") as client, pytest.raises(InvalidInput, match="timeout"):
        client.pull(0, seconds)  # type: ignore[arg-type]


def test_numpys_integers_travel(address: str) -> None:
    """As a step and as a weight."""
    with onefold.connect(address, "a") as a, onefold.connect(address, "b") as b:
        a.push(np.int64(0), np.ones(1), weight=np.int64(3))  # type: ignore[arg-type]
        b.push(np.uint8(0), np.ones(1))  # type: ignore[arg-type]
        assert a.pull(np.int64(0)).total_weight == 4  # type: ignore[arg-type]


def test_a_wrong_update_is_told_with_worker_and_step(address: str) -> None:
    """And with what makes a right one."""
    with (
        onefold.connect(address, "a") as client,
        pytest.raises(InvalidUpdate, match=r"worker 'a', step 3: tensor 'w' .* np\.asarray"),
    ):
        client.push(3, {"w": [1.0]})  # type: ignore[dict-item]


def test_all_share_the_work_by_one_size(address: str) -> None:
    """Whoever joins first knows already how many there will be."""
    with onefold.connect(address, "b") as b, onefold.connect(address, "a") as a:
        assert (b.joined.index, b.joined.size) == (1, 2)
        assert (a.joined.index, a.joined.size) == (0, 2)


def test_not_yet_says_that_the_own_update_was_refused(address: str) -> None:
    """So that a loop of push and pull does not wait without knowing why; a better push ends it."""
    with onefold.connect(address, "a") as a, onefold.connect(address, "b") as b:
        b.push(0, np.ones(1))
        assert a.push(0, np.ones(2)).status is Status.MISMATCH
        with pytest.raises(NotYet, match=r"'a', was refused: mismatch: .*float64\[1\]"):
            a.pull(0, timeout_seconds=0)
        with pytest.raises(NotYet) as others:
            b.pull(0, timeout_seconds=0)
        assert "refused" not in str(others.value)
        with pytest.raises(Refused):
            a.reduce(0, np.ones(2))
        assert a.push(1, np.ones(1)).stands
        with pytest.raises(NotYet) as later:
            a.pull(1, timeout_seconds=0)
        assert "refused" not in str(later.value)
        assert a.push(0, np.ones(1)).stands
        assert a.pull(0).count == 2


def test_a_client_is_over_after_with(address: str) -> None:
    """Each call says so, and what to do."""
    with onefold.connect(address, "a") as client:
        pass
    for call in (
        lambda: client.push(0, np.ones(1)),
        lambda: client.pull(0),
        lambda: client.reduce(0, np.ones(1)),
        client.status,
        client.leave,
    ):
        with pytest.raises(TransportError, match="connect again"):
            call()


@pytest.mark.parametrize("moment", ["spooling", "spooled", "sending"])
def test_closing_in_the_middle_of_a_push_is_told_as_what_it_is(
    address: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Another thread may close the client at any time: its push is then told so, whatever it was
    that it could not find any more."""
    client = onefold.connect(address, "a")
    monkeypatch.setattr(spool, "_IN_MEMORY_BYTES_MAX", 0)

    def closing_before(module: ModuleType, name: str) -> None:
        call = getattr(module, name)

        def closing(*arguments: object, **options: object) -> object:
            client.close()
            return call(*arguments, **options)

        monkeypatch.setattr(module, name, closing)

    places = {"spooling": (spool, "manifest_of"), "spooled": (spool, "write_part")}
    closing_before(*places.get(moment, (session, "send_update")))
    for step in (0, 1):
        with pytest.raises(TransportError, match="closed"):
            client.push(step, np.ones(4))
