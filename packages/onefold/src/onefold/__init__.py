"""Gradient aggregation in which every update counts exactly once and every sum is exactly rounded.

The names below are loaded when they are first used, so ``import onefold`` itself costs next to
nothing and pulls in none of the optional dependencies.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onefold.aggregate import Aggregate
    from onefold.aggregator import Aggregator
    from onefold.client import Client, Credentials, connect
    from onefold.contract import reduce_coordinates, reduce_replicas
    from onefold.errors import (
        AddressInUse,
        Damaged,
        Expired,
        Fenced,
        FlushToZero,
        Forbidden,
        GaveUp,
        InvalidInput,
        InvalidPolicy,
        InvalidUpdate,
        Mismatch,
        NoContributions,
        NotYet,
        NoUpdate,
        OnefoldError,
        OverLimit,
        ProtocolError,
        Refused,
        RowError,
        StagingFull,
        StoreError,
        StoreLocked,
        SumOverflow,
        TransportError,
        Unauthenticated,
        UnknownWorker,
        ZeroWeight,
    )
    from onefold.exact import ExactPartial, mean_dense, mean_sparse, sum_dense, sum_sparse
    from onefold.policy import Policy
    from onefold.receipt import Receipt, Status
    from onefold.server import Limits, Security, Server
    from onefold.update import Signature, Sparse, Update

__version__ = "0.1.0"

__all__ = [
    "AddressInUse",
    "Aggregate",
    "Aggregator",
    "Client",
    "Credentials",
    "Damaged",
    "ExactPartial",
    "Expired",
    "Fenced",
    "FlushToZero",
    "Forbidden",
    "GaveUp",
    "InvalidInput",
    "InvalidPolicy",
    "InvalidUpdate",
    "Limits",
    "Mismatch",
    "NoContributions",
    "NoUpdate",
    "NotYet",
    "OnefoldError",
    "OverLimit",
    "Policy",
    "ProtocolError",
    "Receipt",
    "Refused",
    "RowError",
    "Security",
    "Server",
    "Signature",
    "Sparse",
    "StagingFull",
    "Status",
    "StoreError",
    "StoreLocked",
    "SumOverflow",
    "TransportError",
    "Unauthenticated",
    "UnknownWorker",
    "Update",
    "ZeroWeight",
    "connect",
    "mean_dense",
    "mean_sparse",
    "reduce_coordinates",
    "reduce_replicas",
    "sum_dense",
    "sum_sparse",
]

_HOME = {
    "Aggregate": "aggregate",
    "Aggregator": "aggregator",
    "Client": "client",
    "Credentials": "client",
    "connect": "client",
    "reduce_coordinates": "contract",
    "reduce_replicas": "contract",
    "ExactPartial": "exact",
    "mean_dense": "exact",
    "mean_sparse": "exact",
    "sum_dense": "exact",
    "sum_sparse": "exact",
    "Receipt": "receipt",
    "Status": "receipt",
    "Policy": "policy",
    "Limits": "server",
    "Security": "server",
    "Server": "server",
    "Signature": "update",
    "Sparse": "update",
    "Update": "update",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'onefold' has no attribute {name!r}")
    home = _HOME.get(name, "errors")
    value = getattr(importlib.import_module(f"onefold.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
