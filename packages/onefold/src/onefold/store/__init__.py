"""Where contributions, the ledger and aggregates are kept: in memory, or in a directory.

* :mod:`~onefold.store.base`: what every store does; ``onefold.testing`` has its contract suite.
* :mod:`~onefold.store.memory`: for one process, gone with it.
* :mod:`~onefold.store.directory`: SQLite for the ledger, Arrow files for the numbers; survives.
* :mod:`~onefold.store.tables`, :mod:`~onefold.store.rows`: the SQLite tables; changes as rows.
* :mod:`~onefold.store.schema`: what the tables are, and how damage to them is found.
* :mod:`~onefold.store.files`: everything that is done to the disk.
* :mod:`~onefold.store.unnamed`: parts that no contribution names yet.
"""

from onefold.store.base import Store
from onefold.store.directory import DirectoryStore
from onefold.store.memory import MemoryStore
from onefold.store.unnamed import Unnamed

__all__ = ["DirectoryStore", "MemoryStore", "Store", "Unnamed"]
