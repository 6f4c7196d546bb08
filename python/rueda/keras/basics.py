# SPDX-License-Identifier: Apache-2.0
"""Who and where, and what else every framework's module offers."""

from __future__ import annotations

from rueda.common.life import *  # noqa: F403
from rueda.common.life import __all__ as __all__
