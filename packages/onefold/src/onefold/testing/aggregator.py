"""What every aggregator must do, whatever keeps its contributions."""

from __future__ import annotations

from onefold.testing.deadlines import DeadlineContract
from onefold.testing.receipts import ReceiptContract
from onefold.testing.results import ExactContract, SelectionContract
from onefold.testing.rosters import JoiningContract, RosterContract
from onefold.testing.signatures import SignatureContract
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
):
    """Subclass it with a fixture ``make_aggregator(policy, clock)``; see ``MakeAggregator``."""
