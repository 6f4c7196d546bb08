# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation over the batches of all ranks, as a layer of Keras's."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from rueda.common.basics import Sum
from rueda.common.process_sets import ProcessSet, global_process_set

from . import mpi_ops

__all__ = ["SyncBatchNormalization"]

_Base = tf.keras.layers.BatchNormalization


class SyncBatchNormalization(_Base):
    """``tf.keras.layers.BatchNormalization`` over the batches of all ranks.

    Every value counts the same, also where ranks have batches of different sizes. Every
    rank has to come by in training.
    """

    # Of the class, so that configurations of layers do not have one of their own.
    process_set: ProcessSet = global_process_set

    def __init__(self, fused: bool | None = False, **kwargs: Any) -> None:
        if fused in (True, None):
            raise ValueError("SyncBatchNormalization does not take fused=True")
        kwargs.setdefault("name", "sync_batch_normalization")
        super().__init__(**kwargs)

    def _moments(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        mean, variance = super()._moments(inputs, *args, **kwargs)
        if (self.process_set.size() or 1) < 2:
            return mean, variance
        count = tf.cast(tf.size(inputs) // tf.maximum(tf.size(mean), 1), mean.dtype)
        square = variance + tf.square(mean)
        sums = mpi_ops._allreduce(
            tf.concat(
                [
                    tf.reshape(tf.stack([mean, square]) * count, [-1]),
                    tf.reshape(count, [1]),
                ],
                0,
            ),
            op=Sum,
            process_set=self.process_set,
        )
        averages = sums[:-1] / sums[-1]
        shape = tf.shape(mean)
        half = tf.size(mean)
        all_mean = tf.reshape(averages[:half], shape)
        all_square = tf.reshape(averages[half:], shape)
        return all_mean, all_square - tf.square(all_mean)
