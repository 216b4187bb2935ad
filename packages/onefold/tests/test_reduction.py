"""A step's sum in blocks and passes has the bits of the sum in one piece, in bounded scratch."""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest
from columns import hard_arrays
from oracle import FORMATS, quotient
from sparse_oracle import by_coordinate, check

from onefold import reduction
from onefold.errors import SumOverflow, ZeroWeight
from onefold.exact import mean_dense, mean_sparse, sum_dense, sum_sparse
from onefold.parts import Manifest, Payload, encode, encoding, manifest_of
from onefold.reduction import Reduction
from onefold.update import Sparse, Update

ROW = (2,)


def payload_of(update):
    parts = [list(batches) for _, batches in encode(update)]
    return Payload(manifest_of(update, [str(index) for index in range(len(parts))]), parts)


def reduced(updates, operation):
    """The aggregate of updates, assembled."""
    made = Reduction([payload_of(u) for u in updates], [u.weight for u in updates], operation)
    parts = [list(batches) for _, batches in made.parts()]
    manifest = Manifest(made.tensors(), 1, "", tuple(str(index) for index in range(len(parts))))
    return Payload(manifest, parts).update().tensors


def random_updates(seed, workers=3):
    random = np.random.default_rng(seed)
    spread = 2 ** int(random.integers(1, 63))
    for worker in range(workers):
        size = int(random.integers(0, 300))
        coordinates = random.integers(-spread, spread, size)
        yield Update(
            {
                "dense": random.standard_normal((7, 11)).astype(np.float32),
                "counts": random.integers(-9, 9, 40, dtype=np.int16),
                "rows": Sparse(coordinates, random.standard_normal((size, *ROW))),
            },
            weight=worker + 1,
        )


def bits(tensor):
    if isinstance(tensor, Sparse):
        return (tensor.coordinates.tobytes(), tensor.values.tobytes(), tensor.values.dtype)
    return (tensor.tobytes(), tensor.shape, tensor.dtype)


def whole(updates, name, operation):
    tensors = [update.tensors[name] for update in updates]
    weights = [update.weight for update in updates] if operation == "weighted_mean" else None
    if isinstance(tensors[0], Sparse):
        return sum_sparse(tensors) if operation == "sum" else mean_sparse(tensors, weights)
    return sum_dense(tensors) if operation == "sum" else mean_dense(tensors, weights)


@pytest.mark.parametrize("operation", ["sum", "mean", "weighted_mean"])
@pytest.mark.parametrize("seed", range(25))
def test_blocks_and_passes_change_no_bit(monkeypatch, operation, seed):
    """Whatever the block and scratch sizes, each tensor has the bits of its sum in one piece."""
    updates = list(random_updates(seed))
    monkeypatch.setattr(reduction, "BLOCK_BYTES", 64)
    monkeypatch.setattr(reduction, "SCRATCH_ENTRIES_BYTES", 24 * (1 + seed % 40))
    tensors = reduced(updates, operation)
    assert sorted(tensors) == ["counts", "dense", "rows"]
    for name, tensor in tensors.items():
        assert bits(tensor) == bits(whole(updates, name, operation))


@pytest.fixture
def held(monkeypatch):
    """The numbers of entries that were handed on at a time."""
    sizes = []
    for name in ("sum_sparse", "mean_sparse"):
        original = getattr(reduction, name)
        monkeypatch.setattr(
            reduction,
            name,
            lambda parts, *weights, original=original: (
                sizes.append(sum(len(part) for part in parts)) or original(parts, *weights)
            ),
        )
    add = reduction.ExactPartial.add
    monkeypatch.setattr(
        reduction.ExactPartial,
        "add",
        lambda self, part, weight=1: sizes.append(len(part)) or add(self, part, weight),
    )
    return sizes


@pytest.mark.parametrize(
    "coordinates",
    [
        [-(2**63), 2**63 - 1],
        [0],
        [5] * 50,
        list(range(100)),
        [*range(9), *[4] * 30, *[-(2**62)] * 9],
    ],
)
@pytest.mark.parametrize("entries_max", [1, 3, 10])
def test_no_pass_holds_more_entries_than_the_scratch(monkeypatch, held, coordinates, entries_max):
    """One coordinate alone may have more: it is summed a few entries at a time."""
    monkeypatch.setattr(reduction, "SCRATCH_ENTRIES_BYTES", 16 * entries_max)
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 64)
    values = np.random.default_rng(0).standard_normal(len(coordinates))
    sparse = Sparse(np.array(coordinates, np.int64), values)
    tensors = reduced([Update({"s": sparse}), Update({"s": sparse})], "sum")
    assert bits(tensors["s"]) == bits(sum_sparse([sparse, sparse]))
    assert max(held) <= entries_max
    assert sum(held) == 2 * len(coordinates)


@pytest.mark.parametrize("operation", ["sum", "mean", "weighted_mean"])
@pytest.mark.parametrize("row", [(), (3,)])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int32", "uint64"])
def test_a_hot_coordinate_has_the_bits_of_the_fraction(monkeypatch, held, operation, row, name):
    """Each part counts once for a mean, with its weight, in however many pieces it is added."""
    monkeypatch.setattr(reduction, "SCRATCH_ENTRIES_BYTES", 100)
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 64)
    rng = Random(f"{operation} {row} {name}")
    kind = "cancellation" if name in FORMATS else "small"
    weights = [3, 0, 2**53, 7]
    numbers = [
        array.reshape(60, *row) for array in hard_arrays(name, kind, 4, 60 * (row or (1,))[0], 1)
    ]
    if name == "uint64":
        numbers = [array % 8 for array in numbers]
    parts = [
        Sparse(np.array([rng.choice([7, 7, 7, -5, 2**62]) for _ in range(60)]), values)
        for values in numbers
    ]
    updates = [Update({"s": part}, weight=w) for part, w in zip(parts, weights, strict=True)]
    given = weights if operation == "weighted_mean" else [1] * 4
    divisor = 1 if operation == "sum" else sum(given)
    expected = {
        coordinate: [quotient(number, divisor) for number in sums]
        for coordinate, sums in by_coordinate(parts, given).items()
    }
    result = "float64" if name not in FORMATS and operation != "sum" else name
    check(reduced(updates, operation)["s"], expected, result, parts[0])
    assert max(held) <= 12
    assert len(held) > 10


def test_an_overflow_of_a_hot_coordinate_names_it(monkeypatch):
    """A sum may leave the type on the way; one that does not fit in the end says where."""
    monkeypatch.setattr(reduction, "SCRATCH_ENTRIES_BYTES", 16 * 4)
    most = 2**63 - 1
    values = np.array([most] * 5 + [-most] * 5 + [3])
    update = Update({"s": Sparse(np.full(11, -9), values)})
    assert reduced([update, update], "sum")["s"].values.tolist() == [6]
    with pytest.raises(
        SumOverflow, match=f"tensor 's', coordinate -9: the exact sum is {most + 6}"
    ):
        reduced([update, update, Update({"s": Sparse(np.array([-9]), np.array([most]))})], "sum")


def test_memory_does_not_grow_with_the_entries_of_a_hot_coordinate(monkeypatch):
    """A hundred times the scratch takes no more than a few times the scratch."""
    monkeypatch.setattr(reduction, "SCRATCH_ENTRIES_BYTES", 1 << 16)
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 1 << 16)
    entries = 400_000
    update = Update({"s": Sparse(np.zeros(entries, np.int64), np.ones(entries))})
    payload = payload_of(update)
    tracemalloc.start()
    for _, batches in Reduction([payload], [1], "sum").parts():
        assert [batch.num_rows for batch in batches] == [1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_500_000


def test_all_weights_zero_is_an_error():
    """There is no mean of nothing."""
    with pytest.raises(ZeroWeight):
        reduced([Update({"w": np.ones(3)}, weight=0)] * 2, "weighted_mean")


def test_empty_tensors_stay(monkeypatch):
    """A tensor without elements or entries is in the aggregate, with its shape."""
    update = Update(
        {
            "none": np.zeros((0, 3), np.float32),
            "sparse": Sparse(np.array([], int), np.zeros((0, 2))),
        }
    )
    tensors = reduced([update, update], "mean")
    assert tensors["none"].shape == (0, 3)
    assert len(tensors["sparse"]) == 0
    assert tensors["sparse"].row == ROW


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_overflow_names_tensor_and_coordinate(monkeypatch, kind):
    """A sum that does not fit names the tensor, and the coordinate in the whole tensor."""
    monkeypatch.setattr(reduction, "BLOCK_BYTES", 8)
    values = np.zeros(100, np.int8)
    values[77] = 100
    tensor = values if kind == "dense" else Sparse(np.arange(100), values)
    updates = [Update({"w": tensor})] * 2
    with pytest.raises(
        SumOverflow, match="tensor 'w', coordinate 77: the exact sum is 200"
    ) as caught:
        reduced(updates, "sum")
    assert caught.value.coordinate == 77
