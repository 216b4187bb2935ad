"""Entries that belong together: sorted into groups by coordinate, and summed group by group.

Groups are summed as a tree: in each round every group adds its neighbours two by two, so a group
of n needs about log2(n) rounds, in all of which together no more than n additions are made. The
plain loop over a group would be n rounds of one addition where all entries have one coordinate,
as the bias of an embedding or the padding token does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onefold.exact.pairs import FloatArray, IndexArray, Pair, merge

__all__ = ["Groups", "reduce_pairs"]


@dataclass(frozen=True, slots=True)
class Groups:
    """A sorting of entries by coordinate.

    Attributes:
        order: The entries' positions, sorted by their coordinates.
        starts: Where in ``order`` each group starts, and at last the number of entries.
        coordinates: The coordinate of each group, ascending.
    """

    order: IndexArray
    starts: IndexArray
    coordinates: npt.NDArray[np.int64]

    @classmethod
    def of(cls, coordinates: npt.NDArray[np.int64]) -> Groups:
        """The groups of equal coordinates."""
        order = np.argsort(coordinates)
        ordered = coordinates[order]
        is_first = np.ones(ordered.size, np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
        firsts = np.flatnonzero(is_first)
        return cls(order, np.append(firsts, ordered.size), ordered[firsts])


def reduce_pairs(pair: Pair, starts: IndexArray) -> Pair:
    """The sum of each run of the first axis; each run goes from one start to the next."""
    sizes = np.diff(starts, append=pair.high.shape[0])
    while sizes.size and sizes.max() > 1:
        halves = (sizes + 1) // 2
        firsts, new_firsts = _firsts(sizes), _firsts(halves)
        left = 2 * np.arange(halves.sum()) + np.repeat(firsts - 2 * new_firsts, halves)
        alone = left + 1 == np.repeat(firsts + sizes, halves)
        pair = merge(pair.take(left), _take_unless(alone, pair, left + 1))
        sizes = halves
    return pair


def _firsts(sizes: IndexArray) -> IndexArray:
    return np.asarray(np.cumsum(sizes) - sizes, np.intp)


def _take_unless(absent: npt.NDArray[np.bool_], pair: Pair, rows: IndexArray) -> Pair:
    """The rows, where they are not absent, else -0.0, which changes nothing it is added to."""
    taken = pair.take(np.where(absent, 0, rows))
    fills: list[tuple[FloatArray | None, float]] = [
        (taken.high, -0.0),
        (taken.low, 0.0),
        (taken.error, 0.0),
    ]
    for part, fill in fills:
        if part is not None:
            part[absent] = fill
    return taken
