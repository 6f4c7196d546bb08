# SPDX-License-Identifier: Apache-2.0
"""What Horovod's launcher runs on each host."""

from __future__ import annotations

from horovod.runner._gone import names

WAIT_FOR_COMMAND_MIN_DELAY = 0.1

__getattr__ = names(
    __name__,
    "the agents of ruedarun do its work; start the job by horovodrun or horovod.run()",
    [
        "RunCommandRequest",
        "StreamCommandOutputRequest",
        "StreamCommandStdOutRequest",
        "StreamCommandStdErrRequest",
        "CommandOutputNotCaptured",
        "AbortCommandRequest",
        "CommandExitCodeRequest",
        "CommandExitCodeResponse",
        "WaitForCommandExitCodeRequest",
        "WaitForCommandExitCodeResponse",
        "NotifyInitialRegistrationCompleteRequest",
        "RegisterCodeResultRequest",
        "BasicTaskService",
        "BasicTaskClient",
    ],
)
