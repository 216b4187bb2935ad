"""Every error that failuremap raises on purpose.

The tree (an error is caught by any name above it)::

    FailureMapError ├── ArchiveError (ValueError)     a file of the archive that cannot be used;
    names file and field
    │   └── FixtureError              a fixture file outside the small language of fixtures
    ├── UsageError (ValueError)       what the caller asked for cannot be done; says what can
    ├── ImportFailure (ValueError)    a page, document or bundle that cannot be read; names the line
    ├── SplitError (ValueError)       splits that cannot be made, or that contradict their lock
    └── InfraError                    trouble with this machine: no verdict was reached
"""

from __future__ import annotations

__all__ = [
    "ArchiveError",
    "FailureMapError",
    "FixtureError",
    "ImportFailure",
    "InfraError",
    "SplitError",
    "UsageError",
]


class FailureMapError(Exception):
    """Anything that failuremap raises on purpose."""


class ArchiveError(FailureMapError, ValueError):
    """A file of the archive that cannot be used."""


class FixtureError(ArchiveError):
    """A fixture file that says more than the language of fixtures can."""


class UsageError(FailureMapError, ValueError):
    """A request that cannot be met as it was made."""


class ImportFailure(FailureMapError, ValueError):
    """A published page, document or bundle that cannot be read."""


class SplitError(FailureMapError, ValueError):
    """Splits that cannot be made, or that contradict their lock."""


class InfraError(FailureMapError):
    """The machine failed, not the program under test: nothing was learned about it."""
