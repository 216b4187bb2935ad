"""The entries of sparse parts, sorted into groups and dealt out in pieces of bounded size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onefold.exact.groups import Groups
from onefold.exact.pairs import IndexArray
from onefold.exact.stored import IntegerArray
from onefold.update import Array, Sparse

__all__ = ["Elements", "Entries", "Piece", "Span"]


class Span(NamedTuple):
    """Some groups, in some columns of their rows."""

    groups: slice
    columns: slice


class Piece(NamedTuple):
    """Rows of values in the order of their groups, and where each group starts."""

    values: Array
    weights: IntegerArray | None
    starts: IndexArray


class Elements(NamedTuple):
    """Single elements of rows: the value at each position belongs to ``owner``."""

    owner: IndexArray
    values: Array
    weights: IntegerArray | None


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of all parts together.

    Attributes:
        values: One row per entry, ``(entries, row elements)``.
        weights: That of each entry's part; None where each counts once.
        groups: The entries by coordinate.
        block_elements: The most values in a piece.
    """

    values: Array
    weights: IntegerArray | None
    groups: Groups
    block_elements: int

    @classmethod
    def of(
        cls,
        parts: list[Sparse],
        weights: tuple[int, ...] | None,
        block_elements: int,
    ) -> Entries:
        """The entries of ``parts``, which have one dtype and row shape, with their weights."""
        values = np.concatenate([part.values for part in parts])
        sizes = [len(part) for part in parts]
        coordinates = np.concatenate([part.coordinates for part in parts]).astype(np.int64)
        return cls(
            values.reshape(values.shape[0], math.prod(parts[0].row)),
            None if weights is None else np.repeat(np.array(weights, np.int64), sizes),
            Groups.of(coordinates),
            block_elements,
        )

    def spans(self) -> Iterator[Span]:
        """All groups in all columns: whole groups of few entries, or a single larger one."""
        starts = self.groups.starts
        row_elements = self.values.shape[1]
        for column in range(0, row_elements, self.block_elements):
            columns = slice(column, min(column + self.block_elements, row_elements))
            first = 0
            while first < starts.size - 1:
                limit = starts[first] + self._entries_max(columns)
                fitting = int(np.searchsorted(starts, limit, side="right")) - 1
                last = max(first + 1, fitting)
                yield Span(slice(first, last), columns)
                first = last

    def pieces(self, span: Span) -> Iterator[Piece]:
        """The entries of a span; if there are several pieces they are of the same one group."""
        starts = self.groups.starts[span.groups.start : span.groups.stop + 1]
        step = self._entries_max(span.columns)
        for first in range(starts[0], starts[-1], step):
            chosen = self.groups.order[first : min(first + step, starts[-1])]
            weights = None if self.weights is None else self.weights[chosen, None]
            yield Piece(self.values[chosen, span.columns], weights, starts[:-1] - starts[0])

    def elements(self, span: Span, indices: IndexArray) -> Iterator[Elements]:
        """All addends at some flat indices of a span's result; owners are positions in them."""
        group, column = np.divmod(indices, span.columns.stop - span.columns.start)
        firsts = self.groups.starts[group + span.groups.start]
        ends = np.cumsum(self.groups.starts[group + span.groups.start + 1] - firsts)
        offsets = firsts - np.append(0, ends[:-1])
        for start in range(0, int(ends[-1]), self.block_elements):
            position = np.arange(start, min(start + self.block_elements, int(ends[-1])))
            owner = np.searchsorted(ends, position, side="right")
            chosen = self.groups.order[position + offsets[owner]]
            weights = None if self.weights is None else self.weights[chosen]
            values = self.values[chosen, column[owner] + span.columns.start]
            yield Elements(owner, values, weights)

    def _entries_max(self, columns: slice) -> int:
        return max(1, self.block_elements // int(columns.stop - columns.start))
