"""Every error that onefold raises on purpose.

The tree (an error is caught by any name above it)::

    OnefoldError
    ├── InvalidInput (ValueError)     what the caller passed cannot be used; nothing was done
    │   ├── RowError                  a row of an update log
    │   ├── InvalidUpdate             an array, coordinate, weight or name in an update
    │   │   └── OverLimit             more than the server takes of one update
    │   ├── InvalidPolicy             a policy that contradicts itself
    │   ├── Mismatch                  names, kinds, shapes or dtypes that differ within a tensor
    │   ├── NoContributions           a sum of nothing
    │   └── ZeroWeight                a mean whose weights add up to zero
    ├── SumOverflow (OverflowError)   an exact integer sum that its type cannot hold
    ├── FlushToZero                   this thread's arithmetic takes the smallest numbers for zero
    ├── NotYet (TimeoutError)         the step has not closed within the time given
    ├── NoUpdate (LookupError)        the step has no contribution, hence no aggregate
    ├── Expired (LookupError)         the aggregate was pruned
    ├── UnknownWorker                 a join by a name that the roster has no place for
    ├── Refused                       a push that does not count; carries its receipt
    │   └── Fenced                    a newer incarnation of this worker has taken over
    ├── StoreError
    │   ├── StoreLocked               another process has the directory open
    │   ├── StagingFull               no room for what is not committed; there may be soon
    │   └── Damaged                   bytes on disk that do not have the digest recorded for them
    └── TransportError
        ├── AddressInUse              the port is taken
        ├── ProtocolError             the other side sent what cannot be read, or has (no) TLS
        ├── Unauthenticated           who is at the other end has not been shown
        ├── Forbidden                 who that is has been shown, and may not do this
        └── GaveUp (TimeoutError)     the server did not do it within the deadline

Messages say what was expected, what came, from which worker at which step, and what to do next.
"""

from __future__ import annotations

from onefold.receipt import Receipt

__all__ = [
    "AddressInUse",
    "Damaged",
    "Expired",
    "Fenced",
    "FlushToZero",
    "Forbidden",
    "GaveUp",
    "InvalidInput",
    "InvalidPolicy",
    "InvalidUpdate",
    "Mismatch",
    "NoContributions",
    "NoUpdate",
    "NotYet",
    "OnefoldError",
    "OverLimit",
    "ProtocolError",
    "Refused",
    "RowError",
    "StagingFull",
    "StoreError",
    "StoreLocked",
    "SumOverflow",
    "TransportError",
    "Unauthenticated",
    "UnknownWorker",
    "ZeroWeight",
]


class OnefoldError(Exception):
    """The base of every error that onefold raises on purpose."""


class InvalidInput(OnefoldError, ValueError):
    """What the caller passed cannot be used; nothing was done."""


class RowError(InvalidInput):
    """A row of an update log is malformed; ``position`` is its zero-based position."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"row {position}: {message}")
        self.position = position


class InvalidUpdate(InvalidInput):
    """An array, coordinate, weight or name in an update cannot be used."""


class OverLimit(InvalidUpdate):
    """An update is more than the server takes of one; sending it again changes nothing."""


class InvalidPolicy(InvalidInput):
    """A policy contradicts itself or states something that is not possible."""


class Mismatch(InvalidInput):
    """Names, kinds, shapes or dtypes differ where they must agree; the message names both sides."""


class NoContributions(InvalidInput):
    """A sum or mean of nothing was asked for."""


class ZeroWeight(InvalidInput):
    """The weights of a mean add up to zero."""


class SumOverflow(OnefoldError, OverflowError):
    """An exact integer sum does not fit its type; ``coordinate`` is the first where it does not.

    For a dense array that is the flat (row-major) index, for a sparse one the coordinate itself.
    ``reason`` is the message without it.
    """

    def __init__(self, message: str, coordinate: int, reason: str = "") -> None:
        super().__init__(message)
        self.coordinate = coordinate
        self.reason = reason

    @classmethod
    def at(cls, coordinate: int, reason: str, tensor: str | None = None) -> SumOverflow:
        """The error at a coordinate, of a named tensor where one is known."""
        where = "" if tensor is None else f"tensor {tensor!r}, "
        return cls(f"{where}coordinate {coordinate}: {reason}", coordinate, reason)


class FlushToZero(OnefoldError):
    """The processor was told to take subnormal numbers for zero, so no sum would be exact."""


class NotYet(OnefoldError, TimeoutError):
    """The step has not closed within the time given; ask again."""


class NoUpdate(OnefoldError, LookupError):
    """The step has no contribution, hence no aggregate; that is not the same as zero."""


class Expired(OnefoldError, LookupError):
    """The aggregate's tensors were pruned (``Policy.keep_steps``)."""


class UnknownWorker(OnefoldError):
    """The roster has no place for a worker of this name."""


class Refused(OnefoldError):
    """A push does not count; ``receipt`` says why in its status and reason."""

    def __init__(self, receipt: Receipt) -> None:
        super().__init__(
            f"worker {receipt.worker!r}, step {receipt.step}: {receipt.status}: {receipt.reason}"
        )
        self.receipt = receipt


class Fenced(Refused):
    """A newer incarnation of this worker has taken over; stop, or join again as a new life."""


class StoreError(OnefoldError):
    """The directory cannot be used as a store."""


class StoreLocked(StoreError):
    """Another process has the directory open."""


class StagingFull(StoreError):
    """There is no room for parts that are not committed; once steps have closed there may be."""


class Damaged(StoreError):
    """Bytes on disk do not have the digest recorded for them."""


class TransportError(OnefoldError):
    """Something between client and server went wrong."""


class AddressInUse(TransportError):
    """The address to listen on is taken."""


class ProtocolError(TransportError):
    """The other side speaks otherwise: what this version cannot read, or with TLS or without."""


class Unauthenticated(TransportError):
    """Who is at the other end has not been shown: no valid token, or no valid certificate."""


class Forbidden(TransportError):
    """The server knows who asks, and that one may not do this."""


class GaveUp(TransportError, TimeoutError):
    """The server could not be reached, did not answer, or had no room, until the deadline."""
