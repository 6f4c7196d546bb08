# SPDX-License-Identifier: Apache-2.0
"""Data loaders that read ahead in a thread of their own."""

from .data_loader_base import AsyncDataLoaderMixin, BaseDataLoader

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]
