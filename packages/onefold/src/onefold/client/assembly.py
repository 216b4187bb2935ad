"""An aggregate, put together in place as its parts stream in.

Each tensor has its memory from the beginning and is filled chunk by chunk, so that what is received
takes up no more than the tensors themselves and a block.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa

from onefold.errors import Damaged, ProtocolError, TransportError
from onefold.parts import (
    Manifest,
    Row,
    TensorManifest,
    check_batch,
    decode_rows,
    malformed,
    part_schema,
)
from onefold.update import DTYPES, Array, Sparse, Tensor, Update

__all__ = ["Assembly"]


class Assembly:
    """Tensors in the making.

    Args:
        manifest: What the parts, in their order, make up.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._targets = {tensor.name: _Target(tensor) for tensor in manifest.tensors}

    def begin_part(self) -> None:
        """The batches that follow are those of the next part."""
        for target in self._targets.values():
            target.mark()

    def restart_part(self) -> None:
        """The batches that follow are those of the part that has begun, from its beginning."""
        for target in self._targets.values():
            target.rewind()

    def add(self, batch: pa.RecordBatch) -> None:
        """Put the numbers of a batch in their place.

        Raises:
            ProtocolError: They are not what comes next.
        """
        with malformed(ProtocolError, "the server sent a malformed record batch"):
            check_batch(batch)
            for row in decode_rows(batch):
                target = self._targets.get(row.tensor)
                if target is None:
                    raise ProtocolError(
                        f"a part holds tensor {row.tensor!r}, which the manifest lacks"
                    )
                target.add(batch.schema, row)

    def update(self) -> Update:
        """The tensors, read-only, once all parts have been added.

        Raises:
            ProtocolError: Something is missing.
            Damaged: The content does not have the manifest's digest.
        """
        tensors = {name: target.tensor() for name, target in self._targets.items()}
        update = Update(tensors, self._manifest.weight)
        digest = update.digest()
        if digest != self._manifest.digest:
            raise Damaged(
                f"expected an aggregate of digest {self._manifest.digest}, received {digest}"
            )
        return update


class _Target:
    """The memory of one tensor, and how far it has been filled."""

    def __init__(self, tensor: TensorManifest) -> None:
        self._tensor = tensor
        self._schema = part_schema(tensor.spec.kind, tensor.spec.dtype)
        self._dtype = DTYPES[tensor.spec.dtype]
        self._coordinates: Array | None = None
        try:
            self._values = np.empty(tensor.length * tensor.row_size, self._dtype)
            if tensor.entries is not None:
                self._coordinates = np.empty(tensor.entries, np.int64)
        except MemoryError as error:  # a server may state any size, whatever it then sends
            raise TransportError(
                f"the server states an aggregate with tensor {tensor.name!r} ({tensor.spec}, "
                f"{tensor.length} elements or entries), for which there is no memory: {error}; "
                "pull it where there is more"
            ) from error
        self._filled = 0
        self._mark = 0

    def mark(self) -> None:
        self._mark = self._filled

    def rewind(self) -> None:
        self._filled = self._mark

    def add(self, schema: pa.Schema, row: Row) -> None:
        """Fill in a chunk, which must be the next one, of a batch of ``schema``."""
        if schema != self._schema:
            raise ProtocolError(
                f"tensor {self._tensor.name!r} ({self._tensor.spec}) cannot be in a part of "
                f"{schema.names}"
            )
        values, start = row.values.view(self._dtype), row.start
        size = values.size // max(self._tensor.row_size, 1)
        if row.coordinates is not None:
            size = row.coordinates.size
        stop = start + size
        if start != self._filled or stop > self._tensor.length or not self._fits(size, values):
            raise ProtocolError(
                f"tensor {self._tensor.name!r} ({self._tensor.spec}): expected the chunk at "
                f"{self._filled} of {self._tensor.length}, received {size} at {start}"
            )
        row_size = self._tensor.row_size
        self._values[start * row_size : stop * row_size] = values
        if self._coordinates is not None and row.coordinates is not None:
            self._coordinates[start:stop] = row.coordinates
        self._filled = stop

    def tensor(self) -> Tensor:
        """The tensor, whole and read-only."""
        if self._filled != self._tensor.length:
            raise ProtocolError(
                f"tensor {self._tensor.name!r} ({self._tensor.spec}) has {self._tensor.length} "
                f"elements or entries; the parts held {self._filled}"
            )
        self._values.flags.writeable = False
        shape = self._tensor.spec.shape
        if self._coordinates is None:
            return self._values.reshape(cast("tuple[int, ...]", shape))
        self._coordinates.flags.writeable = False
        return Sparse(
            self._coordinates,
            self._values.reshape(self._tensor.length, *cast("tuple[int, ...]", shape[1:])),
            None if shape[0] is None else cast("tuple[int, ...]", shape),
        )

    def _fits(self, size: int, values: Array) -> bool:
        return size * self._tensor.row_size == values.size
