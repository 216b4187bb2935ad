"""Gradient aggregation in which every update counts exactly once and every sum is exactly rounded.

The names below are loaded when they are first used, so ``import onefold`` itself costs next to
nothing and pulls in none of the optional dependencies.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onefold.aggregate import Aggregate as Aggregate
    from onefold.aggregator import Aggregator as Aggregator
    from onefold.client import Client as Client
    from onefold.client import connect as connect
    from onefold.contract import reduce_coordinates as reduce_coordinates
    from onefold.contract import reduce_replicas as reduce_replicas
    from onefold.errors import *  # noqa: F403
    from onefold.exact import ExactPartial as ExactPartial
    from onefold.exact import mean_dense as mean_dense
    from onefold.exact import mean_sparse as mean_sparse
    from onefold.exact import sum_dense as sum_dense
    from onefold.exact import sum_sparse as sum_sparse
    from onefold.policy import Policy as Policy
    from onefold.receipt import Receipt as Receipt
    from onefold.receipt import Status as Status
    from onefold.server import Server as Server
    from onefold.update import Signature as Signature
    from onefold.update import Sparse as Sparse
    from onefold.update import Update as Update

__version__ = "0.1.0"

_HOME = {
    "Aggregate": "aggregate",
    "Aggregator": "aggregator",
    "Client": "client",
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
    "Server": "server",
    "Signature": "update",
    "Sparse": "update",
    "Update": "update",
}


def _error_names() -> list[str]:
    return list(importlib.import_module("onefold.errors").__all__)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None and name[:1].isupper() and name in _error_names():
        home = "errors"
    if home is None:
        raise AttributeError(f"module 'onefold' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"onefold.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_error_names()})
