"""The errors of a server, raised again at the client as they were: same class, same message.

gRPC carries them in trailing metadata and refuses more than 16 KiB there, at times more than 8 KiB,
and with it the whole answer; so messages are cut to what always fits.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import onefold.errors as tree
from onefold.errors import OnefoldError, ProtocolError, Refused, SumOverflow, TransportError
from onefold.receipt import Receipt
from onefold.wire.answers import read_receipt
from onefold.wire.fields import Fields, from_bytes, to_bytes

__all__ = ["decode_failure", "encode_failure"]

_TEXT_MAX = 500
_FAILURE_BYTES_MAX = 4096


def encode_failure(error: OnefoldError) -> bytes:
    """An error as JSON of at most 4 KiB."""
    fields: dict[str, object] = {"message": _cut(str(error)), "receipt": None, "coordinate": None}
    if isinstance(error, SumOverflow):
        fields["coordinate"] = error.coordinate
    if isinstance(error, Refused):
        receipt = replace(error.receipt, reason=_cut(error.receipt.reason))
        fields["receipt"] = asdict(receipt)
    data = to_bytes("error", type(error).__name__, fields)
    if len(data) <= _FAILURE_BYTES_MAX:
        return data
    return to_bytes("error", "TransportError", {**fields, "receipt": None})


def decode_failure(data: bytes) -> OnefoldError:
    """The error that a server sent.

    Raises:
        ProtocolError: It is none that this version can read.
    """
    name, fields = from_bytes(data, "error", _FAILURE_BYTES_MAX)
    message = fields.text("message")
    coordinate = fields.optional("coordinate", lambda field: fields.integer(field, -(2**63)))
    receipt = fields.optional("receipt", lambda field: _receipt(fields.inner(field)))
    fields.end()
    if name == "SumOverflow":
        *_, reason = message.partition(f"coordinate {coordinate}: ")
        return SumOverflow(message, coordinate or 0, reason)
    return _made(name, message, receipt)


def _receipt(fields: Fields) -> Receipt:
    receipt = read_receipt(fields)
    fields.end()
    return receipt


def _made(name: str, message: str, receipt: Receipt | None) -> OnefoldError:
    kind = getattr(tree, name, None) if name in tree.__all__ else None
    if kind is None:
        return TransportError(f"the server answered {name}: {message}")
    if issubclass(kind, Refused):
        if receipt is None:
            raise ProtocolError(f"{name} came without its receipt: {message}")
        refused: OnefoldError = kind(receipt)
        return refused
    if issubclass(kind, tree.RowError):
        return TransportError(f"the server answered {name}: {message}")
    error: OnefoldError = kind(message)
    return error


def _cut(text: str) -> str:
    text = text.encode(errors="replace").decode()
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
