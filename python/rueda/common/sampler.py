# SPDX-License-Identifier: Apache-2.0
"""A sampler that knows what of an epoch is done, whatever the ranks are."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sized
from typing import Any

from .basics import basics
from .objects import broadcast_object

__all__ = ["ElasticSampler"]


class ElasticSampler:
    """Divide a dataset among the ranks; divide the rest again when they change.

    Iterate over it for the numbers of this rank's samples. Call
    :meth:`~rueda.elastic.ElasticSampler.record_batch` after each batch and
    :meth:`~rueda.elastic.ElasticSampler.set_epoch` at the *end* of each epoch. Put the sampler
    into the elastic state, so that it is kept and synchronised with the model.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.num_replicas = 0
        self.rank = 0
        self.remaining_indices: list[int] = []
        self.num_samples = 0
        self.total_size = 0
        self.reset()
        self.save()

    def set_epoch(self, epoch: int) -> None:
        """Begin this epoch, of which nothing is done yet."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """A batch of this many samples is done, on this rank and on all others."""
        self.record_indices_num(batch_size)

    def record_indices_num(self, count: int) -> None:
        """This many samples are done, on this rank and on all others."""
        self.processed_num += count * self.num_replicas

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    # ---- For the state that it is part of

    def agree(self) -> None:
        """Ranks know of each other's samples without a word."""

    def save(self) -> None:
        self._saved = self.state_dict()

    def restore(self) -> None:
        self.load_state_dict(self._saved)

    def sync(self) -> None:
        self.load_state_dict(broadcast_object(self.state_dict(), name="rueda.elastic.sampler"))
        self.save()

    def reset(self) -> None:
        """Divide what is left of the epoch among the ranks that there are now."""
        self.num_replicas = basics.size()
        self.rank = basics.rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            # The same order on all ranks, and after every change of them.
            random.Random(self.seed + self.epoch).shuffle(indices)
        self.remaining_indices = indices[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = self.remaining_indices[:]
        # All ranks take the same number of steps, so some samples come twice.
        while indices and len(indices) < self.total_size:
            indices += indices[: self.total_size - len(indices)]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
