"""An executable archive of the ways in which gradient aggregation goes wrong.

Each case holds a contract, an implementation that fails, a plausible fix that still fails, the
repair, and the fixtures that tell them apart; all of it is verified by running it. Your own
function can be run against every case. Start with ``failuremap --help``.
"""

__version__ = "0.1.0"
