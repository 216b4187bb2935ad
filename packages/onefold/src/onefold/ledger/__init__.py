"""Which contribution counts: a pure state machine.

* :mod:`~onefold.ledger.events`: what goes in and comes out, all frozen.
* :mod:`~onefold.ledger.rules`: the receipts as one table; read this first.
* :mod:`~onefold.ledger.members`: who belongs to the run.
* :mod:`~onefold.ledger.steps`: the open steps.
* :mod:`~onefold.ledger.closing`: what a step closes with.
* :mod:`~onefold.ledger.machine`: the :class:`Ledger` that ties them together.

Contributions are identified by (step, worker) and ordered by (incarnation, attempt), with the
digest of the content beside them. Nothing here counts messages.
"""

from onefold.ledger.events import (
    Behind,
    Change,
    Closing,
    Contributed,
    Contribution,
    Contributor,
    Decision,
    Excluded,
    IncarnationSeen,
    JoinAnswer,
    Joined,
    Outcome,
    Push,
    RefusalNoted,
    SignatureFixed,
    StepClosed,
    StepOpened,
    Unrecorded,
    WorkerJoined,
    WorkerLeft,
)
from onefold.ledger.machine import Ledger
from onefold.ledger.rules import RULES
from onefold.ledger.steps import OpenStep
from onefold.receipt import Receipt, Status

__all__ = [
    "RULES",
    "Behind",
    "Change",
    "Closing",
    "Contributed",
    "Contribution",
    "Contributor",
    "Decision",
    "Excluded",
    "IncarnationSeen",
    "JoinAnswer",
    "Joined",
    "Ledger",
    "OpenStep",
    "Outcome",
    "Push",
    "Receipt",
    "RefusalNoted",
    "SignatureFixed",
    "Status",
    "StepClosed",
    "StepOpened",
    "Unrecorded",
    "WorkerJoined",
    "WorkerLeft",
]
