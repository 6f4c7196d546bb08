# SPDX-License-Identifier: Apache-2.0
r"""AlexNet (Krizhevsky and others, 2012) on ImageNet, or on a folder of its shape.

    python make_folder.py /tmp/stripes
    ruedarun -np 2 python alexnet.py /tmp/stripes --side 64 --width 0.25 --batch 8 \
        --rate 0.005 --epochs 5

Those sizes are for small machines. On 4 machines with 8 GPUs each, and ImageNet's
folders train and val, both of which have a folder for each class:

    ruedarun -np 32 -H node1:8,node2:8,node3:8,node4:8 \
        python alexnet.py /data/imagenet --epochs 90 --batch 32 --loaders 8 \
        --warm-up 5 --copy /data/alexnet.pt

Each worker takes the GPU of its local rank, or the CPU where there is none. The
rate is that of one worker, 0.01 for each 256 pictures of a step; it grows with the
number of workers, over the epochs of the warm-up (Goyal and others, 2017). Rank 0
writes a copy after each epoch, from which the same command then goes on.
"""

from __future__ import annotations

import argparse
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import rueda.torch as hvd
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

# Of the colours of ImageNet's pictures.
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
SPREAD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
SUFFIXES = {".jpeg", ".jpg", ".png"}


class Pictures(Dataset):
    """The pictures of train or val; the names of the folders are the classes."""

    def __init__(self, root: Path, side: int, is_for_training: bool) -> None:
        self.classes = sorted(one.name for one in root.iterdir() if one.is_dir())
        self.files = [
            (file, label)
            for label, name in enumerate(self.classes)
            for file in sorted((root / name).iterdir())
            if file.suffix.lower() in SUFFIXES
        ]
        if not self.files:
            raise SystemExit(f"{root} has no pictures in folders of classes")
        self.side, self.is_for_training = side, is_for_training

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        file, label = self.files[number]
        with Image.open(file) as opened:
            picture = opened.convert("RGB")
        part = self.random_part(picture) if self.is_for_training else self.middle(picture)
        picture = picture.resize((self.side, self.side), Image.Resampling.BILINEAR, box=part)
        dots = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
        if self.is_for_training and random.random() < 0.5:
            dots = dots.flip(2)
        return (dots - MEAN) / SPREAD, label

    @staticmethod
    def random_part(picture: Image.Image) -> tuple[float, float, float, float]:
        """A part with a quarter of the area, or more, and about as high as wide."""
        width, height = picture.size
        area = random.uniform(0.25, 1) * width * height
        ratio = random.uniform(3 / 4, 4 / 3)
        wide, high = min(width, (area * ratio) ** 0.5), min(height, (area / ratio) ** 0.5)
        left, top = random.uniform(0, width - wide), random.uniform(0, height - high)
        return left, top, left + wide, top + high

    @staticmethod
    def middle(picture: Image.Image) -> tuple[float, float, float, float]:
        """The square of seven eighths of the shorter side, from the middle."""
        width, height = picture.size
        half = min(width, height) * 7 / 16
        return width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half


class AlexNet(nn.Module):
    """In the form for one device of "One weird trick" (Krizhevsky, 2014)."""

    def __init__(self, classes: int, share: float) -> None:
        super().__init__()
        # --width below 1 makes all layers narrower, for small machines.
        a, b, c, d, wide = (max(8, int(n * share)) for n in (64, 192, 384, 256, 4096))
        self.features = nn.Sequential(
            nn.Conv2d(3, a, 11, 4, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(a, b, 5, 1, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(b, c, 3, 1, 1), nn.ReLU(inplace=True),
            nn.Conv2d(c, d, 3, 1, 1), nn.ReLU(inplace=True),
            nn.Conv2d(d, d, 3, 1, 1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.AdaptiveAvgPool2d(6),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(), nn.Linear(d * 36, wide), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(wide, wide), nn.ReLU(inplace=True),
            nn.Linear(wide, classes),
        )  # fmt: skip
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
        nn.init.normal_(self.classifier[-1].weight, std=0.01)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


def rate_at(epoch: float, options: argparse.Namespace) -> float:
    """It climbs to that of all workers, and falls to a tenth at 1/3, 2/3 and 8/9."""
    full = options.rate * hvd.size()
    if epoch < options.warm_up:
        return options.rate + (full - options.rate) * epoch / options.warm_up
    falls = sum(epoch >= share * options.epochs for share in (1 / 3, 2 / 3, 8 / 9))
    return full * 0.1**falls


def train_epoch(
    epoch: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader,
    options: argparse.Namespace,
) -> float:
    """The average loss of all workers."""
    model.train()
    total = torch.zeros(())
    for step, (pictures, labels) in enumerate(loader):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(epoch + step / len(loader), options)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pictures.to(options.device)), labels.to(options.device))
        loss.backward()
        optimizer.step()
        total += loss.detach().cpu()
    return hvd.allreduce(total / len(loader), name="loss").item()


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DataLoader, options: argparse.Namespace
) -> tuple[float, float]:
    """The share of pictures whose class is the first guess, or among the first five."""
    model.eval()
    counts = torch.zeros(3)
    for pictures, labels in loader:
        scores = model(pictures.to(options.device))
        guesses = scores.topk(min(5, scores.shape[1])).indices.cpu()
        is_right = guesses == labels.unsqueeze(1)
        counts += torch.tensor([is_right[:, 0].sum(), is_right.sum(), len(labels)])
    first, five, all_of_them = hvd.allreduce(counts, op=hvd.Sum, name="right").tolist()
    return first / all_of_them, five / all_of_them


def write_copy(path: Path, state: dict[str, Any]) -> None:
    """Under another name first: a copy is whole, or the one before is there."""
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="has train and val")
    parser.add_argument("--epochs", type=int, default=90, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=32, help="of each worker (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.00125, help="of a worker (%(default)s)")
    parser.add_argument("--warm-up", type=float, default=1, help="epochs (%(default)s)")
    parser.add_argument("--side", type=int, default=224, help="of a picture (%(default)s)")
    parser.add_argument("--width", type=float, default=1, help="of all layers (%(default)s)")
    parser.add_argument("--loaders", type=int, default=0, help="that read, for each worker (0)")
    parser.add_argument("--copy", type=Path, help="where rank 0 writes, and all go on from")
    return parser.parse_args()


def loader_of(split: str, options: argparse.Namespace) -> DataLoader:
    data = Pictures(options.folder / split, options.side, split == "train")
    if split == "train":
        sampler: Any = DistributedSampler(data, hvd.size(), hvd.rank())
    else:
        # Each picture once, so that the counts are exact.
        sampler = range(hvd.rank(), len(data), hvd.size())
    return DataLoader(data, options.batch, sampler=sampler, num_workers=options.loaders)


def main() -> None:
    options = parse()
    hvd.init()
    options.device = "cpu"
    if torch.cuda.is_available():
        options.device = f"cuda:{hvd.local_rank()}"
        torch.cuda.set_device(hvd.local_rank())
    else:
        torch.set_num_threads(1)  # the workers share the cores
    torch.manual_seed(hvd.rank())
    random.seed(hvd.rank())

    loader, val_loader = loader_of("train", options), loader_of("val", options)
    model = AlexNet(len(loader.dataset.classes), options.width).to(options.device)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.rate, momentum=0.9, weight_decay=5e-4
    )
    # Rank 0 reads the copy, and the others get it from there: it need not be a
    # folder that all machines see.
    start = 0
    if hvd.rank() == 0 and options.copy and options.copy.exists():
        copy = torch.load(options.copy, map_location=options.device, weights_only=True)
        model.load_state_dict(copy["model"])
        optimizer.load_state_dict(copy["optimizer"])
        start = copy["epoch"]
    start = hvd.broadcast_object(start, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())

    for epoch in range(start, options.epochs):
        loader.sampler.set_epoch(epoch)
        loss = train_epoch(epoch, model, optimizer, loader, options)
        first, five = evaluate(model, val_loader, options)
        if hvd.rank() == 0:
            shares = f"right {100 * first:.1f} %, among five {100 * five:.1f} %"
            print(f"epoch {epoch + 1}: {hvd.size()} workers, loss {loss:.3f}, {shares}", flush=True)
            if options.copy:
                states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                write_copy(options.copy, {**states, "epoch": epoch + 1})
    hvd.shutdown()


if __name__ == "__main__":
    main()
