# SPDX-License-Identifier: Apache-2.0
"""Digits of 28 x 28 dots, without a download."""

from __future__ import annotations

from typing import Any, Callable

import torch
from sklearn.datasets import load_digits
from torch.utils.data import Dataset

HELD_OUT = 360


class MNIST(Dataset):
    def __init__(
        self,
        root: str,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        digits = load_digits()
        small = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
        large = torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear")
        order = torch.randperm(len(large), generator=torch.Generator().manual_seed(1))
        part = order[HELD_OUT:] if train else order[:HELD_OUT]
        self._pictures, self._labels = large[part], torch.tensor(digits.target)[part]
        self._transform = transform

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, place: int) -> tuple[Any, int]:
        picture = self._pictures[place]
        if self._transform is not None:
            picture = self._transform(picture)
        return picture, int(self._labels[place])
