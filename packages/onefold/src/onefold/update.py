"""What is contributed: named tensors, dense or sparse, and a weight.

An :class:`Update` is checked when it is made and immutable in its structure afterwards. It holds
views of the caller's arrays, not copies: whoever keeps an update copies or encodes it first (the
aggregator does, on receipt).

**Identity of content.** :meth:`Update.digest` is XXH3-128 over the sorted names, kinds, dtypes,
shapes, the weight and the canonical bytes (row-major, little-endian). It does not depend on how
the arrays lie in memory nor on the blocks in which they travel, so a retransmission has the digest
of the original. It tells equal from different; it is no protection against forgery.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import xxhash

from onefold.checks import as_integer, check_weight, show
from onefold.errors import InvalidUpdate

__all__ = [
    "DTYPES",
    "Array",
    "Signature",
    "Sparse",
    "Tensor",
    "TensorSpec",
    "Update",
    "chunks",
    "content_digest",
    "first_nonfinite",
    "flat_slice",
    "refuse_mask",
]

Array: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


class _ElementTypes(Mapping[str, np.dtype[np.generic]]):
    """Types by name; what has bfloat16 is only loaded when that is asked for."""

    def __init__(self) -> None:
        names = (
            *("float16", "float32", "float64"),
            *("int8", "int16", "int32", "int64"),
            *("uint8", "uint16", "uint32", "uint64"),
        )
        self._types: dict[str, np.dtype[np.generic] | None]
        self._types = {name: np.dtype(name) for name in names} | {"bfloat16": None}

    def __getitem__(self, name: str) -> np.dtype[np.generic]:
        dtype = self._types[name]
        if dtype is None:
            import ml_dtypes  # noqa: PLC0415  # version 0.7.0 takes a second

            dtype = self._types[name] = np.dtype(ml_dtypes.bfloat16)
        return dtype

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


DTYPES: Mapping[str, np.dtype[np.generic]] = _ElementTypes()
"""The element types that can be contributed, by name."""

_CHUNK_BYTES = 1 << 22

_SIZE_MAX = 2**63
"""With so many rows every int64 from 0 up is a coordinate."""


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Values at explicit coordinates of the first axis; coordinates may repeat, in any order.

    Args:
        coordinates: int64, shape ``(entries,)``; other integer arrays are converted.
        values: shape ``(entries, *row)``, any dtype of :data:`DTYPES`.
        shape: The shape of the dense tensor, ``(size, *row)``, where it is known. Coordinates
            outside ``0..size-1`` are then refused; without it any int64 is a coordinate.

    Raises:
        InvalidUpdate: Something does not fit; the message names it.
    """

    coordinates: Array
    values: Array
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        coordinates = _coordinates(self.coordinates)
        values = _sparse_values(self.values)
        if values.ndim == 0 or values.shape[0] != coordinates.shape[0]:
            raise InvalidUpdate(
                f"a Sparse needs one value (or row of values) for each of its "
                f"{coordinates.shape[0]} coordinates; the values have shape {values.shape}"
            )
        object.__setattr__(self, "coordinates", coordinates)
        object.__setattr__(self, "values", values)
        if self.shape is not None:
            object.__setattr__(self, "shape", _sparse_shape(self.shape, coordinates, values))

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of one value: ``()`` for numbers."""
        return self.values.shape[1:]

    def __len__(self) -> int:
        """The number of entries."""
        return int(self.coordinates.shape[0])

    def __repr__(self) -> str:
        return (
            f"Sparse(entries={len(self)}, row={self.row}, dtype={self.values.dtype.name}, "
            f"shape={self.shape})"
        )


Tensor: TypeAlias = Array | Sparse


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What must agree between workers for one tensor.

    ``shape`` is the dense shape. For a sparse tensor whose dense shape was not declared it is
    ``(None, *row)``.
    """

    kind: Literal["dense", "sparse"]
    dtype: str
    shape: tuple[int | None, ...]

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.kind} {self.dtype}[{sizes}]"

    @classmethod
    def of(cls, tensor: Tensor) -> TensorSpec:
        """The spec that ``tensor`` has."""
        if isinstance(tensor, Sparse):
            shape = (None, *tensor.row) if tensor.shape is None else tensor.shape
            return cls("sparse", tensor.values.dtype.name, shape)
        return cls("dense", tensor.dtype.name, tensor.shape)


@dataclass(frozen=True, slots=True)
class Signature:
    """The names of an update with their specs, sorted by name."""

    tensors: tuple[tuple[str, TensorSpec], ...]

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Signature:
        """The signature of a mapping of names to tensors."""
        return cls(tuple((name, TensorSpec.of(tensors[name])) for name in sorted(tensors)))

    def difference(self, other: Signature) -> str | None:
        """The first point in which ``other`` differs from this one, in words; None if none."""
        ours, theirs = dict(self.tensors), dict(other.tensors)
        for name in sorted(ours.keys() | theirs.keys()):
            if name not in theirs:
                return f"tensor {name!r} ({ours[name]}) is missing"
            if name not in ours:
                return f"tensor {name!r} ({theirs[name]}) is not expected"
            if ours[name] != theirs[name]:
                return f"tensor {name!r} must be {ours[name]} but is {theirs[name]}"
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """What one worker contributes to one step.

    Args:
        tensors: Names to arrays or :class:`Sparse`; at least one.
        weight: An integer from 0 to 2**53: the examples or tokens behind the update.

    Raises:
        InvalidUpdate: A name, array or weight cannot be used.
    """

    tensors: Mapping[str, Tensor]
    weight: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", check_weight(self.weight))
        if not isinstance(self.tensors, Mapping) or not self.tensors:
            raise InvalidUpdate(
                "an update is a mapping of at least one name to an array or Sparse; "
                f"this one is {type(self.tensors).__name__}"
                + (" and empty" if isinstance(self.tensors, Mapping) else "")
            )
        checked: dict[str, Tensor] = {}
        for name, tensor in self.tensors.items():
            _check_name(name)
            checked[name] = (
                tensor if isinstance(tensor, Sparse) else as_tensor_array(tensor, repr(name))
            )
        ordered = {name: checked[name] for name in sorted(checked)}
        object.__setattr__(self, "tensors", MappingProxyType(ordered))

    @classmethod
    def of(cls, update: Mapping[str, Tensor] | Tensor | Update, weight: int = 1) -> Update:
        """An update from a mapping, or from one bare array or Sparse, whose name is then ``""``."""
        if isinstance(update, Update):
            return update
        if isinstance(update, Mapping):
            return cls(update, weight)
        return cls({"": update}, weight)

    @classmethod
    def sent(
        cls,
        update: Mapping[str, Tensor] | Tensor | Update,
        weight: int,
        *,
        worker: str,
        step: int,
    ) -> Update:
        """As :meth:`of`; an error says whose update it is, and to which step."""
        try:
            return cls.of(update, weight)
        except InvalidUpdate as error:
            raise InvalidUpdate(f"worker {worker!r}, step {step}: {error}") from None

    @property
    def signature(self) -> Signature:
        """The names with their kinds, dtypes and shapes."""
        return Signature.of(self.tensors)

    def digest(self) -> str:
        """XXH3-128 of the content, as 32 hexadecimal digits."""
        return content_digest(self._contents(), self.weight)

    def _contents(self) -> Iterator[tuple[str, TensorSpec, int | None, Iterator[Array]]]:
        for name, tensor in self.tensors.items():
            arrays: tuple[Array, ...]
            if isinstance(tensor, Sparse):
                arrays, entries = (tensor.coordinates, tensor.values), len(tensor)
            else:
                arrays, entries = (tensor,), None
            pieces = (piece for array in arrays for _, piece in chunks(array))
            yield name, TensorSpec.of(tensor), entries, pieces

    def first_nonfinite(self) -> str | None:
        """Where the first NaN or infinity stands, in words; None if all is finite."""
        for name, tensor in self.tensors.items():
            values = tensor.values if isinstance(tensor, Sparse) else tensor
            for start, chunk in chunks(values):
                index = first_nonfinite(chunk)
                if index is not None:
                    return f"tensor {name!r}, element {start + index}: {chunk[index]}"
        return None


def content_digest(
    contents: Iterable[tuple[str, TensorSpec, int | None, Iterable[Array]]], weight: int
) -> str:
    """XXH3-128 of an update that is given in pieces; see :meth:`Update.digest`.

    Args:
        contents: For each tensor, sorted by name: the name, the spec, the number of entries (None
            for a dense tensor), and flat pieces in order, coordinates before values.
        weight: The update's weight.
    """
    hasher = xxhash.xxh3_128()
    count = 0
    for name, spec, entries, pieces in contents:
        count += 1
        hasher.update(_header([name, spec.kind, spec.dtype, spec.shape, entries]))
        for piece in pieces:
            hasher.update(_little_endian_bytes(piece))
    hasher.update(_header([count, weight]))
    return hasher.hexdigest()


def first_nonfinite(values: Array) -> int | None:
    """The index of the first NaN or infinity in a flat array; None if all is finite."""
    if values.dtype.kind in "iu":
        return None
    with np.errstate(invalid="ignore"):  # signalling NaNs
        finite = np.isfinite(values)
    return None if finite.all() else int(np.argmin(finite))


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise InvalidUpdate(f"a tensor's name is a string, not {name!r}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidUpdate(f"the tensor name {name!r} cannot be written as UTF-8") from None


def flat_slice(array: Array, start: int, stop: int) -> Array:
    """Elements ``start`` to ``stop`` in row-major order: a view if contiguous, else a copy."""
    if array.flags.c_contiguous:
        return array.reshape(-1)[start:stop]
    return array.flat[start:stop]


def chunks(array: Array, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[tuple[int, Array]]:
    """``(start, flat piece)`` of ``array`` in row-major order, few bytes at a time.

    A contiguous array is not copied; another is copied piece by piece, never whole.
    """
    size = max(1, chunk_bytes // array.itemsize)
    for start in range(0, array.size, size):
        yield start, flat_slice(array, start, start + size)


def as_tensor_array(value: object, what: str) -> Array:
    """``value`` as an array of one of the :data:`DTYPES` in this machine's byte order.

    Raises:
        InvalidUpdate: It is no array, or its dtype cannot be contributed; ``what`` names it.
    """
    if not isinstance(value, np.ndarray | np.generic):
        raise InvalidUpdate(
            f"tensor {what} must be a NumPy array or a Sparse, not {type(value).__name__}; "
            "np.asarray(...) makes an array"
        )
    return _checked_array(value, f"tensor {what}")


def _checked_array(value: np.ndarray | np.generic, what: str) -> Array:
    refuse_mask(value, what)
    array = np.asarray(value)
    if array.dtype.name not in DTYPES:
        raise InvalidUpdate(
            f"{what} has dtype {array.dtype.name}; the dtypes are {', '.join(DTYPES)}"
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def refuse_mask(value: object, what: str) -> None:
    """Refuse a masked array: its sum would have what the mask hides.

    Raises:
        InvalidUpdate: It is one.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidUpdate(
            f"{what} is a masked array, and a mask does not travel: give value.filled(0), or a "
            "Sparse of what the mask leaves"
        )


def _sparse_values(value: object) -> Array:
    if not isinstance(value, np.ndarray | np.generic):
        raise InvalidUpdate(
            f"the values of a Sparse must be a NumPy array, not {type(value).__name__}; "
            "np.asarray(values, dtype) makes one of the dtype that all workers agree on"
        )
    return _checked_array(value, "the array of values of a Sparse")


def _coordinates(value: object) -> Array:
    refuse_mask(value, "the array of coordinates")
    array = np.asarray(value)
    if array.ndim != 1:
        raise InvalidUpdate(f"coordinates must have one dimension, not shape {array.shape}")
    if array.size == 0 and array.dtype.kind == "f" and not isinstance(value, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidUpdate(f"coordinates must be integers, not {array.dtype.name}")
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 2**63:
        raise InvalidUpdate(f"coordinate {int(array.max())} does not fit int64")
    return array.astype(np.int64, copy=False)


def _sparse_shape(shape: object, coordinates: Array, values: Array) -> tuple[int, ...]:
    sizes = _sizes(shape)
    if not sizes or sizes[1:] != values.shape[1:]:
        wanted = "(size,)" if values.ndim == 1 else f"(size, {str(values.shape[1:])[1:]}"
        raise InvalidUpdate(
            f"the dense shape of a Sparse whose values have shape {values.shape} is {wanted}, "
            f"where size is an integer from 0 to 2^63, not {show(shape)}"
        )
    if coordinates.size:
        for coordinate in (int(coordinates.min()), int(coordinates.max())):
            if not 0 <= coordinate < sizes[0]:
                raise InvalidUpdate(
                    f"coordinate {coordinate} is outside a tensor of {sizes[0]} rows "
                    f"(shape {sizes})"
                )
    return sizes


def _sizes(shape: object) -> tuple[int, ...] | None:
    """A shape as a tuple of ints; None if it is no sequence of integers from 0 to 2^63."""
    if not isinstance(shape, Iterable):
        return None
    sizes = tuple(as_integer(size) for size in shape)
    whole = tuple(size for size in sizes if size is not None and 0 <= size <= _SIZE_MAX)
    return whole if len(whole) == len(sizes) else None


def _header(fields: list[object]) -> bytes:
    """Length-prefixed JSON, so that no two sequences of pieces have the same bytes."""
    text = json.dumps(fields, separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text


def _little_endian_bytes(piece: Array) -> memoryview:
    little = piece.astype(piece.dtype.newbyteorder("<"), copy=False)
    return memoryview(little.view(np.uint8).data)
