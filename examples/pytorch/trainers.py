# SPDX-License-Identifier: Apache-2.0
"""Lightning, accelerate and the HF Trainer on Rueda: each names the back end in one place.

    ruedarun -np 2 python trainers.py lightning
    torchrun --nproc-per-node 2 trainers.py accelerate
    ruedarun -np 2 python trainers.py transformers --backend gloo     # the same loss

Each learns to add up the numbers of a row. They need the packages of their names.
"""

import argparse
import os
import tempfile

import rueda.torch.c10d  # noqa: F401 -- "rueda" is a back end from here on
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

ROWS, BATCH, EPOCHS, RATE = 1024, 16, 4, 0.01


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(ROWS, 8, generator=torch.Generator().manual_seed(1))
    return x, x.sum(1, keepdim=True)


def by_lightning(backend: str) -> nn.Module:
    import lightning
    from lightning.pytorch.strategies import DDPStrategy

    class Sum(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            return nn.functional.mse_loss(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=RATE)

    module = Sum()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        strategy=DDPStrategy(process_group_backend=backend), max_epochs=EPOCHS,
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(TensorDataset(*rows()), BATCH, shuffle=True))
    return module.net


def by_accelerate(backend: str) -> nn.Module:
    from accelerate import Accelerator

    dist.init_process_group(backend)  # it takes the group that is there
    accelerator = Accelerator(cpu=True)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    loader = DataLoader(TensorDataset(*rows()), BATCH, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(EPOCHS):
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(nn.functional.mse_loss(model(x), y))
            optimizer.step()
    return accelerator.unwrap_model(model)


class Rows(Dataset):
    """As the HF Trainer takes them."""

    def __init__(self) -> None:
        self._x, self._y = rows()

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"x": self._x[i], "labels": self._y[i]}


class Sum(nn.Module):
    """As the HF Trainer calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": nn.functional.mse_loss(self.net(x), labels)}


def by_transformers(backend: str) -> nn.Module:
    from transformers import Trainer, TrainingArguments

    dist.init_process_group(backend)  # it takes the group that is there
    model = Sum()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, use_cpu=True, num_train_epochs=EPOCHS,
            per_device_train_batch_size=BATCH, learning_rate=RATE, lr_scheduler_type="constant",
            report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        Trainer(model=model, args=arguments, train_dataset=Rows()).train()
    return model.net


WAYS = {"lightning": by_lightning, "accelerate": by_accelerate, "transformers": by_transformers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--backend", default="rueda")
    args = parser.parse_args()
    torch.set_num_threads(1)
    trained = WAYS[args.way](args.backend)
    assert dist.get_backend() == args.backend, dist.get_backend()
    x, y = rows()
    loss = nn.functional.mse_loss(trained(x), y).item()
    losses = [0.0] * dist.get_world_size()
    dist.all_gather_object(losses, loss)
    assert max(losses) == min(losses), f"the ranks have different models: {losses}"
    if dist.get_rank() == 0:
        print(f"{args.way}: {len(losses)} ranks, back end {args.backend}: loss {loss:.5f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
