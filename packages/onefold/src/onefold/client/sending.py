"""An update on its way to the server: parts, commit, receipt."""

from __future__ import annotations

from dataclasses import replace

from onefold.client.calls import Calls, bulk_seconds
from onefold.client.spool import Spooled
from onefold.errors import Damaged, GaveUp
from onefold.ledger import Joined
from onefold.receipt import Receipt
from onefold.wire import Commit, Put, Staged

__all__ = ["send"]

_SENDINGS_MAX = 10


def send(calls: Calls, joined: Joined, spooled: Spooled) -> Receipt:
    """Send an update until there is a receipt.

    An update of one part is put and committed in one round trip. Of a larger one each part is put,
    and put again alone where the network fails; then the parts are committed.

    Raises:
        GaveUp: There was no answer, or the server lost the parts again and again.
    """
    put = Put(
        run=joined.run,
        worker=joined.worker,
        incarnation=joined.incarnation,
        step=spooled.step,
        attempt=spooled.attempt,
    )
    sendings = 1
    while True:
        try:
            if len(spooled.manifest.parts) == 1:
                return _put_whole(calls, put, spooled)
            return _put_parts(calls, put, spooled)
        except Damaged as error:
            # The server has lost parts that it had staged, as it does when it starts again.
            if sendings == _SENDINGS_MAX:
                raise GaveUp(
                    f"the update for step {spooled.step} was sent {sendings} times, and each time "
                    f"the server lost parts of it before they were committed (last: {error})"
                ) from error
        calls.pause(sendings)
        sendings += 1


def _put_whole(calls: Calls, put: Put, spooled: Spooled) -> Receipt:
    command = replace(put, manifest=spooled.manifest)
    seconds = bulk_seconds(spooled.size_bytes)
    return calls.put(command, spooled.part(0), Receipt, seconds=seconds)


def _put_parts(calls: Calls, put: Put, spooled: Spooled) -> Receipt:
    staged = [
        calls.put(
            replace(put, part=index), spooled.part(index), Staged, seconds=bulk_seconds(size_bytes)
        )
        for index, size_bytes in enumerate(spooled.sizes_bytes)
    ]
    commit = Commit(
        run=put.run,
        worker=put.worker,
        incarnation=put.incarnation,
        step=put.step,
        attempt=put.attempt,
        manifest=spooled.manifest.with_parts([answer.part for answer in staged]),
    )
    return calls.act(commit, Receipt, seconds=bulk_seconds(spooled.size_bytes))
