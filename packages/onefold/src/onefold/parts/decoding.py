"""Rows out of record batches, without a copy."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import cast

import pyarrow as pa

from onefold.parts.encoding import Row, check_part_schema
from onefold.update import Array

__all__ = ["check_batch", "decode_rows"]


def check_batch(batch: pa.RecordBatch) -> None:
    """Check a batch of others, before anything else is asked of it: Arrow trusts its offsets.

    Raises:
        ProtocolError: It is not of a part.
        pyarrow.ArrowException: Its buffers do not hold what it says.
    """
    check_part_schema(batch.schema)
    batch.validate(full=True)


def decode_rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch as read-only views; bfloat16 comes as the uint16 that it travels as.

    It must have been checked, and may still hold nulls: call it within ``malformed``.
    """
    names = cast("list[str]", batch.column("tensor").to_pylist())
    starts = batch.column("start").to_numpy(zero_copy_only=True).tolist()
    coordinates: Iterable[Array | None] = itertools.repeat(None, len(names))
    if "coordinates" in batch.schema.names:
        coordinates = _items(batch.column("coordinates"))
    values = _items(batch.column("values"))
    return itertools.starmap(Row, zip(names, starts, coordinates, values, strict=True))


def _items(lists: pa.LargeListArray) -> Iterator[Array]:
    offsets = lists.offsets.to_numpy(zero_copy_only=True).tolist()
    flat = cast("Array", lists.values.to_numpy(zero_copy_only=True))
    return (flat[start:stop] for start, stop in itertools.pairwise(offsets))
