"""What is said beside the numbers becomes a plain value, or an error that says what it must be."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from onefold.checks import (
    WORKER_BYTES_MAX,
    check_life,
    check_ordinal,
    check_seconds,
    check_sending,
    check_step,
    check_worker,
)
from onefold.errors import InvalidInput, InvalidUpdate


@pytest.mark.parametrize("step", [0, -(2**62), 2**62, np.int64(7), np.uint8(3)])
def test_a_step_becomes_an_int(step: object) -> None:
    """Of any kind of integer in the range; it can be written as JSON."""
    assert json.dumps(check_step(step)) == str(int(step))  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "step",
    [2**62 + 1, -(2**62) - 1, 2**70, 10**9999, 1.0, "0", None, True, np.array([1, 2]), {}],
    ids=type,
)
def test_other_steps_are_refused(step: object) -> None:
    """The message has the range."""
    with pytest.raises(InvalidInput, match=r"from -2\^62 to 2\^62, not "):
        check_step(step)


def test_what_is_said_with_an_update_becomes_ints() -> None:
    """NumPy's integers too, and what is not stated stays so."""
    sent = check_sending(np.int64(3), "a", np.int32(1), np.uint64(2))
    assert sent == (3, 1, 2)
    assert [type(value) for value in sent] == [int, int, int]
    assert check_sending(3, "a") == (3, None, None)


@pytest.mark.parametrize("ordinal", [-1, 2**63, 1.0, "1", False])
def test_an_ordinal_has_a_range(ordinal: object) -> None:
    """The message says whose it is, at which step, and from where to where."""
    with pytest.raises(InvalidUpdate, match=r"worker 'a', step 3: the attempt .* 0 to 2\^63-1"):
        check_sending(3, "a", ordinal)
    with pytest.raises(InvalidUpdate, match="the incarnation"):
        check_ordinal("incarnation", ordinal)


@pytest.mark.parametrize("seconds", [0, 1.5, math.inf, np.float32(2), np.int64(3), Fraction(1, 2)])
def test_a_time_becomes_a_float(seconds: float) -> None:
    """Infinity is for ever."""
    checked = check_seconds("timeout_seconds", seconds)
    assert type(checked) is float
    assert checked == seconds


@pytest.mark.parametrize(
    "seconds", [math.nan, -1, -1e-300, "5", None, True, [1], 10**400], ids=type
)
def test_what_is_no_time_is_refused(seconds: object) -> None:
    """NaN above all: every comparison with it is false, so a wait for it would never end."""
    with pytest.raises(InvalidInput, match="timeout_seconds is a number of seconds, at least 0"):
        check_seconds("timeout_seconds", seconds)


def test_a_time_may_have_to_be_positive() -> None:
    """Where nothing could be done in no time."""
    with pytest.raises(InvalidInput, match="more than 0, not 0"):
        check_seconds("x", 0, positive=True)


@pytest.mark.parametrize("worker", ["a", "ω", "w ", "[red]", "x" * WORKER_BYTES_MAX])
def test_a_name_is_kept_as_it_is(worker: str) -> None:
    """Spaces and signs included."""
    assert check_worker(worker) == worker


@pytest.mark.parametrize(
    ("worker", "message"),
    [
        ("", "non-empty string"),
        (3, "non-empty string"),
        ("\ud800", "UTF-8"),
        ("x" * 256, "at most 255 bytes .* has 256"),
        ("ω" * 128, "at most 255 bytes .* has 256"),
        *((f"a{bad}b", "control characters") for bad in "\n\t\0\x1b\x7f\x85\u2028"),
    ],
)
def test_what_is_no_name_is_refused(worker: object, message: str) -> None:
    """A name goes into tables, files and logs: it may not break a line or a terminal."""
    with pytest.raises(InvalidUpdate, match=message):
        check_worker(worker)


@pytest.mark.parametrize("life", ["", 7, None])
def test_a_life_is_a_string(life: object) -> None:
    """Two processes must not have the same by accident, so nothing is made up here."""
    with pytest.raises(InvalidInput, match="uuid"):
        check_life(life)
