"""What an update consists of, apart from the numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as shown  # of whatever size and depth a peer has chosen
from typing import cast

from onefold.checks import WEIGHT_MAX
from onefold.errors import ProtocolError
from onefold.update import DTYPES, Signature, Sparse, TensorSpec, Update

__all__ = ["Manifest", "TensorManifest", "manifest_of"]

_SIZE_MAX = 2**63
"""The size of a first axis on which every int64 from 0 up is a coordinate."""

_DIMENSIONS_MAX = 64
_BYTES_MAX = 2**63 - 1
"""What NumPy can hold; more cannot have come from an array, and could not be pulled as one."""


@dataclass(frozen=True, slots=True)
class TensorManifest:
    """One tensor: ``entries`` is the number of entries of a sparse one, None for a dense one."""

    name: str
    spec: TensorSpec
    entries: int | None

    @property
    def row_size(self) -> int:
        """The number of values that one element (dense) or entry (sparse) has."""
        return 1 if self.entries is None else math.prod(cast("list[int]", self.spec.shape[1:]))

    @property
    def length(self) -> int:
        """The number of elements (dense) or entries (sparse)."""
        if self.entries is not None:
            return self.entries
        return math.prod(cast("tuple[int, ...]", self.spec.shape))

    def to_json(self) -> dict[str, object]:
        """The tensor as plain JSON values."""
        return {
            "name": self.name,
            "kind": self.spec.kind,
            "dtype": self.spec.dtype,
            "shape": list(self.spec.shape),
            "entries": self.entries,
        }

    @classmethod
    def from_json(cls, value: object) -> TensorManifest:
        """The tensor from JSON values.

        Raises:
            ProtocolError: It is not what :meth:`to_json` gives.
        """
        fields = _object(value, {"name", "kind", "dtype", "shape", "entries"}, "a tensor")
        name, kind, dtype = fields["name"], fields["kind"], fields["dtype"]
        if (
            not isinstance(name, str)
            or not _is_text(name)
            or kind not in ("dense", "sparse")
            or (not isinstance(dtype, str) or dtype not in DTYPES)
        ):
            raise ProtocolError(
                f"a tensor has a name, a kind (dense or sparse) and a known dtype, "
                f"not {shown(name)}, {shown(kind)}, {shown(dtype)}"
            )
        sparse = kind == "sparse"
        shape = _shape(fields["shape"], name, sparse=sparse)
        entries = _entries(fields["entries"], name, sparse=sparse)
        spec = TensorSpec(kind, dtype, shape)
        tensor = cls(name, spec, entries)
        tensor._check_size()
        return tensor

    def _check_size(self) -> None:
        """NumPy counts the bytes of an empty array too, as if its sizes of 0 were 1."""
        shape = self.spec.shape if self.entries is None else (self.entries, *self.spec.shape[1:])
        is_small = len(shape) <= _DIMENSIONS_MAX  # or else their product takes hours
        sizes = [size for size in cast("tuple[int, ...]", shape) if size] if is_small else []
        bytes_max = math.prod(sizes) * DTYPES[self.spec.dtype].itemsize
        if not is_small or bytes_max > _BYTES_MAX:
            raise ProtocolError(
                f"tensor {self.name!r} ({self.spec}) is larger than an array can be: at most "
                f"{_DIMENSIONS_MAX} dimensions and 2^63-1 bytes"
            )


@dataclass(frozen=True, slots=True)
class Manifest:
    """An update without its numbers.

    Args:
        tensors: Sorted by name.
        weight: The update's weight.
        digest: The digest of the whole update (:meth:`onefold.Update.digest`).
        parts: The names of the parts that hold the numbers, in order.
    """

    tensors: tuple[TensorManifest, ...]
    weight: int
    digest: str
    parts: tuple[str, ...]

    @property
    def signature(self) -> Signature:
        """The names with their kinds, dtypes and shapes."""
        return Signature(tuple((tensor.name, tensor.spec) for tensor in self.tensors))

    def with_parts(self, parts: Sequence[str]) -> Manifest:
        """The same update, its parts known by other names."""
        return replace(self, parts=tuple(parts))

    def to_json(self) -> dict[str, object]:
        """The manifest as plain JSON values."""
        return {
            "tensors": [tensor.to_json() for tensor in self.tensors],
            "weight": self.weight,
            "digest": self.digest,
            "parts": list(self.parts),
        }

    @classmethod
    def from_json(cls, value: object) -> Manifest:
        """The manifest from JSON values.

        Raises:
            ProtocolError: It is not what :meth:`to_json` gives.
        """
        fields = _object(value, {"tensors", "weight", "digest", "parts"}, "a manifest")
        tensors = tuple(TensorManifest.from_json(tensor) for tensor in _list(fields["tensors"]))
        names = [tensor.name for tensor in tensors]
        if not names or names != sorted(set(names)):
            raise ProtocolError("a manifest lists at least one tensor, sorted by name, each once")
        weight, digest = fields["weight"], fields["digest"]
        if not _is_int(weight) or not 0 <= cast("int", weight) <= WEIGHT_MAX:
            raise ProtocolError(f"a weight is an integer from 0 to 2**53, not {shown(weight)}")
        if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{32}", digest):
            raise ProtocolError(f"a digest is 32 hexadecimal digits, not {shown(digest)}")
        parts = _list(fields["parts"])
        if not all(isinstance(part, str) and _is_text(part) for part in parts):
            raise ProtocolError("a manifest names its parts by strings")
        return cls(tensors, cast("int", weight), digest, tuple(cast("list[str]", parts)))


def manifest_of(update: Update, parts: Sequence[str]) -> Manifest:
    """The manifest of an update whose numbers are in ``parts``."""
    tensors = tuple(
        TensorManifest(
            name, TensorSpec.of(tensor), len(tensor) if isinstance(tensor, Sparse) else None
        )
        for name, tensor in update.tensors.items()
    )
    return Manifest(tensors, update.weight, update.digest(), tuple(parts))


def _object(value: object, keys: set[str], what: str) -> Mapping[str, object]:
    if not isinstance(value, dict) or value.keys() != keys:
        came = sorted(map(str, value)) if isinstance(value, dict) else type(value).__name__
        raise ProtocolError(f"{what} is an object of {sorted(keys)}, not {came}")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ProtocolError(f"expected a list in a manifest, not {type(value).__name__}")
    return value


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a character that UTF-16 writes as two
        return False
    return True


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shape(value: object, name: str, *, sparse: bool) -> tuple[int | None, ...]:
    sizes = _list(value)
    unknown = 1 if sparse and sizes and sizes[0] is None else 0
    if (sparse and not sizes) or not all(
        _is_int(size) and 0 <= cast("int", size) <= _SIZE_MAX for size in sizes[unknown:]
    ):
        raise ProtocolError(f"tensor {name!r}: {shown(value)} is no shape")
    return tuple(cast("list[int | None]", sizes))


def _entries(value: object, name: str, *, sparse: bool) -> int | None:
    if sparse and _is_int(value) and 0 <= cast("int", value) <= _SIZE_MAX:
        return cast("int", value)
    if not sparse and value is None:
        return None
    raise ProtocolError(
        f"tensor {name!r}: entries is a count for a sparse tensor and null for a dense one, "
        f"not {shown(value)}"
    )
