"""How much a server takes: of one update, of one worker, of all."""

from __future__ import annotations

from dataclasses import dataclass, fields

from onefold.checks import as_integer, check_seconds, show
from onefold.errors import InvalidInput, OverLimit
from onefold.parts import Manifest

__all__ = ["Limits", "check_manifest"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What is refused as too much.

    More of one update is an error for good (:class:`~onefold.errors.OverLimit`); where there is no
    room now (:class:`~onefold.errors.StagingFull`) the client tries again, as there may be soon.

    Args:
        part_bytes_max: Of the numbers in one part, as they are written. Clients send parts of about
            64 MiB, of more only where one entry has a longer row; less is a limit on updates.
        tensors_max: Tensors of one update.
        name_bytes_max: Of a tensor's name, as UTF-8.
        entries_max: Entries of all sparse tensors of one update together.
        uploads_per_worker_max: Parts that one worker sends at the same time. A client sends one,
            beside those that it has given up but whose end has not come here.
        uncommitted_parts_per_worker_max: Parts that one worker has sent and not committed; an
            update cannot have more.
        staged_bytes_max: Of all parts, committed or not, whole or on their way, of steps that have
            not closed; None for what the disk holds. Steps close only if all of them fit: workers
            × bytes of an update × open steps.
        silent_seconds_max: Between two record batches of a part (of about 1 MiB each); then the
            connection is ended, and what has come of the part removed.
        upload_seconds_max: For one part, likewise.

    Raises:
        InvalidInput: A limit is no positive number.
    """

    part_bytes_max: int = 256 << 20
    tensors_max: int = 100_000
    name_bytes_max: int = 1024
    entries_max: int = 1 << 31
    uploads_per_worker_max: int = 8
    uncommitted_parts_per_worker_max: int = 4096
    staged_bytes_max: int | None = None
    silent_seconds_max: float = 60.0
    upload_seconds_max: float = 1800.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("seconds_max"):
                check_seconds(field.name, value, positive=True)
            elif value is not None or field.name != "staged_bytes_max":
                number = as_integer(value)
                if number is None or number < 1:
                    raise InvalidInput(f"{field.name} is an integer from 1, not {show(value)}")


def check_manifest(limits: Limits, manifest: Manifest, where: str) -> None:
    """Check an update's size, as it is stated; ``where`` begins the message.

    Raises:
        OverLimit: It has too many tensors or entries, or too long a name.
    """
    if len(manifest.tensors) > limits.tensors_max:
        raise OverLimit(
            f"{where}an update has at most {limits.tensors_max} tensors here (tensors_max), this "
            f"one has {len(manifest.tensors)}; send fewer, or raise the limit of the server"
        )
    for tensor in manifest.tensors:
        size_bytes = len(tensor.name.encode())
        if size_bytes > limits.name_bytes_max:
            raise OverLimit(
                f"{where}a tensor's name has at most {limits.name_bytes_max} bytes here "
                f"(name_bytes_max), {tensor.name[:40]!r}... has {size_bytes}; shorten it, or raise "
                "the limit of the server"
            )
    entries = sum(tensor.entries or 0 for tensor in manifest.tensors)
    if entries > limits.entries_max:
        raise OverLimit(
            f"{where}an update has at most {limits.entries_max} sparse entries here "
            f"(entries_max), this one has {entries}; send fewer, or raise the limit of the server"
        )
