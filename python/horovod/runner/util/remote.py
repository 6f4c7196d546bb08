# SPDX-License-Identifier: Apache-2.0
"""Command lines of ssh."""

from __future__ import annotations

import shlex

from horovod.runner.common.util.env import KUBEFLOW_MPI_EXEC, is_kubeflow_mpi

SSH_COMMAND_PREFIX = "ssh -o PasswordAuthentication=no -o StrictHostKeyChecking=no"


def get_ssh_command(
    local_command: str,
    host: str,
    port: int | None = None,
    identity_file: str | None = None,
    timeout_s: int | None = None,
) -> str:
    """The command, run on a host."""
    words = [SSH_COMMAND_PREFIX]
    if timeout_s is not None:
        words.append(f"-o ConnectTimeout={timeout_s}")
    if port is not None:
        words.append(f"-p {port}")
    if identity_file is not None:
        words.append(f"-i {shlex.quote(identity_file)}")
    return " ".join([*words, host, shlex.quote(local_command)])


def get_remote_command(
    local_command: str,
    host: str,
    port: int | None = None,
    identity_file: str | None = None,
    timeout_s: int | None = None,
) -> str:
    """The same, by Kubeflow's way to a pod where there is one."""
    if is_kubeflow_mpi():
        return f"{KUBEFLOW_MPI_EXEC} {host} {shlex.quote(local_command)}"
    return get_ssh_command(local_command, host, port, identity_file, timeout_s)
