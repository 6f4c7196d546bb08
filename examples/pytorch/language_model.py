# SPDX-License-Identifier: Apache-2.0
"""A small transformer that learns to write text, letter by letter, and goes on later.

    ruedarun -np 2 python language_model.py --copy /tmp/model.pt
    ruedarun -np 2 python language_model.py --copy /tmp/model.pt --text book.txt

Without --text the program makes sentences by a grammar of its own. AdamW, a rate
that warms up and falls as a cosine, gradients that are clipped after they have been
averaged. Rank 0 writes a copy every --every steps; the same command goes on from it,
step by step as if it had never stopped, if it has as many workers as before.
"""

from __future__ import annotations

import argparse
import math
import os
import random
from pathlib import Path

import rueda.torch as hvd
import torch
import torch.nn.functional as F
from torch import nn

# A sentence is one word of each line, and a full stop.
GRAMMAR = (
    ("the", "a", "every", "no", "this"),
    ("old", "young", "tired", "happy", "quiet"),
    ("dancer", "singer", "baker", "sailor", "teacher"),
    ("calls", "follows", "meets", "thanks", "remembers"),
    ("the", "a", "every", "no", "this"),
    ("partner", "neighbour", "stranger", "friend", "child"),
    ("at noon", "in the rain", "after work", "on sunday", "by the sea"),
)


def make_text(sentences: int) -> str:
    choice = random.Random(1).choice
    return " ".join(
        " ".join(choice(words) for words in GRAMMAR) + "." for _ in range(sentences)
    )


class Text:
    """The letters as numbers; the last tenth is kept for the test."""

    def __init__(self, text: str) -> None:
        self.letters = sorted(set(text))
        number = {letter: i for i, letter in enumerate(self.letters)}
        letters = torch.tensor([number[letter] for letter in text])
        cut = len(letters) * 9 // 10
        self.train, self.test = letters[:cut], letters[cut:]

    @staticmethod
    def batch(
        part: torch.Tensor, count: int, length: int, seed: tuple[int, int]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Pieces from anywhere, and the letter that follows each letter of them.

        The seed, of a step and a rank, says which: nothing else has to be remembered
        to go on where a run stopped.
        """
        generator = torch.Generator().manual_seed(seed[0] * 1000003 + seed[1])
        starts = torch.randint(len(part) - length, (count,), generator=generator)
        pieces = torch.stack([part[start : start + length + 1] for start in starts.tolist()])
        return pieces[:, :-1], pieces[:, 1:]


class Block(nn.Module):
    """Attention to the letters before, then two layers on each letter alone."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pieces, length, width = x.shape
        shape = (pieces, length, 3, self.heads, width // self.heads)
        query, key, value = self.look(self.norm_1(x)).view(shape).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(x.shape))
        return x + self.think(self.norm_2(x))


class Model(nn.Module):
    def __init__(self, letters: int, options: argparse.Namespace) -> None:
        super().__init__()
        self.length = options.length
        self.letter = nn.Embedding(letters, options.width)
        self.place = nn.Embedding(options.length, options.width)
        self.blocks = nn.Sequential(
            *(Block(options.width, options.heads) for _ in range(options.blocks))
        )
        self.norm, self.out = nn.LayerNorm(options.width), nn.Linear(options.width, letters)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        x = self.letter(letters) + self.place.weight[: letters.shape[1]]
        return self.out(self.norm(self.blocks(x)))

    def loss(self, letters: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self(letters).flatten(0, 1), following.flatten())

    @torch.no_grad()
    def write(self, start: torch.Tensor, count: int) -> list[int]:
        """The likeliest letter each time, from this beginning on."""
        letters = start.tolist()
        for _ in range(count):
            seen = torch.tensor([letters[-self.length :]])
            letters.append(int(self(seen)[0, -1].argmax()))
        return letters


def rate_at(step: int, options: argparse.Namespace) -> float:
    if step < options.warm_up:
        return options.rate * (step + 1) / options.warm_up
    done = (step - options.warm_up) / max(1, options.steps - options.warm_up)
    return options.rate * (0.1 + 0.45 * (1 + math.cos(math.pi * done)))


def optimizer_of(model: nn.Module, options: argparse.Namespace) -> torch.optim.Optimizer:
    """AdamW; weights of layers decay, but neither biases nor norms."""
    decays = [one for one in model.parameters() if one.dim() > 1]
    others = [one for one in model.parameters() if one.dim() <= 1]
    groups = [{"params": decays, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.95))


def take_up(model: nn.Module, optimizer: torch.optim.Optimizer, copy: Path | None) -> int:
    """The step to go on from. Rank 0 reads the copy, and hands it to the others."""
    step = 0
    if hvd.rank() == 0 and copy is not None and copy.exists():
        state = torch.load(copy, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    step = hvd.broadcast_object(step, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    return step


def write_copy(copy: Path, model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    """Under another name first: a copy is whole, or the one before is there."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, copy.with_suffix(".new"))
    os.replace(copy.with_suffix(".new"), copy)


def train(text: Text, options: argparse.Namespace) -> None:
    torch.manual_seed(1)
    model = Model(len(text.letters), options)
    plain = optimizer_of(model, options)
    first = take_up(model, plain, options.copy)
    if first > 0 and hvd.rank() == 0:
        print(f"goes on after step {first}", flush=True)
    optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
    for step in range(first, options.stop or options.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, options)
        optimizer.zero_grad()
        seed = (step + 1, hvd.rank())
        loss = model.loss(*text.batch(text.train, options.batch, options.length, seed))
        loss.backward()
        # What is clipped is the average of all workers, so wait for it here.
        optimizer.synchronize()
        norm = nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        with optimizer.skip_synchronize():
            optimizer.step()

        if (step + 1) % options.every == 0 or step + 1 == options.steps:
            loss = hvd.allreduce(loss.detach(), name="loss").item()
            if hvd.rank() == 0:
                print(f"step {step + 1}: loss {loss:.4f}, gradient {norm:.3f}", flush=True)
                if options.copy is not None:
                    write_copy(options.copy, model, optimizer, step + 1)

    seed = (0, hvd.rank())
    with torch.no_grad():
        loss = model.loss(*text.batch(text.test, 4 * options.batch, options.length, seed))
    loss = hvd.allreduce(loss, name="test loss").item()
    if hvd.rank() == 0:
        print(f"{hvd.size()} workers: a letter of the test costs {loss / math.log(2):.2f} bits")
        written = model.write(text.test[: options.length], 80)
        print("writes: " + "".join(text.letters[one] for one in written)[options.length :])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, help="to learn from, in place of the grammar's")
    parser.add_argument("--copy", type=Path, help="where rank 0 writes, and all go on from")
    parser.add_argument("--steps", type=int, default=600, help="(%(default)s)")
    parser.add_argument("--stop", type=int, help="after this step, to go on another time")
    parser.add_argument("--every", type=int, default=50, help="steps for a copy (%(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="of each worker (%(default)s)")
    parser.add_argument("--length", type=int, default=64, help="of a piece (%(default)s)")
    parser.add_argument("--width", type=int, default=96, help="of the model (%(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="(%(default)s)")
    parser.add_argument("--blocks", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--rate", type=float, default=0.002, help="at its highest (%(default)s)")
    parser.add_argument("--warm-up", type=int, default=50, help="steps (%(default)s)")
    parser.add_argument("--clip", type=float, default=1.0, help="the norm's limit (%(default)s)")
    return parser.parse_args()


def main() -> None:
    options = parse()
    torch.set_num_threads(1)  # the workers share the cores
    hvd.init()
    train(Text(options.text.read_text("utf-8") if options.text else make_text(5000)), options)
    hvd.shutdown()


if __name__ == "__main__":
    main()
