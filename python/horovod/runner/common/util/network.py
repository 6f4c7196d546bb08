# SPDX-License-Identifier: Apache-2.0
"""Messages of Horovod's launcher."""

from __future__ import annotations

from horovod.runner._gone import names


class NoValidAddressesFound(Exception):
    """Raised by Horovod's services; never here."""


__getattr__ = names(
    __name__,
    "the agents of ruedarun do its work; start the job by horovodrun or horovod.run()",
    [
        "PingRequest",
        "PingResponse",
        "AckResponse",
        "AckStreamResponse",
        "Wire",
        "BasicService",
        "BasicClient",
    ],
)
