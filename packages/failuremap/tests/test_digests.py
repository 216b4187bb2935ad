"""Digests: canonical JSON as RFC 8785 has it, sources, commitments."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failuremap.digests import (
    canonical,
    commitment,
    document_digest,
    one_final_newline,
    source_digest,
)
from failuremap.errors import UsageError

VECTORS = [
    ({}, b"{}"),
    ([], b"[]"),
    ([None, True, False], b"[null,true,false]"),
    ({"b": 1, "a": 2, "B": 3, "": 4}, b'{"":4,"B":3,"a":2,"b":1}'),
    ({"10": 1, "9": 2}, b'{"10":1,"9":2}'),
    ([1.0, -0.0, 1e21, 1e-7, 0.000001, 4.5, 2e-3], b"[1,0,1e+21,1e-7,0.000001,4.5,0.002]"),
    ([333333333.33333329, 1e30, 1e-27], b"[333333333.3333333,1e+30,1e-27]"),
    ([5e-324, 1.7976931348623157e308], b"[5e-324,1.7976931348623157e+308]"),
    ([2**53 - 1, -(2**53 - 1)], b"[9007199254740991,-9007199254740991]"),
    (['"\\/\b\f\n\r\t\x00\x1f\x7f'], b'["\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"]'),
    (["é", "\u2028", "😀"], '["é","\u2028","😀"]'.encode()),
    # By UTF-16 code units, in which a pair (D83D DE00) stands before U+FB33.
    ({"\ufb33": 1, "😀": 2, "ö": 3, "\r": 4, "1": 5, "€": 6, "\x80": 7},
     '{"\\r":4,"1":5,"\x80":7,"ö":3,"€":6,"😀":2,"\ufb33":1}'.encode()),
    ({"a": [{"c": 1, "b": [2, {"z": None, "y": ""}]}]},
     b'{"a":[{"b":[2,{"y":"","z":null}],"c":1}]}'),
]  # fmt: skip


@pytest.mark.parametrize(("document", "text"), VECTORS)
def test_canonical_json_is_that_of_the_rfc(document, text):
    """Vectors written by hand from RFC 8785: numbers as ECMAScript, keys by UTF-16, no spaces."""
    assert canonical(document) == text
    assert document_digest(document) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("document", [[2**53], [float("nan")], [float("inf")], ["\ud800"]])
def test_what_canonical_json_cannot_say_is_refused(document):
    """Never rounded, never replaced."""
    with pytest.raises(ValueError, match=r".*"):
        canonical(document)


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(-9, 9)))
def test_the_order_of_keys_does_not_matter(document):
    """A document and its reverse have one digest, and it still is the same JSON."""
    backwards = dict(reversed(document.items()))
    assert document_digest(document) == document_digest(backwards)
    assert json.loads(canonical(document)) == document


@pytest.mark.parametrize("ending", ["", "\n", "\n\n", "\n\n\n\n"])
def test_a_source_has_one_final_newline(ending):
    """However many there were, the digest is that of the text with one."""
    assert one_final_newline("x = 1" + ending) == "x = 1\n"
    assert source_digest("x = 1" + ending) == hashlib.sha256(b"x = 1\n").hexdigest()


def test_the_digest_of_a_source_covers_every_other_byte():
    """Spaces, blank lines at the start, line endings and letters beyond ASCII count."""
    texts = ["é = 1", "é = 1 ", "\né = 1", "é  = 1", "é = 1\r", "e\u0301 = 1", "é = 1\n \n"]
    assert len({source_digest(text) for text in texts}) == len(texts)
    assert source_digest("é") == hashlib.sha256("é\n".encode()).hexdigest()
    assert source_digest("") == hashlib.sha256(b"\n").hexdigest()


def test_a_commitment_is_an_hmac_under_the_nonce():
    """Checked by whoever has nonce and source; another nonce, or a letter more, is another one."""
    nonce = bytes(range(32))
    wanted = hmac.new(nonce, b"x = 1\n", hashlib.sha256).hexdigest()
    assert commitment("x = 1\n\n", nonce) == commitment("x = 1", nonce) == wanted
    assert commitment("x = 1", bytes(32)) != wanted != commitment("x = 2", nonce)
    assert wanted != source_digest("x = 1")


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_a_nonce_has_32_bytes(size):
    """A shorter one could be guessed; the message says how many came."""
    with pytest.raises(UsageError, match=f"32 bytes; this one has {size}"):
        commitment("x = 1", bytes(size))
