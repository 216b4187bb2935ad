"""What is digested, and how.

A document is digested as its canonical JSON (RFC 8785). The RFC's numbers stop at 2^53, so values
appear in it in their tagged form: integers as decimal strings, floats as the hexadecimal digits of
their bits. A source is digested as UTF-8 text with exactly one final newline.

A held file is committed to without being shown, by HMAC-SHA-256 under a nonce of 32 random bytes
that members get. A plain hash would confirm guesses: five short lines have few spellings.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence

import rfc8785

from failuremap.errors import UsageError

__all__ = [
    "NONCE_BYTES",
    "canonical",
    "commitment",
    "document_digest",
    "one_final_newline",
    "source_digest",
]

NONCE_BYTES = 32


def canonical(document: Mapping[str, object] | Sequence[object]) -> bytes:
    """The RFC 8785 bytes of a JSON document."""
    return rfc8785.dumps(document)  # type: ignore[arg-type]


def document_digest(document: Mapping[str, object] | Sequence[object]) -> str:
    """SHA-256 (hex) of a document's canonical JSON."""
    return hashlib.sha256(canonical(document)).hexdigest()


def one_final_newline(source: str) -> str:
    """The text that a source's digest covers."""
    return source.rstrip("\n") + "\n"


def source_digest(source: str) -> str:
    """SHA-256 (hex) of a source: UTF-8 with exactly one final newline."""
    return hashlib.sha256(one_final_newline(source).encode()).hexdigest()


def commitment(source: str, nonce: bytes) -> str:
    """What may be published about a held source: HMAC-SHA-256 (hex) under a nonce of 32 bytes."""
    if len(nonce) != NONCE_BYTES:
        raise UsageError(f"a nonce has {NONCE_BYTES} bytes; this one has {len(nonce)}")
    return hmac.new(nonce, one_final_newline(source).encode(), "sha256").hexdigest()
