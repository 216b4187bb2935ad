"""The tree of cases on disk: read strictly, never written by reading."""

from failuremap.archive.model import Archive, Case, Equivalent, Family, Withdrawal
from failuremap.archive.read import find_root, read_archive

__all__ = [
    "Archive",
    "Case",
    "Equivalent",
    "Family",
    "Withdrawal",
    "find_root",
    "read_archive",
]
