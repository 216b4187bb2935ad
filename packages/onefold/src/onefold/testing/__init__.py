"""The contract suites that every store and every transport must pass.

Subclass them in a pytest module and override their fixtures::

    class TestMine(AggregatorContract):
        @pytest.fixture
        def make_aggregator(self): ...

* :class:`StoreContract`: what keeps contributions, by itself.
* :class:`AggregatorContract`: an aggregator, whatever keeps its contributions.
* :class:`DurableContract`: the same, and what a directory promises besides.
* :class:`TransportContract`: workers at the other end of a transport.

Importing this package needs pytest (``onefold[testing]``).
"""

import pytest

# Before their import, so that a failing assert in them shows its values.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            *("deadlines", "durable", "exactness", "joining", "receipts", "rosters"),
            *("selection", "signatures", "staging", "stores", "support", "transport", "windows"),
        )
    )
)

from onefold.testing.aggregator import AggregatorContract  # noqa: E402
from onefold.testing.durable import DurableContract, OpenRun  # noqa: E402
from onefold.testing.in_process import InProcessCluster, InProcessWorker  # noqa: E402
from onefold.testing.stores import StoreContract  # noqa: E402
from onefold.testing.support import Clock, MakeAggregator  # noqa: E402
from onefold.testing.transport import (  # noqa: E402
    Cluster,
    MakeCluster,
    TransportContract,
    Worker,
)

__all__ = [
    "AggregatorContract",
    "Clock",
    "Cluster",
    "DurableContract",
    "InProcessCluster",
    "InProcessWorker",
    "MakeAggregator",
    "MakeCluster",
    "OpenRun",
    "StoreContract",
    "TransportContract",
    "Worker",
]
