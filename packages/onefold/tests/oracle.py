"""The slow certain answer, in integers and Fractions, against which every faster path is tested.

A number is a ``Fraction``, or one of the four floats that no Fraction can be: NaN, the infinities
and -0.0. ``decode`` and ``encode`` go through the bits and use no floating-point arithmetic at all;
test_oracle.py holds them against values worked out by hand, NumPy's casts and ``math.fsum``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import TypeAlias

import ml_dtypes
import numpy as np

Number: TypeAlias = Fraction | float


@cache
def two_to(exponent: int) -> Fraction:
    """A power of two."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: sign, exponent and ``precision - 1`` bits of fraction."""

    dtype: np.dtype
    bits: int
    precision: int  # with the leading one
    emin: int
    emax: int

    @property
    def unsigned(self) -> np.dtype:
        return np.dtype(f"uint{self.bits}")

    @cached_property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def infinity(self) -> int:
        return self.sign - (1 << (self.precision - 1))

    @cached_property
    def nan(self) -> int:
        return self.infinity | 1 << (self.precision - 2)

    @cached_property
    def tiny(self) -> Fraction:
        """The least subnormal, of which every finite value is a multiple."""
        return two_to(self.emin - self.precision + 1)

    @cached_property
    def largest(self) -> Fraction:
        return (2 - two_to(1 - self.precision)) * two_to(self.emax)


FORMATS = {
    "float16": Format(np.dtype(np.float16), 16, 11, -14, 15),
    "bfloat16": Format(np.dtype(ml_dtypes.bfloat16), 16, 8, -126, 127),
    "float32": Format(np.dtype(np.float32), 32, 24, -126, 127),
    "float64": Format(np.dtype(np.float64), 64, 53, -1022, 1023),
}
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES = (*FORMATS, *INTEGERS)


def dtype_of(name: str) -> np.dtype:
    return FORMATS[name].dtype if name in FORMATS else np.dtype(name)


def decode(bits: int, form: Format) -> Number:
    """The number that ``bits`` stand for."""
    negative, magnitude = bits >= form.sign, bits % form.sign
    exponent, fraction = divmod(magnitude, 1 << (form.precision - 1))
    if magnitude >= form.infinity:
        return math.nan if magnitude > form.infinity else -math.inf if negative else math.inf
    if magnitude == 0:
        return -0.0 if negative else Fraction(0)
    if exponent:
        fraction += 1 << (form.precision - 1)
    value = fraction * two_to(form.emin - form.precision + max(exponent, 1))
    return -value if negative else value


def encode(number: Number, form: Format) -> int:
    """The bits of ``number`` rounded once: to the nearest, ties to even, to infinity beyond."""
    if isinstance(number, float):
        if math.isnan(number):
            return form.nan
        negative = math.copysign(1, number) < 0
        return negative * form.sign + (form.infinity if math.isinf(number) else 0)
    if number == 0:
        return 0
    above, below = abs(number.numerator), number.denominator
    exponent = above.bit_length() - below.bit_length()
    if above << max(0, -exponent) < below << max(0, exponent):
        exponent -= 1  # now 2**exponent <= above / below < 2**(exponent + 1)
    exponent = max(exponent, form.emin)
    shift = form.precision - 1 - exponent
    above, below = above << max(0, shift), below << max(0, -shift)
    units, rest = divmod(above, below)
    units += 2 * rest > below or (2 * rest == below and units % 2)  # half to even
    # A carry out of the fraction runs into the exponent, which is just what it must do.
    magnitude = ((exponent - form.emin) << (form.precision - 1)) + units
    return (number < 0) * form.sign + min(magnitude, form.infinity)


def exact_sum(numbers: Iterable[Number], weights: Iterable[int] | None = None) -> Number:
    """The sum by IEEE's rules for what is no Fraction; what has weight 0 is not there."""
    numbers = list(numbers)
    weights = [1] * len(numbers) if weights is None else list(weights)
    selected = [(n, w) for n, w in zip(numbers, weights, strict=True) if w]
    specials = {n for n, _ in selected if isinstance(n, float) and not math.isfinite(n)}
    if any(math.isnan(n) for n in specials) or len(specials) > 1:
        return math.nan
    if specials:
        return specials.pop()
    if selected and all(isinstance(n, float) for n, _ in selected):
        return -0.0  # nothing but negative zeros
    finite = [(n, w) for n, w in selected if isinstance(n, Fraction)]
    unit = math.lcm(*{n.denominator for n, _ in finite})
    return Fraction(sum(n.numerator * (unit // n.denominator) * w for n, w in finite), unit)


def quotient(number: Number, denominator: int) -> Number:
    """``number / denominator`` for a positive denominator."""
    return number if isinstance(number, float) else number / denominator


# -- arrays ---------------------------------------------------------------------------------------


def bits_of(array: np.ndarray) -> np.ndarray:
    """The bits of the elements, row-major, as unsigned integers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.dtype(f"uint{8 * flat.dtype.itemsize}"))


def numbers_of(array: np.ndarray) -> list[Number]:
    """The elements, row-major, decoded exactly."""
    if array.dtype.name in FORMATS:
        return [decode(int(bits), FORMATS[array.dtype.name]) for bits in bits_of(array)]
    return [Fraction(int(value)) for value in array.reshape(-1)]


def array_of(numbers: Iterable[Number], name: str) -> np.ndarray:
    """A one-dimensional array of the numbers, each rounded to the dtype."""
    if name not in FORMATS:
        return np.array([int(number) for number in numbers], dtype=name)
    form = FORMATS[name]
    bits = [encode(number, form) for number in numbers]
    return np.array(bits, dtype=form.unsigned).view(form.dtype)


def column_sums(arrays: Sequence[np.ndarray], weights: Sequence[int] | None = None) -> list[Number]:
    """The exact sums over the arrays, element by element, row-major."""
    return [
        exact_sum(column, weights)
        for column in zip(*(numbers_of(array) for array in arrays), strict=True)
    ]


def sum_columns(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """What ``sum_dense`` must give, flat; integer sums that do not fit are an OverflowError."""
    return array_of(column_sums(arrays), arrays[0].dtype.name)


def mean_columns(arrays: Sequence[np.ndarray], weights: Sequence[int] | None = None) -> np.ndarray:
    """What ``mean_dense`` must give, flat."""
    total = len(arrays) if weights is None else sum(weights)
    means = [quotient(number, total) for number in column_sums(arrays, weights)]
    name = arrays[0].dtype.name
    return array_of(means, name if name in FORMATS else "float64")


def same_bits(result: object, expected: np.ndarray) -> None:
    """Assert that ``result`` is an array with the dtype and the bits of ``expected``, row-major.

    All NaNs count as one.
    """
    assert isinstance(result, np.ndarray), f"an array was expected, not {type(result)}"
    assert result.dtype == expected.dtype, f"{result.dtype} instead of {expected.dtype}"
    assert result.size == expected.size, f"{result.size} elements instead of {expected.size}"
    ours, theirs = bits_of(expected), bits_of(result)
    differs = ours != theirs
    if expected.dtype.name in FORMATS:
        differs &= ~(np.isnan(expected.reshape(-1)) & np.isnan(result.reshape(-1)))
    where = np.flatnonzero(differs)
    if where.size:
        at, digits = where[0], 2 * result.dtype.itemsize
        raise AssertionError(
            f"{where.size} of {result.size} elements differ; the first is {at}: "
            f"{result.reshape(-1)[at]!r} (0x{theirs[at]:0{digits}x}) instead of "
            f"{expected.reshape(-1)[at]!r} (0x{ours[at]:0{digits}x})"
        )


def same_columns(result: object, expected: np.ndarray, arrays: Sequence[np.ndarray]) -> None:
    """As :func:`same_bits`; a failure shows the addends of the first column that differs."""
    try:
        same_bits(result, expected)
    except AssertionError as error:
        if isinstance(result, np.ndarray) and result.size == expected.size:
            for at in range(expected.size):
                one = slice(at, at + 1)
                try:
                    same_bits(result.reshape(-1)[one], expected.reshape(-1)[one])
                except AssertionError:
                    addends = [array.reshape(-1)[at] for array in arrays]
                    words = [f"0x{int(bits_of(a)[0]):x}" for a in map(np.asarray, addends)]
                    raise AssertionError(f"{error}; addends {addends} ({words})") from None
        raise


# -- the plain-Python rules -----------------------------------------------------------------------


def number_of(value: float | Fraction) -> Number:
    """An int, float or Fraction as a Number."""
    if isinstance(value, float):
        return decode(struct.unpack("<Q", struct.pack("<d", value))[0], FORMATS["float64"])
    return Fraction(value)


def python_sum(values: Sequence[float | Fraction]) -> float | Fraction:
    """The sum of ints, floats and Fractions as the plain rules give it."""
    total = exact_sum(number_of(value) for value in values)
    if any(isinstance(value, float) for value in values):
        return struct.unpack("<d", struct.pack("<Q", encode(total, FORMATS["float64"])))[0]
    if any(isinstance(value, Fraction) for value in values):
        return total
    return int(total)


def same_number(result: object, expected: object) -> None:
    """Assert the same type and the same value, bit for bit; all NaNs count as one."""
    assert type(result) is type(expected), f"{result!r} instead of {expected!r}"
    if isinstance(expected, float) and not math.isnan(expected):
        assert struct.pack("<d", result) == struct.pack("<d", expected), (
            f"{result!r} ({float(result).hex()}) instead of {expected!r} ({expected.hex()})"
        )
    elif isinstance(expected, float):
        assert math.isnan(result), f"{result!r} instead of nan"
    else:
        assert result == expected, f"{result!r} instead of {expected!r}"
