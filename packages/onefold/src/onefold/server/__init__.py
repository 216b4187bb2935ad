"""An aggregator over Arrow Flight.

The server decides nothing: it reads commands (:mod:`onefold.wire`), calls the
:class:`~onefold.Aggregator`, and sends back what that answers or raises. Its own business is

* that a put is read to its end before it is answered, since Flight loses an answer that comes
  earlier: the client, still writing, finds the stream closed and never reads it;
* that numbers stream through, block by block, both ways;
* that a pull waits here for its step to close, a little at a time (a *long poll*), so that neither
  a dead client nor a stopping server is waited for long;
* that deadlines close steps when nobody calls: a thread ticks;
* that who calls is who they say, and takes no more than there is room for.

* :mod:`~onefold.server.running`: its life, from a free port to the last call.
* :mod:`~onefold.server.service`: the calls, as Flight has them.
* :mod:`~onefold.server.dispatch`: commands in, answers out.
* :mod:`~onefold.server.security`: what is asked of who connects.
* :mod:`~onefold.server.identity`: who may give which command.
* :mod:`~onefold.server.limits`: how large an update may be.
* :mod:`~onefold.server.uploads`: how many parts may be on their way, and for how long.
* :mod:`~onefold.server.connections`: ending those of who stands still.
* :mod:`~onefold.server.warming`: compiling ahead, in the background.
* :mod:`~onefold.server.ports`: whether an address is free.
* :mod:`~onefold.server.memory`: what its process keeps of the memory that it has used.
"""

from onefold.server.limits import Limits
from onefold.server.memory import share_memory_between_threads
from onefold.server.running import Server
from onefold.server.security import Security

__all__ = ["Limits", "Security", "Server", "share_memory_between_threads"]
