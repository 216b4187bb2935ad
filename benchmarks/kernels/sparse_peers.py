"""Other people's ways to add up entries by key.

All get the entries of all parts already concatenated, which is not timed (ours gets the parts as
they are). A grouping peer returns what it found in its own form; its reader makes the values of it,
in ascending order of keys.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.kernels.measure import Call
from onefold.exact.pool import thread_count

__all__ = [
    "DENSE_PEERS",
    "GROUPING_PEERS",
    "SLOW_PEERS",
    "Entries",
    "torch_coalesce",
    "torch_index_add",
]


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys, and a number or a row of numbers for each."""

    keys: np.ndarray
    values: np.ndarray

    @property
    def size(self) -> int:
        """What an array of all keys from 0 would have, or from the least if that is below."""
        return int(self.keys.max()) - min(int(self.keys.min()), 0) + 1

    @property
    def is_too_wide_for_torch(self) -> bool:
        """Whether its sizes do not hold that."""
        return self.size > np.iinfo(np.int64).max


def torch_coalesce(entries: Entries) -> Call:
    """A sparse tensor, hybrid if values are rows; keys begin at 0, if the type allows it."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(thread_count())
    if entries.is_too_wide_for_torch:
        raise ValueError("takes no keys this far apart")
    indices = torch.from_numpy(entries.keys - min(int(entries.keys.min()), 0))[None]
    values = torch.from_numpy(entries.values)
    shape = (entries.size, *entries.values.shape[1:])

    def call() -> Any:
        return torch.sparse_coo_tensor(indices, values, shape, check_invariants=False).coalesce()

    return call


def _pandas(entries: Entries) -> Call:
    pandas = importlib.import_module("pandas")
    frame = pandas.DataFrame({"key": entries.keys, "value": entries.values})

    def call() -> Any:
        return frame.groupby("key", sort=True)["value"].sum()  # it keeps the groups once found

    return call


def _pyarrow(entries: Entries) -> Call:
    pyarrow = importlib.import_module("pyarrow")
    pyarrow.set_cpu_count(thread_count())
    table = pyarrow.table({"key": entries.keys, "value": entries.values})
    return lambda: table.group_by("key").aggregate([("value", "sum")])


def _read_pyarrow(table: Any) -> np.ndarray:
    order = np.argsort(table["key"].to_numpy())
    return table["value_sum"].to_numpy()[order].astype(np.float32)


def _polars(entries: Entries) -> Call:
    polars = importlib.import_module("polars")
    frame = polars.DataFrame({"key": entries.keys, "value": entries.values})
    return lambda: frame.group_by("key").agg(polars.col("value").sum()).sort("key")


def _duckdb(entries: Entries) -> Call:
    duckdb = importlib.import_module("duckdb")
    table = importlib.import_module("pyarrow").table({"k": entries.keys, "v": entries.values})
    connection = duckdb.connect()
    connection.execute(f"SET threads = {thread_count()}")
    connection.register("given", table)
    connection.execute("CREATE TABLE entries AS SELECT * FROM given")
    query = "SELECT k, sum(v) AS v FROM entries GROUP BY k ORDER BY k"
    return lambda: connection.execute(query).fetchnumpy()


def _scipy(entries: Entries) -> Call:
    sparse = importlib.import_module("scipy.sparse")
    base = min(int(entries.keys.min()), 0)
    keys, shape = entries.keys - base, (int(entries.keys.max()) - base + 1,)

    def call() -> Any:
        # Summing makes new arrays; those given stay as they are.
        array = sparse.coo_array((entries.values, (keys,)), shape, copy=False)
        array.sum_duplicates()
        return array

    return call


def _unique(entries: Entries) -> Call:
    def call() -> np.ndarray:
        keys, places = np.unique(entries.keys, return_inverse=True)
        total = np.zeros(keys.size, entries.values.dtype)
        np.add.at(total, places, entries.values)
        return total

    return call


def _add_at(entries: Entries, size: int) -> Call:
    def call() -> np.ndarray:
        total = np.zeros((size, *entries.values.shape[1:]), entries.values.dtype)
        np.add.at(total, entries.keys, entries.values)
        return total

    return call


def torch_index_add(entries: Entries, size: int) -> Call:
    """Scatter into a dense table of zeros."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(thread_count())
    keys, values = torch.from_numpy(entries.keys), torch.from_numpy(entries.values)
    shape = (size, *entries.values.shape[1:])
    return lambda: torch.zeros(shape, dtype=values.dtype).index_add_(0, keys, values).numpy()


Grouping = tuple[str, Callable[[Entries], Call], Callable[[Any], np.ndarray]]

GROUPING_PEERS: tuple[Grouping, ...] = (
    ("torch coalesce", torch_coalesce, lambda tensor: tensor.values().numpy()),
    ("pyarrow group_by (unsorted)", _pyarrow, _read_pyarrow),
    ("polars group_by + sort", _polars, lambda frame: frame["value"].to_numpy()),
    ("DuckDB", _duckdb, lambda columns: columns["v"].astype(np.float32)),
)

SLOW_PEERS: tuple[Grouping, ...] = (
    ("pandas groupby", _pandas, lambda series: series.to_numpy()),
    ("scipy sum_duplicates", _scipy, lambda array: array.data),
    ("np.unique + np.add.at", _unique, np.asarray),
)
"""Seconds a call, and in one look at a million uniform keys a part slower than torch and pyarrow.

A whole run should end within 20 minutes, so they race only where a distribution asks for all.
"""

DENSE_PEERS: tuple[tuple[str, Callable[[Entries, int], Call]], ...] = (
    ("np.add.at (dense)", _add_at),
    ("torch index_add (dense)", torch_index_add),
)
"""They need a table of all keys there could be, so they are no choice where keys are far apart."""
