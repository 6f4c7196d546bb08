# SPDX-License-Identifier: Apache-2.0
"""How sure a figure is that was made of several rounds; for the programs of this folder."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Callable, TypeVar

Round = TypeVar("Round")

DRAWS = 2000


def interval(
    rounds: Sequence[Round], figure: Callable[[Sequence[Round]], float]
) -> tuple[float, float]:
    """The range in which 19 of 20 figures lie that are made of as many rounds, drawn again.

    A round is what was measured side by side, such as a pair of times.
    """
    dice = random.Random(0)
    found = sorted(figure(dice.choices(rounds, k=len(rounds))) for _ in range(DRAWS))
    outside = DRAWS // 40
    return found[outside], found[-outside - 1]
