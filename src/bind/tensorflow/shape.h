/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the shapes of results before an op runs. The last input of
 * ops with tensors is the token (op.h), which has no result.
 */
#ifndef RUEDA_BIND_TENSORFLOW_SHAPE_H
#define RUEDA_BIND_TENSORFLOW_SHAPE_H

#include "bind/tensorflow/tf.h"

/* Each result has the shape of its input. */
void rueda_tf_shape_same(tf_shape_context *ctx, tf_status *status);

/* The same but for the number of rows, which only the ranks together know. */
void rueda_tf_shape_rows(tf_shape_context *ctx, tf_status *status);

/* The rows that came, and how many came from each rank. */
void rueda_tf_shape_alltoall(tf_shape_context *ctx, tf_status *status);

/* One number. */
void rueda_tf_shape_scalar(tf_shape_context *ctx, tf_status *status);

#endif /* RUEDA_BIND_TENSORFLOW_SHAPE_H */
