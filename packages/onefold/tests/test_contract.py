"""The two rules in plain Python, against DESIGN.md's fixtures and an oracle of Fractions."""

from __future__ import annotations

import copy
import math
import re
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from columns import FLOAT_KINDS, hard_arrays
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import python_sum, same_bits, same_number

import onefold
from onefold import reduce_coordinates, reduce_replicas
from onefold.errors import InvalidInput, RowError

STEADY = settings(deadline=None, max_examples=200, derandomize=True, database=None)
SIZES = (1, 2, 3, 7, 10, 300, 1000, 2**31, 2**53 + 1, 2**63, 2**70)
NOT_NUMBERS = [True, False, "1", None, Decimal(1), 1j, b"1", [1], (1,)]

sizes = pytest.mark.parametrize("n", SIZES)


def fresh(number):
    """An equal int that, where it is not small, is another object."""
    return int(str(number))


def same_pairs(result, expected):
    """Assert a list of lists of two: the same coordinates, the same sums in type and bits."""
    assert isinstance(result, list)
    assert all(isinstance(pair, list) and len(pair) == 2 for pair in result)
    assert [coordinate for coordinate, _ in result] == [coordinate for coordinate, _ in expected]
    for (coordinate, ours), (_, theirs) in zip(result, expected, strict=True):
        assert type(coordinate) is int
        same_number(ours, theirs)


# -- the fixtures ---------------------------------------------------------------------------------


@sizes
@pytest.mark.parametrize("row", [list, tuple])
@pytest.mark.parametrize("rows", [list, tuple, iter])
def test_fixtures_of_replicas(n, row, rows):
    """DESIGN.md's fixtures for replicas hold for any N, in any kind of sequence or iterator."""
    for given_rows, expected in [
        ([(n, "a", n), (n, "a", 3 * n), (n, "b", 2 * n)], 5 * n),
        ([], 0),
        ([(n + 1, "a", 9 * n)], 0),
        ([(n - 1, "a", 100), (n, "a", n)], n),
        ([(n, "a", 4)], 4),
        ([(n, "a", n), (n, "a", 0)], 0),
        ([(n, "a", n), (n - 1, "a", 50 * n)], n),
    ]:
        same_number(reduce_replicas(rows([row(r) for r in given_rows]), fresh(n)), expected)


@sizes
@pytest.mark.parametrize("pair", [list, tuple])
@pytest.mark.parametrize("rows", [list, tuple, iter])
def test_fixtures_of_coordinates(n, pair, rows):
    """DESIGN.md's fixtures for coordinates hold for any N, in any kind of sequence or iterator."""
    for given_rows, expected in [
        ([("a", [(2, n), (0, 1)]), ("b", [(0, 3), (2, 4)])], [[0, 4], [2, n + 4]]),
        ([], []),
        ([("a", [])], []),
        ([("a", [(n, n)])], [[n, n]]),
        ([("a", [(-1, n)]), ("b", [(-1, -n)])], [[-1, 0]]),
        ([("a", [(1, 2)]), ("b", [(3, 4)])], [[1, 2], [3, 4]]),
    ]:
        remade = [pair([w, rows([pair(e) for e in entries])]) for w, entries in given_rows]
        same_pairs(reduce_coordinates(rows(remade)), expected)


def test_the_rules_are_exported_and_live_in_contract():
    """The top-level names are those of onefold.contract."""
    from onefold import contract

    assert onefold.reduce_replicas is contract.reduce_replicas
    assert onefold.reduce_coordinates is contract.reduce_coordinates


# -- replicas -------------------------------------------------------------------------------------


def last_at(rows, step):
    """The winning values, found by looking back from the end for each worker."""
    workers = {(type(row[1]), row[1]) for row in rows if row[0] == step}
    return [
        next(r[2] for r in reversed(rows) if r[0] == step and (type(r[1]), r[1]) == worker)
        for worker in workers
    ]


numbers = (
    st.integers(-(2**80), 2**80)
    | st.floats()
    | st.fractions(max_denominator=10**6)
    | st.sampled_from([0, 0.0, -0.0, math.inf, -math.inf, math.nan, 10**400, 2**53, 5e-324, 1e308])
)
names = st.sampled_from(["a", "b", "1", "", 1, 2, 0, -1, 2**70])
replica_rows = st.lists(st.tuples(st.integers(6, 8), names, numbers), max_size=12)


@STEADY
@given(rows=replica_rows)
def test_the_last_row_of_each_worker_at_the_step_is_summed(rows):
    """For any mixture of ints, floats and Fractions, in value, bits and type."""
    same_number(reduce_replicas(rows, 7), python_sum(last_at(rows, 7)))


@STEADY
@given(rows=replica_rows, seed=st.integers(0, 2**32))
def test_rows_of_other_steps_and_repeats_of_the_last_change_nothing(rows, seed):
    """Stale and future rows and retransmissions can stand anywhere after what they repeat."""
    expected = reduce_replicas(rows, 7)
    rng = Random(seed)
    others = [(rng.choice([6, 8, -7, 2**70]), rng.choice(["a", 1]), 10**9) for _ in range(4)]
    mixed = list(rows)
    for other in others:
        mixed.insert(rng.randint(0, len(mixed)), other)
    same_number(reduce_replicas(mixed, 7), expected)
    last = {(type(w), w): (s, w, v) for s, w, v in rows if s == 7}
    same_number(reduce_replicas([*mixed, *last.values()], 7), expected)


@pytest.mark.parametrize("kind", FLOAT_KINDS)
def test_bits_do_not_depend_on_the_order_of_workers(kind):
    """The rule gives what ``sum_dense`` gives for float64, for every order of the rows."""
    arrays = hard_arrays("float64", kind, 9, 40, seed=21)
    totals = onefold.sum_dense(arrays)
    rng = Random(21)
    for at in range(40):
        rows = [(3, f"w{worker}", float(array[at])) for worker, array in enumerate(arrays)]
        for _ in range(3):
            rng.shuffle(rows)
            same_number(reduce_replicas(rows, 3), float(totals[at]))


def test_equal_values_of_two_workers_both_count():
    """De-duplication is by worker, never by payload; A, B, A ends at A."""
    assert reduce_replicas([[7, "a", 2], [7, "b", 2], [7, "a", 2]], 7) == 4
    assert reduce_replicas([[7, "a", 2], [7, "a", 3], [7, "a", 2]], 7) == 2


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[7, "a", 2], [7, "b", 5], [7, "a", 2]], 7),
        ([[7, "a", 2], [7, "b", 5], [7, "a", 3]], 8),
        ([[7, "a", 2], [7, "b", 5], [7, "a", 3], [6, "a", 9]], 8),
        ([[7, "a", 2], [7, "b", 5], [6, "a", 100]], 7),
        ([[7, "a", 2], [7, "b", 5], [8, "b", 50]], 7),
        ([[7, "a", 2], [7, "b", 5], [8, "c", 50]], 7),
        ([[7, 9, 2], [7, 265, 5]], 7),
        ([[7, 1, 2], [7, 65537, 5]], 7),
        ([[7, 1, 2], [7, 2**64 + 1, 5]], 7),
        ([[7, 1, 2], [7, "1", 5]], 7),
        ([[7, 1, 2], [7, "1", 5], [7, 1, 3]], 8),
        ([[7, "a", 2], [7, "A", 5], [7, "a ", 1], [7, "", 10]], 18),
        ([[7, "grad:1", 1], [7, "grad:2", 2]], 3),
        ([[-7, "a", 100], [7, "a", 1]], 1),
    ],
)
def test_replicas_of_the_catalogue(rows, expected):
    """Delivery and identity: each trap of the catalogue's section A gives its expected value."""
    same_number(reduce_replicas(rows, 7), expected)


def test_steps_are_compared_by_value():
    """Large equal steps are the same step, close ones are not, 0 and negatives are steps."""
    big = 2**70
    assert reduce_replicas([(fresh(big), "a", 1), (fresh(big) + 1, "b", 2)], fresh(big)) == 1
    assert reduce_replicas([(fresh(2**53 + 1), "a", 1), (2**53, "b", 2)], fresh(2**53 + 1)) == 1
    assert reduce_replicas([(0, "a", 1), (1, "b", 2)], 0) == 1
    assert reduce_replicas([(-1, "a", 1), (1, "b", 2)], -1) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2], 3),
        ([2**70, 1], 2**70 + 1),
        ([Fraction(1, 3), Fraction(2, 3)], Fraction(1)),
        ([Fraction(1, 2), 1], Fraction(3, 2)),
        ([Fraction(4)], Fraction(4)),
        ([1, 0.5], 1.5),
        ([1.0], 1.0),
        ([1, -1.0], 0.0),
        ([Fraction(1, 3), 0.0], 1 / 3),
        ([2**53, 1.0], 2.0**53),
        ([2**53, 1.0, Fraction(1, 10**40)], 2.0**53 + 2),
        ([2**53, 1.0, 5e-324], 2.0**53 + 2),
        ([1e16, 1, -1e16, 1], 2.0),
        ([0.1] * 10, 1.0),
        ([10**400, -(10**400), 0.5], 0.5),
        ([10**400, 0.5], math.inf),
        ([-(10**400), 0.5], -math.inf),
        ([10**400, -math.inf], -math.inf),
        ([1e308, 1e308], math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([1.7976931348623157e308, 2.0**970], math.inf),
        ([1.7976931348623157e308, 2**970 - 1], 1.7976931348623157e308),
        ([math.inf, -math.inf], math.nan),
        ([math.inf, math.inf], math.inf),
        ([math.nan, 1], math.nan),
        ([math.nan, 10**400], math.nan),
        ([-0.0], -0.0),
        ([-0.0, -0.0], -0.0),
        ([-0.0, 0.0], 0.0),
        ([-0.0, 0], 0.0),
        ([-0.0, Fraction(0)], 0.0),
        ([0.0], 0.0),
        ([5e-324, -5e-324], 0.0),
        ([0.0, Fraction(1, 10**400)], 0.0),
        ([0.0, Fraction(-1, 10**400)], -0.0),
        ([0.0, Fraction(1, 2**1075)], 0.0),
        ([0.0, Fraction(1, 2**1075) + Fraction(1, 10**400)], 5e-324),
    ],
)
def test_sums_have_the_type_and_bits_that_the_rules_state(values, expected):
    """Ints stay ints, Fractions Fractions; a float among them is rounded once; zeros by rule."""
    rows = [(7, f"w{at}", value) for at, value in enumerate(values)]
    same_number(reduce_replicas(rows, 7), expected)
    same_number(reduce_replicas(reversed(rows), 7), expected)
    same_pairs(reduce_coordinates([(w, [(7, v)]) for _, w, v in rows]), [[7, expected]])
    same_pairs(reduce_coordinates([("a", [(7, v) for v in values])]), [[7, expected]])


def test_only_winning_rows_decide_the_type():
    """A float that was replaced, or that is of another step, does not make the sum a float."""
    rows = [
        (7, "a", 0.5),
        (7, "a", 2**60 + 1),
        (6, "b", 0.5),
        (7, "b", 1),
        (8, "c", Fraction(1, 2)),
    ]
    same_number(reduce_replicas(rows, 7), 2**60 + 2)
    same_number(reduce_replicas([(7, "a", math.nan), (7, "a", 1)], 7), 1)


# -- coordinates ----------------------------------------------------------------------------------


def by_coordinate(rows):
    found = {}
    for _, entries in rows:
        for coordinate, value in entries:
            found.setdefault(coordinate, []).append(value)
    return [[coordinate, python_sum(found[coordinate])] for coordinate in sorted(found)]


keys = st.sampled_from([-(2**63), -1, 0, 1, 2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**70])
coordinate_rows = st.lists(
    st.tuples(names, st.lists(st.tuples(keys | st.integers(), numbers), max_size=6)), max_size=6
)


@STEADY
@given(rows=coordinate_rows)
def test_values_are_summed_by_coordinate(rows):
    """For any coordinates and mixture of numbers: sorted, in value, bits and type."""
    same_pairs(reduce_coordinates(rows), by_coordinate(rows))


@STEADY
@given(rows=coordinate_rows, seed=st.integers(0, 2**32))
def test_the_order_of_rows_and_entries_and_the_split_between_rows_do_not_matter(rows, seed):
    """The same entries under other rows and in another order have the same sums, bit for bit."""
    rng = Random(seed)
    expected = reduce_coordinates(rows)
    entries = [entry for _, part in rows for entry in part]
    rng.shuffle(entries)
    cut = rng.randint(0, len(entries))
    same_pairs(reduce_coordinates([("x", entries[:cut]), ("y", entries[cut:])]), expected)
    same_pairs(reduce_coordinates(reversed(rows)), expected)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", [(5, 1), (9, 2)]), ("b", [(9, 10), (5, 20)])], [[5, 21], [9, 12]]),
        ([("a", [(5, 1), (9, 2)]), ("b", [(7, 10), (9, 20)])], [[5, 1], [7, 10], [9, 22]]),
        ([("a", [(0, 8)]), ("b", [(2, 4)])], [[0, 8], [2, 4]]),
        ([("a", [(3, 1), (3, 2)]), ("b", [(3, 4)])], [[3, 7]]),
        ([("a", [(2, 1), (5, 1)]), ("b", [(5, 10), (2, 20)])], [[2, 21], [5, 11]]),
        ([("a", [(2, 1), (5, 1)]), ("b", [(2, 10), (2, 20)])], [[2, 31], [5, 1]]),
        ([("a", [(1, 2.0)]), ("b", [])], [[1, 2.0]]),
        ([("a", []), ("b", [])], []),
        ([("a", [(1, 5)]), ("b", [(1, -5), (2, 3)])], [[1, 0], [2, 3]]),
        ([("a", [(1, 5.0)]), ("b", [(1, -5.0)])], [[1, 0.0]]),
        ([("a", [(-1, 9), (0, 1)])], [[-1, 9], [0, 1]]),
        ([("a", [(16777216, 1), (16777217, 2)])], [[16777216, 1], [16777217, 2]]),
        ([("a", [(2**53, 1), (2**53 + 1, 2)])], [[2**53, 1], [2**53 + 1, 2]]),
        ([("a", [(2**64, 1), (0, 2)])], [[0, 2], [2**64, 1]]),
        ([("a", [(40000, 1), (-25536, 2)])], [[-25536, 2], [40000, 1]]),
        ([("a", [(10, 1), (9, 2)])], [[9, 2], [10, 1]]),
    ],
)
def test_coordinates_of_the_catalogue(rows, expected):
    """Sparse traps of the catalogue's section D: each gives its expected pairs."""
    same_pairs(reduce_coordinates(rows), expected)


def test_each_coordinate_has_a_type_of_its_own():
    """A float at one coordinate does not round the ints at another."""
    rows = [("a", [(1, 2**60 + 1), (2, 0.5), (3, Fraction(1, 2))]), ("b", [(1, 1), (2, 1), (3, 1)])]
    same_pairs(reduce_coordinates(rows), [[1, 2**60 + 2], [2, 1.5], [3, Fraction(3, 2)]])


def test_two_rows_of_one_worker_are_both_summed():
    """This rule knows no step and hence no retransmission: every row counts."""
    same_pairs(reduce_coordinates([("a", [(1, 2)]), ("a", [(1, 2), (3, 1)])]), [[1, 4], [3, 1]])


# -- what goes in stays as it was -----------------------------------------------------------------


def test_inputs_are_not_changed_and_results_are_not_views_of_them():
    """Neither rule writes to its rows, and changing a result changes no row."""
    rows = [[7, "a", 2], [7, "b", 5.0], [7, "a", Fraction(1, 2)], [6, "a", 1]]
    sparse = [["a", [[2, 7], [0, 1], [2, 1.0]]], ["b", []], ["c", [[9, Fraction(1)]]]]
    kept, kept_sparse = copy.deepcopy(rows), copy.deepcopy(sparse)
    reduce_replicas(rows, 7)
    result = reduce_coordinates(sparse)
    assert rows == kept
    assert sparse == kept_sparse
    for pair in result:
        pair[1] = 99
    assert sparse == kept_sparse
    assert reduce_coordinates(sparse) == [[0, 1], [2, 8.0], [9, Fraction(1)]]


def test_rows_come_from_generators_that_are_read_once():
    """Rows and entries may be made on the way; each is taken once and in order."""
    taken = []

    def rows():
        for at in range(5):
            taken.append(at)
            yield (7, "a", at)

    assert reduce_replicas(rows(), 7) == 4
    assert taken == [0, 1, 2, 3, 4]
    parts = ((w, ((at, 1) for at in (2, 1, 2))) for w in "ab")
    same_pairs(reduce_coordinates(parts), [[1, 2], [2, 4]])


# -- what is refused ------------------------------------------------------------------------------


def refused(position, call):
    """Assert a RowError for the position whose message names it; return the message."""
    with pytest.raises(RowError) as caught:
        call()
    assert caught.value.position == position
    message = str(caught.value)
    assert re.search(rf"\b{position}\b", message)
    return message


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize("step", [7, 6])
def test_a_value_that_is_no_number_is_refused(value, step):
    """bool, str, None, Decimal, complex and containers are errors, at other steps too."""
    rows = [(7, "a", 1), (7, "b", 2), (step, "a", value), (7, "a", 3)]
    for given_rows in (rows, iter(rows)):
        message = refused(2, lambda given_rows=given_rows: reduce_replicas(given_rows, 7))
        assert re.search("int|number", message, re.IGNORECASE)
    for entries in ([(0, 1), (step, value)], [(step, value)]):
        message = refused(1, lambda e=entries: reduce_coordinates([("a", [(0, 1)]), ("b", e)]))
        assert re.search("int|number", message, re.IGNORECASE)


@pytest.mark.parametrize("worker", [True, False, None, 1.0, b"a", ("a",), ["a"], Fraction(1)])
@pytest.mark.parametrize("step", [7, 6])
def test_a_worker_that_is_no_name_is_refused(worker, step):
    """Workers are str or int; True is not worker 1."""
    rows = [(7, 1, 1), (step, worker, 2)]
    assert "str" in refused(1, lambda: reduce_replicas(rows, 7))
    assert "str" in refused(1, lambda: reduce_coordinates([(1, []), (worker, [(1, 2)])]))
    assert "str" in refused(0, lambda: reduce_coordinates([(worker, [])]))


@pytest.mark.parametrize("step", [True, None, "7", 7.0, Fraction(7), [7]])
def test_a_step_that_is_no_int_is_refused(step):
    """A step in a row is an int, not what equals or resembles one."""
    assert "int" in refused(1, lambda: reduce_replicas([(7, "a", 1), (step, "b", 2)], 7))


@pytest.mark.parametrize("step", [True, None, "7", 7.0, Fraction(7)])
def test_a_target_step_that_is_no_int_is_refused(step):
    """The step asked for is an int as well; it is in no row, so this is no RowError."""
    for rows in ([], [(7, "a", 1)]):
        with pytest.raises(InvalidInput) as caught:
            reduce_replicas(rows, step)
        assert not isinstance(caught.value, RowError)


@pytest.mark.parametrize("coordinate", [True, None, "1", 1.0, Fraction(1), (1,)])
def test_a_coordinate_that_is_no_int_is_refused(coordinate):
    """A coordinate is an explicit integer, not what equals or resembles one."""
    rows = [("a", [(1, 1)]), ("b", [(2, 1), (coordinate, 1)])]
    assert "int" in refused(1, lambda: reduce_coordinates(rows))


@pytest.mark.parametrize(
    "row", [(), (7,), (7, "a"), (7, "a", 1, 1), None, 7, "7ab", {7: 1, 8: 2, 9: 3}, {7, 8, 9}]
)
def test_a_row_of_replicas_that_is_no_triple_is_refused(row):
    """Missing and surplus fields are errors, not defaults or leftovers."""
    refused(1, lambda: reduce_replicas([(7, "a", 1), row, (7, "b", 1)], 7))


@pytest.mark.parametrize(
    "row", [(), ("a",), ("a", [], []), None, 7, "ab", {"a": [], "b": []}, ("a", None), ("a", 5)]
)
def test_a_row_of_coordinates_that_is_no_pair_is_refused(row):
    """A row is a worker and its entries, nothing more and nothing less."""
    refused(1, lambda: reduce_coordinates([("a", [(1, 1)]), row, ("b", [])]))


@pytest.mark.parametrize("entry", [(), (1,), (1, 2, 3), None, 5, "12"])
def test_an_entry_that_is_no_pair_is_refused(entry):
    """An entry is a coordinate and a value; the position is that of the row it is in."""
    refused(2, lambda: reduce_coordinates([("a", []), ("b", [(1, 1)]), ("c", [(1, 1), entry])]))


def test_the_first_bad_row_is_the_one_named():
    """Of several bad rows the first is reported, and it is an InvalidInput and a ValueError."""
    rows = [(7, "a", 1), (6, "b", None), (7, "c", "x")]
    refused(1, lambda: reduce_replicas(rows, 7))
    refused(0, lambda: reduce_coordinates([("a", [(1, None)]), ("b", [("x", 1)])]))
    assert issubclass(RowError, InvalidInput)
    assert issubclass(RowError, ValueError)


def test_a_superseded_row_is_validated_too():
    """A bad value is an error even where a later row of the same worker replaces it."""
    refused(0, lambda: reduce_replicas([(7, "a", "x"), (7, "a", 1)], 7))


def test_the_rule_and_arrays_agree_on_zeros():
    """One rule for negative zero, for one worker as for many, in plain Python and in arrays."""
    import numpy as np

    for values in ([-0.0], [-0.0, -0.0], [-0.0, 0.0], [1.0, -1.0], [0.0]):
        rows = [(7, at, value) for at, value in enumerate(values)]
        plain = np.array([reduce_replicas(rows, 7)])
        same_bits(onefold.sum_dense([np.array([value]) for value in values]), plain)


@pytest.mark.parametrize("rows", [None, 3, 1.5])
def test_what_is_no_rows_is_told(rows):
    """It can be iterated over, or it is an error of ours with the form of a row in it."""
    with pytest.raises(InvalidInput, match=r"rows \(step, worker, value\), not "):
        reduce_replicas(rows, 7)
    with pytest.raises(InvalidInput, match=r"rows \(worker, entries\), not "):
        reduce_coordinates(rows)
