# SPDX-License-Identifier: Apache-2.0
"""The same as rueda.keras.elastic."""

from __future__ import annotations

from rueda.keras.elastic import *  # noqa: F403
from rueda.keras.elastic import __all__ as __all__
