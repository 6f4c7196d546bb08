# SPDX-License-Identifier: Apache-2.0
"""Rank 1 is gone; the other says what its graph and what a call of its own say."""

import os

import rueda.tensorflow as hvd
import tensorflow as tf

hvd.init()
add = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))
assert float(add(tf.constant(1.0))) == 2.0
if hvd.rank() == 1:
    os._exit(3)
try:
    add(tf.constant(1.0))
except tf.errors.UnknownError as error:
    print("said:", error.message)
try:
    hvd.allreduce(tf.constant(1.0))
except tf.errors.UnknownError as error:
    print("said:", error.message)
