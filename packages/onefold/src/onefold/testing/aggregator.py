"""What every aggregator must do, whatever keeps its contributions."""

from __future__ import annotations

from onefold.testing.deadlines import DeadlineContract
from onefold.testing.exactness import ExactContract
from onefold.testing.joining import JoiningContract
from onefold.testing.receipts import ReceiptContract
from onefold.testing.rosters import RosterContract
from onefold.testing.selection import SelectionContract
from onefold.testing.signatures import SignatureContract
from onefold.testing.staging import StagingContract
from onefold.testing.windows import ClosedContract, WindowContract

__all__ = ["AggregatorContract"]


class AggregatorContract(
    ReceiptContract,
    SignatureContract,
    RosterContract,
    JoiningContract,
    DeadlineContract,
    WindowContract,
    ClosedContract,
    ExactContract,
    SelectionContract,
    StagingContract,
):
    """Subclass it with a fixture ``make_aggregator(policy, clock)``; see ``MakeAggregator``."""
