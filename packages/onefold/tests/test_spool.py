"""Where updates are kept until their steps have closed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onefold.client.spool import Spool, Spooled
from onefold.errors import StoreError
from onefold.parts import BLOCK_BYTES, Payload
from onefold.update import Sparse, Update


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path)
    spool.open()
    yield spool
    spool.close()


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def digest(spooled: Spooled) -> str:
    """Of what would be sent now."""
    parts = [spooled.part(index)[1] for index in range(len(spooled.manifest.parts))]
    return Payload(spooled.manifest, parts).digest()


@pytest.mark.parametrize("elements", [0, 1, BLOCK_BYTES // 8 - 2, BLOCK_BYTES // 8, 1 << 18])
def test_what_is_kept_is_no_view_of_the_callers_arrays(spool: Spool, elements: int) -> None:
    """The caller may write to its arrays as soon as they are kept, in memory or in files."""
    values = np.arange(elements, dtype=np.float64)
    sparse = Sparse(np.arange(1), np.ones(1))
    spooled = spool.keep(7, Update({"dense": values, "sparse": sparse}, 1))
    values[:] = -1.0
    sparse.values.flags.writeable = True
    sparse.values[:] = -1.0
    assert digest(spooled) == spooled.manifest.digest


def test_only_what_is_larger_than_a_block_is_in_files(spool: Spool, tmp_path: Path) -> None:
    """A client's memory does not grow with its model, and small updates make no files."""
    spool.keep(7, Update({"w": np.zeros(BLOCK_BYTES // 8)}, 1))
    assert files(tmp_path) == []
    spool.keep(8, Update({"w": np.zeros(BLOCK_BYTES // 8 + 1)}, 1))
    assert len(files(tmp_path)) == 1
    spool.forget(8)
    assert files(tmp_path) == []


def test_the_same_sending_kept_anew_has_files_of_its_own(spool: Spool) -> None:
    """A repeat of an update that is no longer kept has its attempt, and files that stay."""
    update = Update({"w": np.zeros(BLOCK_BYTES)}, 1)
    first = spool.keep(7, update)
    spool.forget(7)
    again = spool.keep(7, update)
    first.remove()
    assert again.attempt == first.attempt
    assert digest(again) == again.manifest.digest


def test_a_directory_that_was_removed_is_told(spool: Spool, tmp_path: Path) -> None:
    """Whoever tidies up may take the directory, too; room is not what is missing then."""
    for path in tmp_path.iterdir():
        shutil.rmtree(path)
    with pytest.raises(StoreError, match="somebody has removed it"):
        spool.keep(7, Update({"w": np.zeros(BLOCK_BYTES)}, 1))


def test_a_removed_file_is_told(spool: Spool, tmp_path: Path) -> None:
    """Somebody who tidies up the temporary place is named as what it is."""
    spooled = spool.keep(7, Update({"w": np.zeros(BLOCK_BYTES)}, 1))
    for path in files(tmp_path):
        path.unlink()
    with pytest.raises(StoreError, match="no longer"):
        spooled.part(0)
