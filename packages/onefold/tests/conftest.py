"""That this file lies here makes ``oracle`` and ``columns`` importable from every test below it."""

from __future__ import annotations

import os

import pytest

# The servers of these tests, hundreds of processes, have better things to do than to compile ahead.
os.environ.setdefault("ONEFOLD_WARM_UP", "0")


@pytest.fixture
def spools_all_in_files(monkeypatch):
    """Clients keep small updates as they keep large ones."""
    monkeypatch.setattr("onefold.client.spool._IN_MEMORY_BYTES_MAX", -1)
