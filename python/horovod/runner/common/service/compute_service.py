# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's data service, started on hosts of a job."""

from __future__ import annotations

from horovod.runner._gone import names

__getattr__ = names(
    __name__,
    "TensorFlow's data service is not started by Rueda; start tf.data.experimental.service"
    " dispatchers and workers yourself",
    [
        "RegisterDispatcherRequest",
        "WaitForDispatcherRegistrationRequest",
        "WaitForDispatcherRegistrationResponse",
        "RegisterDispatcherWorkerRequest",
        "WaitForDispatcherWorkerRegistrationRequest",
        "ShutdownRequest",
        "WaitForShutdownRequest",
        "ComputeService",
        "ComputeClient",
    ],
)
