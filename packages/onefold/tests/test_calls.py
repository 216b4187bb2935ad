"""Calls that are made until they are answered, where nobody answers."""

from __future__ import annotations

import socket

import pytest

from onefold import client, errors
from onefold.client import calls


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
