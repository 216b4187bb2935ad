"""Make the network misbehave, from a seed.

A :class:`Proxy` stands between workers and their server and repeats, loses, delays or reorders
whole calls. What becomes of a call is a hash of a seed and of what the call says about itself
(:class:`Faults`), never a draw from a shared stream of random numbers: with such a stream the fate
of every later call would depend on the order in which threads happen to run, and no run could be
repeated.
"""

from __future__ import annotations

from onefold.faults.decisions import KINDS, Call, Fate, Faults
from onefold.faults.proxy import Proxy, Traffic

__all__ = ["KINDS", "Call", "Fate", "Faults", "Proxy", "Traffic"]
