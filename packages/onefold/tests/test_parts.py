"""Parts: every update survives the way to Arrow and back, in any blocks, and bad parts are told."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.errors import Damaged, InvalidUpdate, ProtocolError, StoreError
from onefold.parts import (
    Manifest,
    Payload,
    encode,
    encoding,
    manifest_of,
    part_schema,
    read_part,
    write_part,
)
from onefold.update import DTYPES, Sparse, Update


def payload_of(update):
    parts = [list(batches) for _, batches in encode(update)]
    return Payload(manifest_of(update, [str(index) for index in range(len(parts))]), parts)


@st.composite
def updates(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    tensors = {}
    for name in draw(st.sets(st.text(max_size=3), min_size=1, max_size=5)):
        dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
        shape = tuple(draw(st.lists(st.integers(0, 9), max_size=3)))
        size = int(np.prod(shape, dtype=int))
        values = np.frombuffer(random.bytes(size * dtype.itemsize), dtype).reshape(shape)
        if draw(st.booleans()):
            values = np.asfortranarray(values)
        if shape and draw(st.booleans()):
            coordinates = random.integers(-(2**63), 2**63 - 1, shape[0])
            tensors[name] = Sparse(coordinates, values)
        else:
            tensors[name] = values
    return Update(tensors, draw(st.integers(0, 2**53)))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(updates(), st.integers(1, 64), st.integers(1, 256))
def test_an_update_survives_in_any_blocks(update, block_bytes, part_bytes):
    """Digest, signature and weight are the same whatever the sizes of blocks and parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "BLOCK_BYTES", block_bytes)
        patch.setattr(encoding, "PART_BYTES_MAX", part_bytes)
        payload = payload_of(update)
        payload.verify()
        again = payload.update()
    assert again.digest() == update.digest()
    assert again.signature == update.signature
    assert again.weight == update.weight
    assert payload.first_nonfinite() == update.first_nonfinite()
    assert Manifest.from_json(payload.manifest.to_json()) == payload.manifest


def test_blocks_and_parts_are_bounded(monkeypatch):
    """No batch outgrows a block, no part the part size, and small tensors share batches."""
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(encoding, "PART_BYTES_MAX", 1 << 14)
    update = Update({f"t{index}": np.ones(8 * index, np.float32) for index in range(100)})
    parts = [list(batches) for _, batches in encode(update)]
    assert len(parts) > 8
    sizes = [[len(batch["values"].flatten()) * 4 for batch in part] for part in parts]
    assert max(itertools.chain.from_iterable(sizes)) <= 1 << 12
    assert max(sum(part) for part in sizes) <= 1 << 14
    rows = sum(batch.num_rows for part in parts for batch in part)
    assert rows > 1.5 * sum(len(part) for part in parts)  # small tensors share batches


def test_parts_that_are_not_read_are_passed_over():
    """Listing the parts without reading them ends."""
    assert len(list(encode(Update({"a": np.ones(3), "b": np.ones(3, np.int8)})))) == 2


def test_a_range_of_a_dense_tensor_crosses_chunks(monkeypatch):
    """Any range of elements comes out, whichever chunks hold it."""
    monkeypatch.setattr(encoding, "BLOCK_BYTES", 40)
    values = np.arange(97, dtype=np.float32)
    payload = payload_of(Update({"w": values}))
    for start, stop in itertools.combinations(range(0, 98, 7), 2):
        assert payload.dense("w", start, stop).tolist() == values[start:stop].tolist()


def test_tensors_of_one_chunk_are_views():
    """A tensor that lies in one chunk is not copied, and what comes out is read-only."""
    parts = [list(batches) for _, batches in encode(Update({"w": np.ones(10)}))]
    update = Update({"w": np.ones(10)})
    tensor = Payload(manifest_of(update, ["0"]), parts).update().tensors["w"]
    assert not tensor.flags.owndata
    assert not tensor.flags.writeable


def batch(kind="dense", dtype="float32", **columns):
    defaults = {"tensor": ["w"], "start": [0], "values": [[1.0, 2.0]]}
    if kind == "sparse":
        defaults["coordinates"] = [[0, 1]]
    schema = part_schema(kind, dtype)
    values = defaults | columns
    return pa.RecordBatch.from_pydict({name: values[name] for name in schema.names}, schema)


DENSE = manifest_of(Update({"w": np.ones(2, np.float32)}), ["0"])
SPARSE = manifest_of(Update({"w": Sparse([0, 1], np.ones(2, np.float32), (4,))}), ["0"])


@pytest.mark.parametrize(
    ("manifest", "parts", "message"),
    [
        (DENSE, [], "has 2 elements or entries; the parts hold 0"),
        (DENSE, [[batch(), batch(start=[2])]], "the parts hold 4"),
        (DENSE, [[batch(start=[1])]], "expected the chunk at 0"),
        (DENSE, [[batch(tensor=["v"])]], "which the manifest lacks"),
        (DENSE, [[batch(dtype="float64")]], "cannot be in a part"),
        (DENSE, [[batch(kind="sparse")]], "cannot be in a part"),
        (DENSE, [[batch(values=[[1.0]])]], "the parts hold 1"),
        (SPARSE, [[batch(kind="sparse", coordinates=[[0, 4]])]], "coordinate 4 is outside its 4"),
        (SPARSE, [[batch(kind="sparse", coordinates=[[0, -1]])]], "coordinate -1 is outside"),
        (SPARSE, [[batch(kind="sparse", coordinates=[[0]])]], "1 entries and 2 values"),
        (DENSE, [[pa.RecordBatch.from_pydict({"x": [1]})]], "not that of a part"),
    ],
)
def test_parts_that_do_not_make_up_the_manifest_are_refused(manifest, parts, message):
    """The message names the tensor, what was expected and what was found."""
    with pytest.raises(ProtocolError, match=message):
        Payload(manifest, parts)


def test_other_numbers_are_damage():
    """Parts of the right form with other numbers do not pass verification."""
    with pytest.raises(Damaged, match="expected an update of digest"):
        Payload(DENSE, [[batch()]]).verify()


def changed(**fields):
    return DENSE.to_json() | fields


def changed_tensor(**fields):
    return changed(tensors=[DENSE.to_json()["tensors"][0] | fields])


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        changed(extra=1),
        changed(weight=-1),
        changed(weight=2**53 + 1),
        changed(weight=True),
        changed(weight=1.0),
        changed(digest="0" * 31),
        changed(digest=None),
        changed(parts="0"),
        changed(parts=[0]),
        changed(tensors=[]),
        changed(tensors=DENSE.to_json()["tensors"] * 2),
        changed_tensor(kind="other"),
        changed_tensor(dtype="complex64"),
        changed_tensor(dtype=["float32"]),
        changed_tensor(name=3),
        changed_tensor(shape=[-1]),
        changed_tensor(shape=[None]),
        changed_tensor(shape=[2.0]),
        changed_tensor(shape=[True]),
        changed_tensor(shape=3),
        changed_tensor(name="\ud800"),
        changed_tensor(shape=[2**40, 2**40]),
        changed_tensor(shape=[1] * 65),
        changed_tensor(shape=[0, 2**62, 2**62]),
        changed_tensor(kind="sparse", entries=0, shape=[5, 2**62]),
        changed_tensor(kind="sparse", entries=0, shape=[2**63 + 1]),
        changed_tensor(entries=2),
        changed_tensor(kind="sparse", entries=None),
        changed_tensor(kind="sparse", entries=-1, shape=[None]),
        changed_tensor(kind="sparse", entries=1, shape=[]),
        changed_tensor(kind="sparse", entries=1, shape=[3, None]),
    ],
)
def test_a_malformed_manifest_is_refused(value):
    """Whatever a peer sends in place of a manifest is a ProtocolError."""
    with pytest.raises(ProtocolError):
        Manifest.from_json(value)


def test_a_file_keeps_a_part(tmp_path):
    """A written part reads back with the same batches, and a cut or missing file is Damaged."""
    update = Update({"w": np.arange(9, dtype=ml_dtypes.bfloat16)})
    schema, batches = next(encode(update))
    path = tmp_path / "0.arrow"
    size_bytes = write_part(path, schema, batches, sync=True)
    assert path.stat().st_size == size_bytes
    assert Payload(manifest_of(update, ["0"]), [read_part(path)[1]]).digest() == update.digest()
    path.write_bytes(path.read_bytes()[: size_bytes // 2])
    with pytest.raises(Damaged, match=r"0\.arrow"):
        read_part(path)
    path.unlink()
    with pytest.raises(Damaged, match=r"0\.arrow"):
        read_part(path)


def test_what_can_be_made_can_be_read_again():
    """The limits of a manifest are those of arrays: none that an Update can be is refused."""
    for tensor in (
        np.zeros([1] * 64, np.int8),
        np.empty((0, 2**59)),
        Sparse(np.array([2**63 - 1]), np.zeros((1, 2)), shape=(2**63, 2)),
    ):
        manifest = manifest_of(Update({"w": tensor}), ["0"])
        assert Manifest.from_json(manifest.to_json()) == manifest
    with pytest.raises(InvalidUpdate, match=r"2\^63"):
        Sparse(np.array([1]), np.zeros(1), shape=(2**63 + 1,))


def test_a_flipped_bit_is_told_as_damage(tmp_path):
    """Whichever bit of a part it is, reading finds nothing wrong, or says so in the same way."""
    update = Update({"weight": np.arange(4.0)})
    manifest = manifest_of(update, ["0"])
    path = tmp_path / "0.arrow"
    write_part(path, *next(encode(update)), sync=False)
    data = path.read_bytes()
    for position, bit in itertools.product(range(len(data)), (0x80, 0x01)):
        flipped = bytearray(data)
        flipped[position] ^= bit
        path.write_bytes(flipped)
        with contextlib.suppress(Damaged, ProtocolError):
            Payload(manifest, [read_part(path)[1]]).verify()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOMEM])
def test_a_file_that_cannot_be_opened_now_is_not_damaged(tmp_path, monkeypatch, number):
    """A failure that passes is a StoreError of its own; a missing file is Damaged."""

    def failing(path):
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(pa, "memory_map", failing)
    with pytest.raises(StoreError, match=os.strerror(number)) as caught:
        read_part(tmp_path / "0.arrow")
    assert caught.type is StoreError


def test_too_little_memory_is_no_damage(tmp_path, monkeypatch):
    """What says nothing about the bytes is raised as it is."""
    path = tmp_path / "0.arrow"
    write_part(path, *next(encode(Update({"w": np.ones(2)}))), sync=False)

    def failing(_source):
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(pa.ipc, "open_file", failing)
    with pytest.raises(pa.ArrowMemoryError):
        read_part(path)


@pytest.mark.parametrize("offsets", [[2**62, 2**62 + 1], [0, 2**62], [-1, 1], [1, 0]])
def test_offsets_that_have_rotted_are_damage(tmp_path, offsets):
    """They are told where a file is read, before anybody follows them to send it."""
    schema, batches = next(encode(Update({"w": np.ones(1000)})))
    path = tmp_path / "part.arrow"
    write_part(path, schema, batches, sync=False)
    before, _, after = path.read_bytes().rpartition(np.array([0, 1000]).tobytes())
    path.write_bytes(before + np.array(offsets).tobytes() + after)
    with pytest.raises(Damaged, match=r"part\.arrow is damaged"):
        read_part(path)


def test_very_many_rows_of_next_to_nothing_are_refused() -> None:
    """A row costs a server time and memory whatever it holds; many tensors have many."""
    rows = 70_000
    many = batch(tensor=["w"] * rows, start=[0] * rows, values=[[]] * rows)
    with pytest.raises(
        ProtocolError, match=r"for 1 tensors have at most \d+ rows, these have 70000"
    ):
        Payload(DENSE, [[many]])
    with pytest.raises(ProtocolError, match="these have 65900"):
        Payload(DENSE, [[many[start : start + 100]] for start in range(0, rows, 100)])
    small = Update({f"t{index}": np.ones(1, np.int8) for index in range(rows)})
    payload_of(small).verify()
