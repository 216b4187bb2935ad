"""Calls that are made until they are answered, where nobody answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pyarrow import flight

from onefold import client, errors
from onefold.client import calls
from onefold.client.channel import FlightChannel, Unreachable
from onefold.wire import Done, GetStatus, encode_answer


def test_silence_is_told_while_it_lasts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Who waits ten minutes for an address that is wrong reads so after seconds, and once."""
    monkeypatch.setattr(calls, "_SILENT_SECONDS", 0.1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        address = f"grpc://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.GaveUp):
            client.fetch_status(address, timeout_seconds=0.6)
    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert f"no answer from {address}" in record.getMessage()
    assert "trying again for up to" in record.getMessage()


def test_a_connection_is_not_closed_under_a_call() -> None:
    """Flight frees at once what it closes, and the call of another thread would follow it there."""
    done: list[str] = []

    class Connection:
        def do_action(self, *_: object) -> Iterator[flight.Result]:
            channel.close()  # as another thread may do at any time
            done.append("answered")
            yield flight.Result(encode_answer(Done()))

        def close(self) -> None:
            done.append("closed")

    channel = FlightChannel("grpc://127.0.0.1:1")
    channel._flight = Connection()
    assert channel.act(GetStatus(), Done, seconds=1) == Done()
    assert done == ["answered"]
    with pytest.raises(Unreachable, match="closed"):
        channel.act(GetStatus(), Done, seconds=1)
