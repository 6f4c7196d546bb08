# SPDX-License-Identifier: Apache-2.0
"""Three questions about a text, one network: multi-task text classification.

    ruedarun -np 2 python multi_task_text.py

The tasks are the subject of a review, the writer's opinion, and when it was. Each
has a data set of its own, of another size, which a grammar makes. All share the
words' vectors and the layer that reads a sentence; each has a head of its own.

In each step every worker draws a task, larger data sets more often, so in one step
the workers have different tasks. DistributedOptimizer averages each gradient over
all workers, with zeros from those that had none. That suits the shared layers. A
head however belongs to those that had its task: its gradient is divided by their
number, and where no worker had the task, the head rests. See "what a head gets".

multi_task.py shows another way: a process set for each head.
"""

from __future__ import annotations

import argparse
import random
import re

import rueda.torch as hvd
import torch
import torch.nn.functional as F
from torch import nn

THINGS = {
    "food": ("the soup", "the bread", "our dinner", "the cook", "every dish"),
    "travel": ("the train", "our hotel", "the beach", "the flight", "the guide"),
    "music": ("the singer", "the concert", "every song", "the band", "the piano"),
    "sport": ("the match", "the team", "the race", "our coach", "the final"),
}
OPINIONS = {
    "good": ("wonderful", "a joy", "better than hoped", "not bad at all", "worth it"),
    "bad": ("dreadful", "a bore", "worse than feared", "not good at all", "a waste"),
}
TIMES = {
    "past": (("yesterday", "last week", "years ago"), "was"),
    "present": (("today", "this week", "right now"), "is"),
    "future": (("tomorrow", "next week", "soon"), "will be"),
}
FRAMES = ("{when} {what} {is_} {how}", "{what} {is_} {how} {when}", "i say {what} {is_} {how}",
          "friends agree that {when} {what} {is_} {how}")  # fmt: skip
# The classes of each task, and how many sentences its data set has.
TASKS = {
    "subject": (tuple(THINGS), 2000),
    "opinion": (tuple(OPINIONS), 1000),
    "time": (tuple(TIMES), 500),
}
HELD_OUT = 200


def make_sentence(chosen: random.Random) -> tuple[str, dict[str, str]]:
    """A sentence, and the right answer of each task."""
    subject, opinion, time = (chosen.choice(list(one)) for one in (THINGS, OPINIONS, TIMES))
    words, is_ = TIMES[time]
    text = chosen.choice(FRAMES).format(
        when=chosen.choice(words), what=chosen.choice(THINGS[subject]), is_=is_,
        how=chosen.choice(OPINIONS[opinion]),
    )  # fmt: skip
    return text, {"subject": subject, "opinion": opinion, "time": time}


class Words:
    """Words as numbers: 0 fills up short sentences, 1 is any word that is not known."""

    def __init__(self, texts: list[str]) -> None:
        known = sorted({word for text in texts for word in re.findall(r"\w+", text)})
        self.numbers = {word: i + 2 for i, word in enumerate(known)}

    def __len__(self) -> int:
        return len(self.numbers) + 2

    def read(self, texts: list[str]) -> torch.Tensor:
        rows = [[self.numbers.get(one, 1) for one in re.findall(r"\w+", text)] for text in texts]
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


class Task:
    """The data set of one task: sentences with the answer to its question alone."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.classes, count = TASKS[name]
        chosen = random.Random(seed)
        made = [make_sentence(chosen) for _ in range(count + HELD_OUT)]
        self.texts = [text for text, _ in made]
        self.labels = torch.tensor([self.classes.index(answers[name]) for _, answers in made])

    @property
    def train_count(self) -> int:
        return len(self.texts) - HELD_OUT


class Model(nn.Module):
    """Vectors of words, a layer that reads them in both directions, and the heads."""

    def __init__(self, words: int, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.reader = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(2 * width, len(classes)) for name, (classes, _) in TASKS.items()}
        )

    def forward(self, sentences: torch.Tensor, task: str) -> torch.Tensor:
        seen, _ = self.reader(self.words(sentences))
        is_filling = (sentences == 0).unsqueeze(2)
        return self.heads[task](seen.masked_fill(is_filling, -1).amax(1))


def train(model: Model, words: Words, tasks: list[Task], options: argparse.Namespace) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=options.rate)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    chosen = random.Random(hvd.rank())
    # By the square root of the size: small data sets are seen more often than their due.
    weights = [task.train_count**0.5 for task in tasks]

    for step in range(options.steps):
        task = chosen.choices(tasks, weights)[0]
        workers = torch.tensor([float(one is task) for one in tasks])
        workers = hvd.allreduce_async(workers, op=hvd.Sum, name="workers of each task")
        rows = chosen.sample(range(task.train_count), options.batch)
        answers = model(words.read([task.texts[row] for row in rows]), task.name)
        loss = F.cross_entropy(answers, task.labels[rows])
        optimizer.zero_grad()
        loss.backward()

        # What a head gets: the average of the workers that had its task.
        optimizer.synchronize()
        for one, count in zip(tasks, hvd.synchronize(workers).tolist()):
            for parameter in model.heads[one.name].parameters():
                if count == 0:
                    parameter.grad = None
                else:
                    parameter.grad *= hvd.size() / count
        with optimizer.skip_synchronize():
            optimizer.step()
        if hvd.rank() == 0 and (step + 1) % 50 == 0:
            print(f"step {step + 1}: {task.name}, loss {loss.item():.3f}", flush=True)


@torch.no_grad()
def accuracies(model: Model, words: Words, tasks: list[Task]) -> list[float]:
    """Each worker reads its part of the sentences that are held out."""
    right = []
    for task in tasks:
        rows = range(task.train_count + hvd.rank(), len(task.texts), hvd.size())
        answers = model(words.read([task.texts[row] for row in rows]), task.name)
        right.append((answers.argmax(1) == task.labels[list(rows)]).sum())
    return (hvd.allreduce(torch.stack(right), op=hvd.Sum, name="right") / HELD_OUT).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=300, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=16, help="of each worker (%(default)s)")
    parser.add_argument("--rate", type=float, default=0.003, help="(%(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the workers share the cores
    hvd.init()
    torch.manual_seed(1)
    tasks = [Task(name, seed) for seed, name in enumerate(TASKS)]
    words = Words([text for task in tasks for text in task.texts[: task.train_count]])
    model = Model(len(words))
    train(model, words, tasks, options)
    found = accuracies(model, words, tasks)
    if hvd.rank() == 0:
        told = ", ".join(f"{task.name} {100 * one:.1f} %" for task, one in zip(tasks, found))
        print(f"{hvd.size()} workers: {told} of {HELD_OUT} held-out sentences are right")
    hvd.shutdown()


if __name__ == "__main__":
    main()
