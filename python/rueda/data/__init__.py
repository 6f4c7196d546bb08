# SPDX-License-Identifier: Apache-2.0
"""Data loaders that read ahead, and a ledger of the samples of elastic jobs."""

from .data_loader_base import AsyncDataLoaderMixin, BaseDataLoader
from .ledger import Ledger

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader", "Ledger"]
