"""Splits that cannot leak: relatives stay together, and places are for good.

* :mod:`~failuremap.splits.facts`: what is known of a case.
* :mod:`~failuremap.splits.trees`: implementations compared up to names
  (:mod:`~failuremap.splits.scopes` knows whose name is whose).
* :mod:`~failuremap.splits.components`: which cases are relatives, and why.
* :mod:`~failuremap.splits.ratios`: shares, exactly.
* :mod:`~failuremap.splits.lock`: the document that keeps the places; the only files here.
* :mod:`~failuremap.splits.quarantine`: newcomers that bridge what is locked apart.
* :mod:`~failuremap.splits.placing`: which component goes where; read this first.
* :mod:`~failuremap.splits.checking`: whether a lock keeps its promises.
"""

from failuremap.splits.checking import verify
from failuremap.splits.components import Component, Link, coincidences, components
from failuremap.splits.facts import CaseFacts, archive_digest
from failuremap.splits.lock import Lock, LockedComponent, parse_lock, read_lock, write_lock
from failuremap.splits.placing import Placement, SplitPlan, plan
from failuremap.splits.quarantine import quarantined
from failuremap.splits.ratios import Ratio, exact_ratios, parse_ratios
from failuremap.splits.trees import LINKING_NODES_MIN, Tree, normalised_tree, trees_of

__all__ = [
    "LINKING_NODES_MIN",
    "CaseFacts",
    "Component",
    "Link",
    "Lock",
    "LockedComponent",
    "Placement",
    "Ratio",
    "SplitPlan",
    "Tree",
    "archive_digest",
    "coincidences",
    "components",
    "exact_ratios",
    "normalised_tree",
    "parse_lock",
    "parse_ratios",
    "plan",
    "quarantined",
    "read_lock",
    "trees_of",
    "verify",
    "write_lock",
]
