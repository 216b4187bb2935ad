"""Shares of an archive as exact fractions: 0.8 + 0.1 + 0.1 is 1, which it is not in floats."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from failuremap.errors import SplitError

__all__ = ["Ratio", "exact_ratios", "fraction_of", "parse_ratios"]

Ratio = Fraction | Decimal | float | str
"""A share of the archive: 0.8 and "0.8" are both 4/5; "1/3" is a third."""

_EXPONENT_DIGITS_MAX = 4
_TOO_LARGE = 10**4000
"""Of this and more digits Python may refuse to read or print integers (from 4300, as it comes)."""

_USUAL_NAMES = {2: ("train", "test"), 3: ("train", "validation", "test")}


def exact_ratios(ratios: Mapping[str, Ratio]) -> dict[str, Fraction]:
    """The shares by split, in the order of the names; a float counts as the decimal it shows.

    Raises:
        SplitError: No split, a split without a name, a share that is not a number above 0, or
            shares that do not add up to 1.
    """
    exact = {name: _fraction(name, ratios[name]) for name in sorted(ratios)}
    total = sum(exact.values(), Fraction())
    if total != 1:
        raise SplitError(
            f"ratios: expected shares that add up to exactly 1, got {_sum_in_words(exact)} "
            f"= {_shown(total)}; write thirds as 1/3"
        )
    return exact


def parse_ratios(text: str) -> dict[str, Fraction]:
    """Shares from ``train=0.8,validation=0.1,test=0.1``, or from ``0.8,0.1,0.1`` for just these.

    Two shares without names are those of train and test.

    Raises:
        SplitError: As :func:`exact_ratios`; or a name is given twice, or to some shares only, or
            to none where there are neither two nor three.
    """
    pieces = [piece.strip() for piece in text.split(",")]
    if not any("=" in piece for piece in pieces) and len(pieces) in _USUAL_NAMES:
        return exact_ratios(dict(zip(_USUAL_NAMES[len(pieces)], pieces, strict=True)))
    named: dict[str, str] = {}
    for piece in pieces:
        name, equals, share = (part.strip() for part in piece.partition("="))
        if not equals or name in named:
            raise SplitError(
                f"ratios {text!r}: expected name=share for each split, each name once, got "
                f"{piece!r}; for example train=0.8,validation=0.1,test=0.1"
            )
        named[name] = share
    return exact_ratios(named)


def fraction_of(text: str) -> Fraction:
    """A share as an exact fraction.

    Raises:
        ValueError: It is none, or one of so many digits that Python would not print it, as 1e9999,
            or they would fill the memory, as those of 1e-999999999.
        ZeroDivisionError: It is a part of nothing.
    """
    exponent = text.casefold().partition("e")[2].strip().lstrip("+-")
    if len(exponent) > _EXPONENT_DIGITS_MAX:
        raise ValueError(f"{text[:40]!r} has too large an exponent")
    share = Fraction(text)
    if max(abs(share.numerator), share.denominator) >= _TOO_LARGE:
        raise ValueError(f"{text[:40]!r} has too many digits")
    return share


def _fraction(name: str, ratio: Ratio) -> Fraction:
    try:
        # Through its text: the float 0.1 means a tenth, not the binary fraction nearest to it.
        share = fraction_of(str(ratio))
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not name or share <= 0:
        raise SplitError(
            f"split {name!r}: expected a name and a share above 0, got {ratio!r}; "
            "leave a split that is to stay empty out"
        )
    return share


def _sum_in_words(ratios: Mapping[str, Fraction]) -> str:
    return " + ".join(_shown(share) for share in ratios.values()) or "no split at all"


def _shown(share: Fraction) -> str:
    try:
        return str(share)
    except ValueError:  # Python refuses to print integers of very many digits
        return "a fraction of very many digits"
