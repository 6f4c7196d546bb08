# SPDX-License-Identifier: Apache-2.0
"""Rank 1 is gone; the other says what its graph and what a call of its own say.

Before that the other runs iterations side by side that want one name; rank 1 leaves when it
sees the file, whose path is the argument.
"""

import os
import sys
import time

import rueda.tensorflow as hvd
import tensorflow as tf

hvd.init()
add = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum))
assert float(add(tf.constant(1.0))) == 2.0
# Iterations side by side want one name, while rank 1 does not come.
loop = tf.function(lambda x: tf.map_fn(lambda y: hvd.allreduce(y), x, parallel_iterations=8))
loop = loop.get_concrete_function(tf.range(8.0))
if hvd.rank() == 1:
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    time.sleep(3)
    os._exit(3)
open(sys.argv[1], "w").close()
try:
    loop(tf.range(8.0))
except tf.errors.InvalidArgumentError as error:
    print("of a loop:", error.message.count("parallel_iterations=1"))
try:
    add(tf.constant(1.0))
except tf.errors.UnknownError as error:
    print("said:", error.message)
try:
    hvd.allreduce(tf.constant(1.0))
except tf.errors.UnknownError as error:
    print("said:", error.message)
