"""Values: equal by type and bits, and the same after their tagged form."""

from __future__ import annotations

import collections
import decimal
import enum
import fractions
import json
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failuremap.child import tagged
from failuremap.values import NotAValue, json_view, same, shown, tag, untag

checked = settings(derandomize=True, max_examples=80, deadline=None, database=None)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**300), 2**300)
    | st.floats()
    | st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, False, "", "1", math.nan, -math.nan, 5e-324])
    | st.text(st.characters(exclude_categories=["Cs"]))
)
KEYS = SCALARS | st.tuples(SCALARS, SCALARS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=20,
)


def spelled(value: object) -> str:
    """A value as text that shows types and bits: what ``same`` must agree with, made otherwise."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    if isinstance(value, dict):
        pairs = sorted((spelled(key), spelled(item)) for key, item in value.items())
        return f"dict{pairs}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}{[spelled(item) for item in value]}"
    return f"{type(value).__name__} {value!r}"


@checked
@given(VALUES)
def test_a_value_is_the_same_after_its_tagged_form(value):
    """Through JSON text and back: types, bits and order of items; twice gives the same text."""
    form = tag(value)
    text = json.dumps(form, allow_nan=False)
    back = untag(json.loads(text))
    assert same(back, value)
    assert spelled(back) == spelled(value)
    assert json.dumps(tag(back)) == text


@checked
@given(VALUES, VALUES)
def test_two_values_are_the_same_if_and_only_if_types_and_bits_are(left, right):
    """Python's own equality is not asked."""
    assert same(left, left)
    assert same(left, right) == (spelled(left) == spelled(right)) == same(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        ([1], (1,)),
        ([], ()),
        ([], {}),
        ("1", 1),
        ("", None),
        (0, None),
        (2**53, float(2**53)),
        ({1: 2}, {True: 2}),
        ({1: 2}, {1: 2.0}),
        ({1: 2}, {1.0: 2}),
        ([[1]], [[1.0]]),
        (1.0, math.nextafter(1.0, 2.0)),
        ("\u00e9", "e\u0301"),
    ],
)
def test_values_that_look_alike_stay_distinct(left, right):
    """Each pair is equal somewhere: in Python, in JSON, or on the screen."""
    assert not same(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (math.nan, -math.nan),
        (math.nan, struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1: 0, 1.5: 0, "1": 0}, {"1": 0, 1.5: 0, 1: 0}),
    ],
)
def test_what_makes_no_difference(left, right):
    """Every NaN is one, and the order of a dict's keys says nothing."""
    assert same(left, right)


FORMS = [
    (None, ["n"]),
    (True, ["b", True]),
    (-12, ["i", "-12"]),
    (2**64, ["i", "18446744073709551616"]),
    (1.0, ["f", "3ff0000000000000"]),
    (-0.0, ["f", "8000000000000000"]),
    (math.inf, ["f", "7ff0000000000000"]),
    (-math.nan, ["f", "7ff8000000000000"]),
    ("é", ["s", "é"]),
    ([1, (2,)], ["l", [["i", "1"], ["t", [["i", "2"]]]]]),
    (
        {"b": 1, "a": [], 1: None},
        ["d", [[["i", "1"], ["n"]], [["s", "a"], ["l", []]], [["s", "b"], ["i", "1"]]]],
    ),
]


@pytest.mark.parametrize(("value", "form"), FORMS)
def test_the_tagged_form_is_the_published_one(value, form):
    """It is on the wire, in digests and in documents: it cannot change unnoticed."""
    assert tag(value) == form
    assert same(untag(form), value)


class Liar(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class Half(float):
    __slots__ = ()


class Row(list):
    __slots__ = ()


class Named(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Liar(7), "Liar"),
        (Half(0.5), "Half"),
        (Row(), "Row"),
        (Named("x"), "Named"),
        (collections.OrderedDict(), "collections.OrderedDict"),
        (collections.namedtuple("Pair", "a b")(1, 2), "Pair"),
        (enum.IntEnum("Color", "RED").RED, "Color"),
        (b"x", "bytes"),
        (bytearray(), "bytearray"),
        ({1}, "set"),
        (frozenset(), "frozenset"),
        (1j, "complex"),
        (range(3), "range"),
        ((i for i in ()), "generator"),
        (decimal.Decimal(1), "decimal.Decimal"),
        (fractions.Fraction(1), "fractions.Fraction"),
        (..., "ellipsis"),
        (NotImplemented, "NotImplementedType"),
        (int, "type"),
        (len, "builtin_function_or_method"),
        (object(), "object"),
    ],
)
def test_what_is_no_value_is_refused_wherever_it_stands(value, name):
    """At the top, in a list, a tuple, a dict; the message names the type."""
    for place in (value, [value], (0, value), {"k": [value]}):
        with pytest.raises(NotAValue, match=f"{name} is not a plain value"):
            tag(place)


@pytest.mark.parametrize("value", ["\ud800", ["\udfff"], {"\ud800": 1}, "a\ud83d"])
def test_half_of_a_surrogate_pair_is_no_text(value):
    """It has no UTF-8, hence no digest."""
    with pytest.raises(NotAValue, match="surrogate"):
        tag(value)


def nested(depth: int, value: object = 0) -> object:
    for _ in range(depth):
        value = [value]
    return value


def test_the_depth_of_a_value_is_bounded_on_both_ways():
    """A hundred levels, and not one more; a value that holds itself is too deep."""
    deepest = nested(tagged.DEPTH_MAX)
    assert same(untag(tag(deepest)), deepest)
    with pytest.raises(NotAValue, match="100 deep"):
        tag([deepest])
    with pytest.raises(NotAValue, match="100 deep"):
        untag(["l", [tag(deepest)]])
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(NotAValue, match="deep"):
        tag(endless)


@pytest.mark.parametrize(
    "form",
    [
        None,
        7,
        "n",
        {},
        [],
        ["n", 1],
        ["b"],
        ["b", 1],
        ["b", "true"],
        ["i", 12],
        ["i", ""],
        ["i", "-"],
        ["i", "-0"],
        ["i", "007"],
        ["i", "+1"],
        ["i", "1_0"],
        ["i", " 1"],
        ["i", "1.0"],
        ["i", "١"],
        ["i", "²"],
        ["i", "--1"],
        ["i", "9" * 4301],
        ["f", 1.0],
        ["f", "3FF0000000000000"],
        ["f", "3ff000000000000"],
        ["f", "3ff00000000000000"],
        ["f", "3ff0 00000000000"],
        ["f", "7ff0000000000001"],
        ["f", "fff8000000000000"],
        ["f", "zzzzzzzzzzzzzzzz"],
        ["s", 1],
        ["s", "\ud800"],
        ["l"],
        ["l", {}],
        ["l", [1]],
        ["l", [], []],
        ["t", "ab"],
        ["d", {}],
        ["d", [["i", "1"]]],
        ["d", [[["i", "1"], ["n"], ["n"]]]],
        ["d", [[["l", []], ["n"]]]],
        ["d", [[["t", [["l", []]]], ["n"]]]],
        ["d", [[["i", "1"], ["n"]], [["i", "1"], ["n"]]]],
        ["d", [[["i", "1"], ["n"]], [["b", True], ["n"]]]],
        ["d", [[["i", "1"], ["n"]], [["f", "3ff0000000000000"], ["n"]]]],
        ["z", []],
    ],
)
def test_what_is_not_the_tagged_form_of_a_value_is_refused(form):
    """One spelling a value: another one, or what only resembles one, is ``NotAValue``."""
    with pytest.raises(NotAValue):
        untag(form)


def test_every_integer_that_is_read_can_be_written():
    """What ``untag`` takes ``tag`` takes, up to the bound on digits."""
    for digits in (3880, 3885, tagged.DIGITS_MAX):
        for sign in ("", "-"):
            form = ["i", sign + "9" * digits]
            try:
                value = untag(form)
            except NotAValue:
                continue
            assert tag(value) == form


def test_an_integer_of_too_many_digits_is_refused_as_a_value():
    """Before Python's own limit raises something else."""
    assert tag(-(10**3000)) == ["i", "-1" + "0" * 3000]
    for value in (10**4300, -(10**4300), 1 << 10**6):
        with pytest.raises(NotAValue, match="bits"):
            tag(value)


def test_the_json_view_is_what_json_would_give_back():
    """Tuples are lists, keys are strings; the rest is as it was."""
    value = {"a": (1, [2.5, (None, True)]), 3: "x"}
    assert json_view(value) == json.loads(json.dumps(value))
    assert same(json_view((1, ())), [1, []])


def test_the_json_view_of_keys_is_that_of_json_too():
    """Keys that are no strings are written as JSON writes them."""
    value = {True: 1, None: 2, 1.5: 3}
    assert json_view(value) == json.loads(json.dumps(value))


def test_a_long_value_is_shown_shortened():
    """Both ends stay, and the length is bounded."""
    assert shown([1, "x"]) == "[1, 'x']"
    text = shown("a" * 300 + "z" * 300)
    assert text.startswith("'aaa")
    assert text.endswith("zzz'")
    assert len(text) <= 203
    assert shown("y" * 198) == repr("y" * 198)
    assert "…" in shown("y" * 199)
