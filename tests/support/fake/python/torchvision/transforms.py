# SPDX-License-Identifier: Apache-2.0
"""What becomes of a picture before it is used; here it is a tensor from the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import torch


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self._transforms = transforms

    def __call__(self, picture: Any) -> Any:
        for transform in self._transforms:
            picture = transform(picture)
        return picture


class ToTensor:
    def __call__(self, picture: torch.Tensor) -> torch.Tensor:
        return picture


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        self._mean, self._std = (torch.tensor(one).view(-1, 1, 1) for one in (mean, std))

    def __call__(self, picture: torch.Tensor) -> torch.Tensor:
        return (picture - self._mean) / self._std
