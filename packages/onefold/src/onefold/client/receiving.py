"""An aggregate on its way from the server."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from onefold.aggregate import Aggregate
from onefold.client.assembly import Assembly
from onefold.client.calls import Calls, bulk_seconds
from onefold.errors import Damaged
from onefold.ledger import Joined
from onefold.parts import PART_BYTES_MAX
from onefold.wire import Closed, Get

__all__ = ["fetch"]


def fetch(calls: Calls, joined: Joined, answer: Closed) -> Aggregate:
    """The aggregate of a closed step, its tensors put together part by part.

    Raises:
        GaveUp: There was no answer.
        Damaged: What came does not have the digest that the server states.
    """
    if answer.manifest is None:
        return Aggregate.of(answer.closed, {})
    assembly = Assembly(answer.manifest)
    for index, name in enumerate(answer.manifest.parts):
        command = Get(
            run=joined.run,
            worker=joined.worker,
            incarnation=joined.incarnation,
            step=answer.closed.step,
            part=index,
            name=name,
        )
        assembly.begin_part()
        calls.get(command, _restart(assembly), seconds=bulk_seconds(PART_BYTES_MAX))
    try:
        update = assembly.update()
    except Damaged as error:
        raise Damaged(
            f"the aggregate of step {answer.closed.step} is not what was written: {error}; the "
            "server's disk or another program has changed it, and only a copy has it as it was"
        ) from error
    return Aggregate.of(answer.closed, update.tensors)


def _restart(assembly: Assembly) -> Callable[[], Callable[[pa.RecordBatch], None]]:
    def begin() -> Callable[[pa.RecordBatch], None]:
        assembly.restart_part()
        return assembly.add

    return begin
