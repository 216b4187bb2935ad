"""The face of the package: what it offers, and nothing else."""

from __future__ import annotations

import onefold
from onefold import errors


def test_all_is_what_is_offered() -> None:
    """Every error and every name with a home, each once."""
    assert sorted(onefold.__all__) == sorted({*onefold._HOME, *errors.__all__})
    assert dir(onefold) == sorted([*onefold.__all__, "__version__"])


def test_everything_can_be_imported_by_a_star() -> None:
    """And it is the thing itself."""
    names: dict[str, object] = {}
    exec("from onefold import *", names)
    assert names.keys() - {"__builtins__"} == set(onefold.__all__)
    assert names["NotYet"] is errors.NotYet
