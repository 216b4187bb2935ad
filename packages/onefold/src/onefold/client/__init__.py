"""A worker's end: push updates to a server and pull aggregates, whatever the network does.

A call may be lost, its answer may be lost, the server may be away or start again. All of that looks
the same from here: no answer. So every call is made again until it is answered, which is safe
because each says exactly what it is about: a join its life id, an update its incarnation, attempt
and digest. What a server may forget, the client keeps: an update stays in the spool until its step
has closed, and is sent again when the server says that it lacks it.

* :mod:`~onefold.client.worker`: the :class:`Client`, and :func:`connect`.
* :mod:`~onefold.client.session`: pushed updates, seen through until their steps have closed.
* :mod:`~onefold.client.spool`: updates, encoded, in a temporary directory.
* :mod:`~onefold.client.owned`: temporary directories whose owner may be killed.
* :mod:`~onefold.client.assembly`: an aggregate, put together as its parts stream in.
* :mod:`~onefold.client.sending`, :mod:`~onefold.client.receiving`: one update there, one aggregate
  back.
* :mod:`~onefold.client.calls`: calls that are made until they are answered.
* :mod:`~onefold.client.channel`: one call, over Flight.
* :mod:`~onefold.client.credentials`: what client and server know each other by.
* :mod:`~onefold.client.timing`: the clock by which they wait.
"""

from onefold.client.calls import fetch_status
from onefold.client.credentials import Credentials
from onefold.client.worker import Client, connect

__all__ = ["Client", "Credentials", "connect", "fetch_status"]
