# SPDX-License-Identifier: Apache-2.0
"""One rank of one side of bench/tensorflow_step.py: it does what lines on its input ask for.

    tensorflow_side.py none|multiworker|rueda|strategy

A line is a JSON list, what to do and with what; so is the answer, which has a time in
seconds for each repetition. Between lines the rank sleeps in a read.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # whose optimizers know strategies

import tensorflow as tf

Weights = list[tf.Variable]


def dense(x: Any, weights: Weights) -> Any:
    for i in range(0, len(weights), 2):
        x = (tf.nn.relu(x) if i else x) @ weights[i] + weights[i + 1]
    return x


def conv(x: Any, weights: Weights) -> Any:
    for i in range(0, len(weights) - 2, 2):
        x = tf.nn.relu(tf.nn.conv2d(x, weights[i], 2, "SAME") + weights[i + 1])
    return tf.reduce_mean(x, [1, 2]) @ weights[-2] + weights[-1]


def many(x: Any, weights: Weights) -> Any:
    for row in weights:
        x = x + row * 0.1
    return x[:, :10]


_WIDTHS = [3, 32, 64, 128, 128]
_CONV = [shape for a, b in zip(_WIDTHS, _WIDTHS[1:]) for shape in ([3, 3, a, b], [b])]

#: What a model does, the shapes of its variables, and the shape of a batch.
MODELS: dict[str, tuple[Callable[[Any, Weights], Any], list[list[int]], list[int]]] = {
    "mlp": (
        dense,
        [[1024, 4096], [4096], [4096, 4096], [4096], [4096, 10], [10]],
        [16, 1024],
    ),
    "conv": (conv, [*_CONV, [128, 10], [10]], [16, 64, 64, 3]),
    "many": (many, [[1024]] * 400, [4, 1024]),
}


class Alone:
    """Ranks that know nothing of each other."""

    rank, size = int(os.environ["BENCH_RANK"]), 1
    strategy: Any = None

    def tape(self, tape: Any) -> Any:
        return tape

    def allreduce(self, tensor: Any) -> Any:
        raise NotImplementedError("ranks that are alone add nothing up")


class Rueda(Alone):
    def __init__(self) -> None:
        import rueda.tensorflow as hvd

        hvd.init()
        self.rank, self.size = hvd.rank(), hvd.size()
        self._hvd = hvd

    def tape(self, tape: Any) -> Any:
        return self._hvd.DistributedGradientTape(tape)

    def allreduce(self, tensor: Any) -> Any:
        return self._hvd.allreduce(tensor, op=self._hvd.Sum, name="bytes")


class Strategy(Rueda):
    def __init__(self) -> None:
        super().__init__()
        self.strategy = self._hvd.Strategy()

    def tape(self, tape: Any) -> Any:
        return tape


class MultiWorker(Alone):
    def __init__(self) -> None:
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        self.size = self.strategy.num_replicas_in_sync


SIDES: dict[str, type[Alone]] = {
    "none": Alone, "multiworker": MultiWorker, "rueda": Rueda, "strategy": Strategy,
}  # fmt: skip


class Training:
    """A model that is trained on the same batch over and over."""

    def __init__(self, side: Alone, kind: str) -> None:
        run, shapes, batch = MODELS[kind]
        tf.random.set_seed(0)
        strategy = side.strategy or tf.distribute.get_strategy()
        with strategy.scope():
            weights = [
                tf.Variable(tf.random.normal(shape, stddev=0.05, seed=i))
                for i, shape in enumerate(shapes)
            ]
            optimizer = tf.keras.optimizers.SGD(0.0005, momentum=0.9, jit_compile=False)
            optimizer.build(weights)
        # Strategies add gradients up; the tape divides the sum itself.
        share = side.size if side.strategy is not None else 1
        tf.random.set_seed(1 + side.rank)
        self._batch = (
            tf.random.normal(batch, seed=1),
            tf.random.uniform([batch[0]], maxval=10, dtype=tf.int32, seed=2),
        )

        def replica(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                found = run(x, weights)
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, found)
                loss = tf.reduce_mean(losses)
                scaled = loss / share
            gradients = side.tape(tape).gradient(scaled, weights)
            optimizer.apply_gradients(zip(gradients, weights))
            return loss

        def step(x: Any, y: Any) -> Any:
            return strategy.run(replica, args=(x, y)) if side.strategy else replica(x, y)

        self._step = tf.function(step)
        self._local = strategy.experimental_local_results

    def steps(self, count: int) -> list:
        times, loss = [], None
        for _ in range(count):
            began = time.perf_counter()
            loss = self._step(*self._batch)
            value = float(self._local(loss)[0].numpy())
            times.append(time.perf_counter() - began)
        return [times, value]


class Sums:
    """One op in a function, beside the same function with an identity in its place."""

    def __init__(self, side: Alone, length: int) -> None:
        self._want = side.size * (side.size + 1) / 2
        self._mine = tf.fill([length // 4], side.rank + 1.0)
        self._sum = tf.function(side.allreduce)
        self._same = tf.function(tf.identity)
        self._start = tf.function(lambda: side.allreduce(tf.zeros([1])))

    def repeat(self, count: int) -> list:
        times, identities = [], []
        for _ in range(count):
            self._start()  # all begin together
            began = time.perf_counter()
            total = self._sum(self._mine)
            times.append(time.perf_counter() - began)
            if not bool(tf.reduce_all(total == self._want)):
                raise ArithmeticError(f"the sum is not {self._want}")
            began = time.perf_counter()
            self._same(self._mine)
            identities.append(time.perf_counter() - began)
        return [times, identities]


def main() -> None:
    # Answers have the standard output for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    side = SIDES[sys.argv[1]]()
    known: dict[Any, Any] = {}
    answers.write('["ready"]\n')
    for line in sys.stdin:
        what, which, count = json.loads(line)
        if (what, which) not in known:
            known[what, which] = (Training if what == "train" else Sums)(side, which)
        one = known[what, which]
        answer = one.steps(count) if what == "train" else one.repeat(count)
        answers.write(json.dumps(answer) + "\n")
    os._exit(0)  # peers may be gone already


if __name__ == "__main__":
    main()
