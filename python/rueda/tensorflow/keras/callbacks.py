# SPDX-License-Identifier: Apache-2.0
"""The same as rueda.keras.callbacks."""

from __future__ import annotations

from rueda.keras.callbacks import *  # noqa: F403
from rueda.keras.callbacks import __all__ as __all__
