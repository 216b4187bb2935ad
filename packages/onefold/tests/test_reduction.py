"""A step's sum in blocks and passes has the bits of the sum in one piece, in bounded scratch."""

from __future__ import annotations

import numpy as np
import pytest

from onefold import reduction
from onefold.errors import SumOverflow
from onefold.exact import mean_dense, mean_sparse, sum_dense, sum_sparse
from onefold.parts import Manifest, Payload, encode, manifest_of
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


@pytest.mark.parametrize("coordinates", [[-(2**63), 2**63 - 1], [0], [5] * 50, list(range(100))])
def test_passes_hold_few_entries(monkeypatch, coordinates):
    """No pass holds more entries than the scratch allows, unless one coordinate alone has more."""
    monkeypatch.setattr(reduction, "SCRATCH_ENTRIES_BYTES", 16 * 10)
    held = []
    original = reduction.sum_sparse
    monkeypatch.setattr(
        reduction, "sum_sparse", lambda parts: held.append(parts) or original(parts)
    )
    sparse = Sparse(np.array(coordinates, np.int64), np.ones(len(coordinates)))
    tensors = reduced([Update({"s": sparse}), Update({"s": sparse})], "sum")
    assert bits(tensors["s"]) == bits(original([sparse, sparse]))
    for parts in held:
        entries = sum(len(part) for part in parts)
        distinct = len({int(c) for part in parts for c in part.coordinates})
        assert entries <= 10 or distinct == 1


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
