# SPDX-License-Identifier: Apache-2.0
"""Make a folder that has the shape of ImageNet, to try programs for it on.

    python make_folder.py folder --classes 10 --train 100 --val 20

As in ImageNet there are folders train and val, in each a folder for each class,
and in that its pictures: train/n00000001/n00000001_12.JPEG. A class has stripes
of its own: two colours, a direction and a width. Where they lie, their light and
some noise differ from picture to picture. The same words give the same folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image


def make_class(number: int) -> tuple[np.ndarray, float, float]:
    """Two colours, the direction of the stripes, and how many there are."""
    random = np.random.default_rng([1, number])
    return random.uniform(0, 255, (2, 3)), random.uniform(0, np.pi), random.uniform(3, 12)


def make_picture(number: int, side: int, random: np.random.Generator) -> Image.Image:
    colours, direction, stripes = make_class(number)
    y, x = np.mgrid[0:side, 0:side] / side
    along = x * np.cos(direction) + y * np.sin(direction)
    share = 0.5 + 0.5 * np.sin(2 * np.pi * (stripes * along + random.uniform()))
    dots = share[..., None] * colours[0] + (1 - share[..., None]) * colours[1]
    dots = dots * random.uniform(0.7, 1.1) + random.normal(0, 12, dots.shape)
    return Image.fromarray(dots.clip(0, 255).astype(np.uint8))


def make_folder(root: Path, classes: int, counts: dict[str, int], side: int) -> None:
    for part, (split, count) in enumerate(counts.items()):
        for number in range(classes):
            name = f"n{number + 1:08d}"
            folder = root / split / name
            folder.mkdir(parents=True, exist_ok=True)
            for picture in range(count):
                random = np.random.default_rng([2, part, number, picture])
                file = folder / f"{name}_{picture + 1}.JPEG"
                make_picture(number, side, random).save(file, "JPEG", quality=90)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="it is made if it is missing")
    parser.add_argument("--classes", type=int, default=10, help="(%(default)s)")
    parser.add_argument("--train", type=int, default=100, help="of each class (%(default)s)")
    parser.add_argument("--val", type=int, default=20, help="of each class (%(default)s)")
    parser.add_argument("--side", type=int, default=256, help="in dots (%(default)s)")
    options = parser.parse_args()
    counts = {"train": options.train, "val": options.val}
    make_folder(options.folder, options.classes, counts, options.side)
    pictures = options.classes * sum(counts.values())
    print(f"{options.folder}: {options.classes} classes, {pictures} pictures")


if __name__ == "__main__":
    main()
