"""Updates: checked when they are made, and identified by their content alone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import onefold
from onefold.checks import WEIGHT_MAX, check_weight
from onefold.errors import InvalidUpdate
from onefold.update import DTYPES, Signature, Sparse, TensorSpec, Update, chunks

# -- Sparse ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_coordinates_become_int64(dtype: str) -> None:
    """Any integer type is a coordinate; none is narrowed."""
    sparse = Sparse(np.array([1, 100], dtype=dtype), np.zeros(2))
    assert sparse.coordinates.dtype == np.int64
    assert sparse.coordinates.tolist() == [1, 100]


@pytest.mark.parametrize("coordinate", [-(2**63), -1, 16777217, 59000001, 2**53 + 1, 2**63 - 1])
def test_coordinates_have_their_full_width(coordinate: int) -> None:
    """M30: neither float32, float64, 32 nor 16 bits; negative ones are ordinary."""
    sparse = Sparse(np.array([coordinate]), np.zeros(1))
    assert sparse.coordinates.tolist() == [coordinate]


@pytest.mark.parametrize(
    ("coordinates", "values", "shape"),
    [
        (np.array([1.0]), np.zeros(1), None),
        (np.array([True]), np.zeros(1), None),
        (np.array(["1"]), np.zeros(1), None),
        (np.array([2**63], dtype=np.uint64), np.zeros(1), None),
        (np.array([[1]]), np.zeros(1), None),
        (np.array(1), np.zeros(1), None),
        (np.array([1, 2]), np.zeros(1), None),
        (np.array([1]), np.array(0.0), None),
        (np.array([1]), np.array(["x"]), None),
        (np.array([1]), np.array([None]), None),
        (np.array([1]), np.array([1j]), None),
        (np.array([1]), np.array([True]), None),
        (np.array([5]), np.zeros(1), (5,)),
        (np.array([-1]), np.zeros(1), (5,)),
        (np.array([0]), np.zeros((1, 2)), (5,)),
        (np.array([0]), np.zeros((1, 2)), (5, 3)),
        (np.array([0]), np.zeros(1), (5, 1)),
        (np.array([0]), np.zeros(1), ()),
        (np.array([], dtype=np.int64), np.zeros(0), (-1,)),
    ],
)
def test_what_is_no_sparse_tensor_is_refused(
    coordinates: np.ndarray, values: np.ndarray, shape: tuple[int, ...] | None
) -> None:
    """Floats and flags are no coordinates, and with a shape a coordinate lies inside it."""
    with pytest.raises(InvalidUpdate) as caught:
        Sparse(coordinates, values, shape)
    assert str(caught.value)


@pytest.mark.parametrize("shape", [3, "ab", (2.5,), (None,), ((1,),), (True,)])
def test_what_is_no_shape_is_told(shape: object) -> None:
    """With the form that it should have."""
    with pytest.raises(InvalidUpdate, match=r"is \(size,\), where size is an integer"):
        Sparse(np.array([0]), np.zeros(1), shape)  # type: ignore[arg-type]


def test_values_in_a_list_are_told_to_lack_a_dtype() -> None:
    """Coordinates have one type; values have that which all workers agree on."""
    assert Sparse([1, 2], np.zeros(2)).coordinates.tolist() == [1, 2]  # type: ignore[arg-type]
    with pytest.raises(InvalidUpdate, match=r"values of a Sparse .* np\.asarray\(values, dtype\)"):
        Sparse([1, 2], [0.5, 1.0])  # type: ignore[arg-type]


def test_a_mask_is_not_dropped() -> None:
    """What a masked array hides would be summed as if it were there."""
    masked = np.ma.masked_array([1.0, 100.0], mask=[False, True])
    whole = np.ma.masked_array([1, 2])
    for make in (
        lambda: Update.of(masked),
        lambda: Update.of({"w": whole}),
        lambda: Sparse(np.array([0, 1]), masked),
        lambda: Sparse(whole, np.zeros(2)),
        lambda: onefold.sum_dense([masked]),
    ):
        with pytest.raises(InvalidUpdate, match="masked"):
            make()


def test_an_empty_sparse_is_a_contribution() -> None:
    """M27: with no entries, with and without a shape, and from plain empty lists."""
    assert len(Sparse([], np.zeros(0))) == 0  # type: ignore[arg-type]
    assert len(Sparse(np.array([], dtype=np.int64), np.zeros((0, 3)), (0, 3))) == 0


def test_rows_have_any_trailing_shape() -> None:
    """The row's shape is that of one value."""
    assert Sparse(np.array([1, 2]), np.zeros((2, 3, 4))).row == (3, 4)
    assert Sparse(np.array([1, 2]), np.zeros(2)).row == ()


# -- Update ---------------------------------------------------------------------------------------


def test_a_bare_tensor_has_the_empty_name() -> None:
    """An array or Sparse alone is the tensor ""; a mapping and an Update are what they are."""
    array, rows = np.zeros(2), Sparse(np.array([1]), np.zeros(1))
    assert list(Update.of(array).tensors) == [""]
    assert Update.of(rows).tensors[""] is rows
    assert list(Update.of({"w": array}, 3).tensors) == ["w"]
    assert Update.of({"w": array}, 3).weight == 3
    update = Update({"w": array})
    assert Update.of(update) is update


@pytest.mark.parametrize(
    "tensors",
    [
        {},
        {"w": [1.0]},
        {"w": 1.0},
        {"w": None},
        {1: np.zeros(1)},
        {b"w": np.zeros(1)},
        {"\ud800": np.zeros(1)},
        {"w": np.array(["x"])},
        {"w": np.array([None])},
        {"w": np.array([1j])},
        {"w": np.array([True])},
        {"w": np.zeros(1, dtype="datetime64[s]")},
        {"w": np.zeros(1, dtype=np.longdouble)},
        {"w": np.zeros(1, dtype=[("x", "f4")])},
        {"w": np.zeros(1, dtype=ml_dtypes.float8_e5m2)},
        {"v": np.zeros(1), "w": "text"},
        [("w", np.zeros(1))],
    ],
    ids=repr,
)
def test_unknown_kinds_are_refused_and_not_skipped(tensors: object) -> None:
    """M31: whatever is no array of a known dtype raises, also beside tensors that are fine."""
    with pytest.raises(InvalidUpdate) as caught:
        Update(tensors)  # type: ignore[arg-type]
    assert str(caught.value)


def test_the_other_byte_order_is_read_as_numbers() -> None:
    """A big-endian array is its numbers, and has the digest of its native copy."""
    native = np.array([1.5, -2.0])
    swapped = native.astype(native.dtype.newbyteorder())
    update = Update({"w": swapped})
    assert np.asarray(update.tensors["w"]).tolist() == [1.5, -2.0]
    assert update.digest() == Update({"w": native}).digest()


def test_the_mapping_of_an_update_cannot_change() -> None:
    """Neither through the update nor through the dictionary that it was made from."""
    tensors = {"w": np.zeros(1)}
    update = Update(tensors)
    tensors["v"] = np.zeros(1)
    assert list(update.tensors) == ["w"]
    with pytest.raises(TypeError):
        update.tensors["v"] = np.zeros(1)  # type: ignore[index]


@pytest.mark.parametrize("weight", [0, 1, WEIGHT_MAX, np.int32(5), np.uint64(7)])
def test_weights_are_counts(weight: object) -> None:
    """Integers from 0 to 2**53, NumPy's included, become ints."""
    checked = check_weight(weight)
    assert type(checked) is int
    assert checked == weight


@pytest.mark.parametrize(
    "weight",
    [None, -1, WEIGHT_MAX + 1, 1.0, np.float64(1), "1", True, np.True_, float("nan"), np.int8(-1)],
    ids=repr,
)
def test_other_weights_are_refused(weight: object) -> None:
    """X12: a missing weight does not become 1; negative and fractional ones do not pass."""
    with pytest.raises(InvalidUpdate):
        check_weight(weight)
    with pytest.raises(InvalidUpdate):
        Update({"w": np.zeros(1)}, weight)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_the_first_nonfinite_is_found(dtype: str) -> None:
    """In every dtype that has one, dense and sparse; integers are always finite."""
    values = np.zeros(5).astype(DTYPES[dtype])
    assert Update.of(values).first_nonfinite() is None
    if DTYPES[dtype].kind in "iu":
        return
    for bad in (np.nan, np.inf, -np.inf):
        values[3] = bad
        for tensor in (values, Sparse(np.arange(5), values)):
            found = Update({"v": np.zeros(1), "w": tensor}).first_nonfinite()
            assert found is not None
            assert "w" in found
            assert "3" in found


# -- identity -------------------------------------------------------------------------------------

BASE = {"v": np.array([1.0, 2.0]), "w": Sparse(np.array([1, 2]), np.array([3.0, 4.0]))}
CHANGED = {
    "a value": {"v": np.array([1.0, 2.5])},
    "a zero's sign": {"v": np.array([1.0, 2.0]), "z": np.array([-0.0])},
    "a zero's other sign": {"v": np.array([1.0, 2.0]), "z": np.array([0.0])},
    "a dtype": {"v": np.array([1, 2])},
    "a shape": {"v": np.array([[1.0, 2.0]])},
    "a coordinate": {"w": Sparse(np.array([1, 3]), np.array([3.0, 4.0]))},
    "the order of coordinates": {"w": Sparse(np.array([2, 1]), np.array([4.0, 3.0]))},
    "a sparse value": {"w": Sparse(np.array([1, 2]), np.array([3.0, 4.5]))},
    "a declared shape": {"w": Sparse(np.array([1, 2]), np.array([3.0, 4.0]), (9,))},
    "kind": {"w": np.array([3.0, 4.0])},
    "another tensor": {"x": np.zeros(0)},
    "values moved between tensors": {"v": np.array([1.0]), "va": np.array([2.0])},
}


def test_the_digest_tells_contents_apart() -> None:
    """Values, dtypes, shapes, kinds, names, coordinates and the weight are all in it."""
    digests = {"base": Update(BASE).digest(), "weight": Update(BASE, 2).digest()}
    digests |= {name: Update(BASE | change).digest() for name, change in CHANGED.items()}
    assert len(set(digests.values())) == len(digests)
    assert all(len(digest) == 32 for digest in digests.values())


def test_the_digest_does_not_depend_on_the_order_of_names() -> None:
    """A mapping is a mapping, in whatever order it was filled."""
    assert Update(dict(reversed(BASE.items()))).digest() == Update(BASE).digest()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    array=st_numpy.arrays(
        dtype=st.sampled_from(["float32", "int16", "float64"]),
        shape=st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    )
)
def test_the_digest_does_not_depend_on_the_layout(array: np.ndarray) -> None:
    """Fortran order, strides, reversal and byte order are not content."""
    digest = Update.of(array).digest()
    doubled = np.repeat(array, 2, axis=0)[::2] if array.ndim else array
    reversed_twice = np.ascontiguousarray(array[::-1])[::-1] if array.ndim else array
    for same in (
        np.array(array, order="F"),
        doubled,
        reversed_twice,
        array.astype(array.dtype.newbyteorder()),
        array.copy(),
    ):
        assert Update.of(same).digest() == digest


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    shape=st_numpy.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=6),
    chunk_bytes=st.integers(1, 200),
    transposed=st.booleans(),
)
def test_chunks_make_up_the_array(
    shape: tuple[int, ...], chunk_bytes: int, *, transposed: bool
) -> None:
    """In row-major order, without gaps, each small, whatever the layout."""
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    array = array.T if transposed else array
    pieces = list(chunks(array, chunk_bytes))
    position = 0
    for start, piece in pieces:
        assert start == position
        assert piece.flags.c_contiguous
        assert piece.nbytes <= max(chunk_bytes, array.itemsize)
        position += piece.size
    assert position == array.size
    joined = np.concatenate([piece for _, piece in pieces]) if pieces else array.reshape(-1)
    assert joined.tolist() == array.reshape(-1).tolist()


# -- Signature ------------------------------------------------------------------------------------


def test_a_spec_says_what_must_agree() -> None:
    """Kind, dtype and shape; an undeclared sparse shape is unknown in its first size."""
    rows = np.zeros((1, 3), dtype=np.float32)
    at = np.array([0])
    assert TensorSpec.of(np.zeros((2, 3))) == TensorSpec("dense", "float64", (2, 3))
    assert TensorSpec.of(Sparse(at, rows)) == TensorSpec("sparse", "float32", (None, 3))
    assert TensorSpec.of(Sparse(at, rows, (5, 3))) == TensorSpec("sparse", "float32", (5, 3))
    bfloat16 = np.zeros((), dtype=ml_dtypes.bfloat16)
    assert TensorSpec.of(bfloat16) == TensorSpec("dense", "bfloat16", ())


def test_signatures_are_equal_by_name() -> None:
    """M32: the order of names is nothing; equal signatures have no difference."""
    one = Signature.of({"b": np.zeros(1), "w": np.zeros(2)})
    other = Signature.of({"w": np.ones(2), "b": np.ones(1)})
    assert one == other
    assert one.difference(other) is None


def test_a_difference_names_both_sides() -> None:
    """The tensor, what it must be and what it is."""
    wanted = Signature.of({"w": np.zeros((2, 3))})
    said = wanted.difference(Signature.of({"w": np.zeros((3, 2), dtype=np.float32)}))
    assert said is not None
    for part in ("'w'", "float64[2, 3]", "float32[3, 2]"):
        assert part in said
    assert "'v'" in (wanted.difference(Signature.of({"v": np.zeros(1)})) or "")
