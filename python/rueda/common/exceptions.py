# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, under the names that scripts catch."""

from __future__ import annotations

__all__ = [
    "HorovodInternalError",
    "HorovodVersionMismatchError",
    "HostsUpdatedInterrupt",
    "NotInitializedError",
]


class HorovodInternalError(RuntimeError):
    """A collective failed: ranks do not agree, or one of them is lost.

    An elastic job goes back to its last commit and goes on without the lost
    rank.
    """


class NotInitializedError(ValueError, RuntimeError):
    """A call came before ``init()``, or after ``shutdown()``.

    It has both bases because Horovod raises the one for ``rank()`` and its like
    and the other for collectives. It is no :class:`HorovodInternalError`: an
    elastic job does not begin again because of it.
    """


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts came or went; raised at a commit, so that no work is lost.

    ``skip_sync`` says that hosts only went, so that the ranks that stay agree already.
    """

    def __init__(self, skip_sync: bool) -> None:
        super().__init__(skip_sync)
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """A framework is installed in another version than the one built for.

    Nothing is built for a version here, so nothing raises it; scripts name it.
    """

    def __init__(self, name: str, version: str, installed_version: str) -> None:
        super().__init__(f"{name} {installed_version} is installed, built for {version}")
        self.name = name
        self.version = version
        self.installed_version = installed_version
