# SPDX-License-Identifier: Apache-2.0
"""What an elastic job is told."""

from __future__ import annotations

from typing import Any

from horovod.runner.common.util.settings import BaseSettings


class ElasticSettings(BaseSettings):
    """Options of an elastic job, by Horovod's names."""

    def __init__(
        self,
        discovery: Any,
        min_num_proc: int | None,
        max_num_proc: int | None,
        elastic_timeout: float | None,
        reset_limit: int | None,
        cooldown_range: tuple[int, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(elastic=True, **kwargs)
        self.discovery = discovery
        self.min_num_proc = min_num_proc
        self.max_num_proc = max_num_proc
        self.elastic_timeout = elastic_timeout
        self.reset_limit = reset_limit
        self.cooldown_range = cooldown_range
