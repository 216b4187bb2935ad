"""What is said beside the numbers: workers, steps, attempts, weights, seconds.

Each function takes whatever a caller passed and returns it as the plain value that it stands for,
or raises with what was expected and what came. An integer is anything that Python takes for an
index (``np.int64`` too) but a bool, and is kept as an int, since it is to be written as JSON.
"""

from __future__ import annotations

import math
import operator
import reprlib
import unicodedata
from typing import SupportsFloat, SupportsIndex

from onefold.errors import InvalidInput, InvalidUpdate

__all__ = [
    "WEIGHT_MAX",
    "WORKER_BYTES_MAX",
    "as_integer",
    "check_life",
    "check_ordinal",
    "check_seconds",
    "check_sending",
    "check_step",
    "check_weight",
    "check_worker",
    "show",
    "wrong_with_worker",
]

WEIGHT_MAX = 2**53
WORKER_BYTES_MAX = 255
"""As long as a file's name: a worker's name goes into files, tables and logs."""

_STEP_MIN, _STEP_MAX = -(2**62), 2**62  # so that the steps after and before one fit 64 bits
_ORDINAL_MAX = 2**63 - 1
_UNPRINTABLE = frozenset({"Cc", "Zl", "Zp"})


def check_step(step: object, where: str = "", kind: type[InvalidInput] = InvalidInput) -> int:
    """``step`` as an int.

    Args:
        step: What a caller gave as a step.
        where: What the message begins with.
        kind: The class of the error.

    Raises:
        InvalidInput: It is no integer from -2^62 to 2^62.
    """
    value = as_integer(step)
    if value is None or not _STEP_MIN <= value <= _STEP_MAX:
        raise kind(f"{where}a step is an integer from -2^62 to 2^62, not {show(step)}")
    return value


def check_ordinal(what: str, ordinal: object, where: str = "") -> int:
    """An attempt or incarnation as an int.

    Raises:
        InvalidUpdate: It is no integer from 0 that fits 64 bits.
    """
    value = as_integer(ordinal)
    if value is None or not 0 <= value <= _ORDINAL_MAX:
        raise InvalidUpdate(
            f"{where}the {what} is an integer from 0 to 2^63-1, not {show(ordinal)}"
        )
    return value


def check_weight(weight: object, where: str = "") -> int:
    """``weight`` as an int; ``where`` begins the message.

    Raises:
        InvalidUpdate: It is not an integer from 0 to 2**53.
    """
    value = as_integer(weight)
    if value is None or not 0 <= value <= WEIGHT_MAX:
        raise InvalidUpdate(
            f"{where}a weight is an integer from 0 to 2^53 (a count of examples or tokens), "
            f"not {show(weight)}"
        )
    return value


def check_seconds(what: str, seconds: object, *, positive: bool = False) -> float:
    """A time to wait, as a float; infinity is for ever.

    Raises:
        InvalidInput: It is no number, NaN, negative, or zero where it is to be ``positive``.
    """
    value = _number(seconds)
    if value is None or not (value > 0 if positive else value >= 0):
        least = "more than 0" if positive else "at least 0"
        raise InvalidInput(f"{what} is a number of seconds, {least}, not {show(seconds)}")
    return value


def check_worker(worker: object) -> str:
    """Check a worker's name, and return it.

    Raises:
        InvalidUpdate: It is not a name; the message says why.
    """
    wrong = wrong_with_worker(worker)
    if wrong is not None:
        raise InvalidUpdate(wrong)
    assert isinstance(worker, str)
    return worker


def wrong_with_worker(worker: object) -> str | None:
    """Why this is no name of a worker, in words; None if it is one."""
    if not isinstance(worker, str) or not worker:
        return f"a worker's name is a non-empty string, not {show(worker)}"
    try:
        size_bytes = len(worker.encode())
    except UnicodeEncodeError:
        return f"the worker name {worker!r} cannot be written as UTF-8"
    if size_bytes > WORKER_BYTES_MAX:
        return (
            f"a worker's name has at most {WORKER_BYTES_MAX} bytes as UTF-8; "
            f"{reprlib.repr(worker)} has {size_bytes}"
        )
    if any(unicodedata.category(letter) in _UNPRINTABLE for letter in worker):
        return f"a worker's name has no control characters or line breaks; {worker!r} has"
    return None


def check_life(life: object) -> str:
    """Check the id of a worker's life, and return it.

    Raises:
        InvalidInput: It is no non-empty string.
    """
    if not isinstance(life, str) or not life:
        raise InvalidInput(
            "a life is a non-empty string that a process makes once, for example "
            f"uuid.uuid4().hex, not {show(life)}"
        )
    return life


def check_sending(
    step: object, worker: object, attempt: object = None, incarnation: object = None
) -> tuple[int, int | None, int | None]:
    """What is said with an update: step, attempt and incarnation as ints.

    Raises:
        InvalidUpdate: One of them is none, or an incarnation comes without an attempt.
    """
    check_worker(worker)
    number = check_step(step, f"worker {worker!r}: ", InvalidUpdate)
    where = f"worker {worker!r}, step {number}: "
    ordinals = [
        None if value is None else check_ordinal(what, value, where)
        for what, value in (("attempt", attempt), ("incarnation", incarnation))
    ]
    if incarnation is not None and attempt is None:
        raise InvalidUpdate(f"{where}an incarnation ({incarnation}) needs an attempt")
    return number, ordinals[0], ordinals[1]


def as_integer(value: object) -> int | None:
    """``value`` as an int where it is an integer of any kind but a bool, else None."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # arrays have the method and refuse when called
        return None


def _number(value: object) -> float | None:
    """``value`` as a float where it is a number but no NaN, else None."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat | SupportsIndex):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def show(value: object) -> str:
    """A value and its type, cut to a length that fits a message."""
    try:
        return f"{reprlib.repr(value)} ({type(value).__name__})"
    except ValueError:  # Python refuses to print ints of very many digits
        return f"a value of type {type(value).__name__} that is too long to show"
