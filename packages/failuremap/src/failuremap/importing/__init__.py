"""Published cases read back: saved pages, JSON documents, and what their digests confirm."""

from __future__ import annotations

from failuremap.importing.documents import read_document
from failuremap.importing.model import (
    DigestStatus,
    PublishedCase,
    PublishedObservation,
    PublishedProgram,
)
from failuremap.importing.page import read_page

__all__ = [
    "DigestStatus",
    "PublishedCase",
    "PublishedObservation",
    "PublishedProgram",
    "read_document",
    "read_page",
]
