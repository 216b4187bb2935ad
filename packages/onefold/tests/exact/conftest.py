"""Small sums take the ways of large ones, too."""

from __future__ import annotations

import pytest

from onefold.exact import sparse_numbers

FEW_ENTRIES = 2000
"""Of the sizes that tests have, some are above and some below."""


@pytest.fixture(autouse=True)
def _few_entries_are_many(monkeypatch):
    """Sparse entries are dealt out to buckets, and by as many threads as a test asks for."""
    monkeypatch.setattr(sparse_numbers, "_FEW_ENTRIES", FEW_ENTRIES)
    monkeypatch.setattr(sparse_numbers, "_THREAD_ENTRIES", 1)
