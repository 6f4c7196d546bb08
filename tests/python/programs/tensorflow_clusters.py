# SPDX-License-Identifier: Apache-2.0
"""Run ops where TensorFlow chooses by itself what XLA compiles: tensorflow_clusters.py FOLDER.

The test sets TF_XLA_FLAGS for that. TensorFlow writes into FOLDER which nodes are in the
clusters that it compiles: those around our ops, and never our ops.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

rank = int(os.environ["HOROVOD_RANK"])
folder = Path(sys.argv[1], str(rank))
folder.mkdir()
os.environ["TF_DUMP_GRAPH_PREFIX"] = str(folder)

import numpy as np  # noqa: E402
import rueda.tensorflow as hvd  # noqa: E402
import tensorflow as tf  # noqa: E402


@tf.function
def step(x: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Things that XLA can compile before, between and after ours, also as their constants."""
    for i in range(3):
        x = tf.tanh(x * w + float(i)) * 0.5 + tf.exp(-x)
        x = hvd.allreduce(x, op=hvd.Average, name=f"part_{i}")
    rows = hvd.allgather(tf.nn.relu(x - 0.1) * 2.0 + 1.0)
    return tf.reduce_sum(tf.square(rows) * 0.5, axis=0) + hvd.allreduce(tf.ones(2), op=hvd.Sum)[0]


def wanted(parts: list[np.ndarray], w: np.ndarray) -> np.ndarray:
    for i in range(3):
        parts = [np.tanh(x * w + float(i)) * 0.5 + np.exp(-x) for x in parts]
        parts = [np.mean(parts, axis=0)] * len(parts)
    rows = np.concatenate([np.maximum(x - 0.1, 0) * 2.0 + 1.0 for x in parts])
    return (rows**2 * 0.5).sum(axis=0) + len(parts)


hvd.init()
w = np.linspace(-1, 1, 5).astype("float32")
for seed in range(3):
    parts = [np.random.default_rng(10 * seed + r).normal(size=(4, 5)).astype("float32")
             for r in range(hvd.size())]  # fmt: skip
    found = step(tf.constant(parts[hvd.rank()]), tf.constant(w))
    np.testing.assert_allclose(found.numpy(), wanted(parts, w), rtol=1e-4)

ours, compiled = set(), set()
for file in folder.glob("mark_for_compilation*.pbtxt"):
    for node in re.findall(r"^node \{\n.*?^\}", file.read_text(), re.M | re.S):
        op = re.search(r'^  op: "(\w+)"', node, re.M)
        assert op is not None, node
        if op.group(1).startswith("Horovod"):
            ours.add(op.group(1))
            assert '"_XlaCluster"' not in node, node
        elif '"_XlaCluster"' in node:
            compiled.add(op.group(1))
assert {"HorovodAllreduce", "HorovodAllgather"} <= ours, ours
assert "Tanh" in compiled, compiled
print("clusters: all right", flush=True)
hvd.shutdown()
