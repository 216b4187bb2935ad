"""What client and server say to each other: commands, answers and errors as JSON bytes.

The numbers travel as Arrow record batches (:mod:`onefold.parts`); everything else is here, as pure
functions over frozen values:

* :mod:`~onefold.wire.commands`: what a client asks for.
* :mod:`~onefold.wire.answers`: what a server answers.
* :mod:`~onefold.wire.failures`: the errors of a server, raised again at the client as they were.
* :mod:`~onefold.wire.fields`: JSON objects read strictly, as a peer may send anything.

How they travel over Arrow Flight:

============  ==============  =======================  =========================================
command       Flight call     where the command is     answer
============  ==============  =======================  =========================================
join, leave,  ``DoAction``    the action's body        one result
commit, pull,
status
put           ``DoPut``       the descriptor           one metadata message, once the stream has
                                                       been read to its end
get           ``DoGet``       the ticket               record batches
============  ==============  =======================  =========================================

An error travels as a ``FlightServerError`` whose ``extra_info`` is the failure as JSON.
"""

from onefold.wire.answers import (
    Answer,
    Closed,
    Done,
    Open,
    PullAnswer,
    Resend,
    Staged,
    decode_answer,
    encode_answer,
)
from onefold.wire.commands import (
    COMMAND_BYTES_MAX,
    Command,
    Commit,
    Get,
    GetStatus,
    Join,
    Leave,
    Pull,
    Put,
    decode_command,
    encode_command,
    verb_of,
)
from onefold.wire.failures import decode_failure, encode_failure
from onefold.wire.fields import PROTOCOL

__all__ = [
    "COMMAND_BYTES_MAX",
    "PROTOCOL",
    "Answer",
    "Closed",
    "Command",
    "Commit",
    "Done",
    "Get",
    "GetStatus",
    "Join",
    "Leave",
    "Open",
    "Pull",
    "PullAnswer",
    "Put",
    "Resend",
    "Staged",
    "decode_answer",
    "decode_command",
    "decode_failure",
    "encode_answer",
    "encode_command",
    "encode_failure",
    "verb_of",
]
