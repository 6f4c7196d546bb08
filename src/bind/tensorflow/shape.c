/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes of results from shapes of inputs, as far as they are known. A step
 * that fails leaves its status set, and the steps after it are left out
 * (IS_SOUND).
 */
#include "bind/tensorflow/shape.h"

#define UNKNOWN  ((size_t)-1) /* as a dimension */
#define TO_END   INT64_MAX
#define IS_SOUND (rueda_tf.GetCode(status) == TF_OK)

void rueda_tf_shape_same(tf_shape_context *ctx, tf_status *status)
{
    const int count = (int)rueda_tf.ShapeInferenceContextNumInputs(ctx) - 1;
    tf_shape *shape = rueda_tf.NewShapeHandle();

    for (int i = 0; i < count && IS_SOUND; i++) {
        rueda_tf.ShapeInferenceContextGetInput(ctx, i, shape, status);
        if (IS_SOUND)
            rueda_tf.ShapeInferenceContextSetOutput(ctx, i, shape, status);
    }
    rueda_tf.DeleteShapeHandle(shape);
}

/* Like input i, with any number of rows. */
static void set_rows_unknown(tf_shape_context *ctx, int i, tf_status *status)
{
    tf_shape *rows = rueda_tf.ShapeInferenceContextVectorFromSize(ctx, UNKNOWN);
    tf_shape *shape = rueda_tf.NewShapeHandle();

    rueda_tf.ShapeInferenceContextGetInput(ctx, i, shape, status);
    if (IS_SOUND)
        rueda_tf.ShapeInferenceContextWithRankAtLeast(ctx, shape, 1, shape,
                                                      status);
    if (IS_SOUND)
        rueda_tf.ShapeInferenceContextSubshape(ctx, shape, 1, TO_END, shape,
                                               status);
    if (IS_SOUND)
        rueda_tf.ShapeInferenceContextConcatenateShapes(ctx, rows, shape, shape,
                                                        status);
    if (IS_SOUND)
        rueda_tf.ShapeInferenceContextSetOutput(ctx, i, shape, status);
    rueda_tf.DeleteShapeHandle(shape);
    rueda_tf.DeleteShapeHandle(rows);
}

void rueda_tf_shape_rows(tf_shape_context *ctx, tf_status *status)
{
    const int count = (int)rueda_tf.ShapeInferenceContextNumInputs(ctx) - 1;

    for (int i = 0; i < count && IS_SOUND; i++)
        set_rows_unknown(ctx, i, status);
}

void rueda_tf_shape_alltoall(tf_shape_context *ctx, tf_status *status)
{
    tf_shape *rows = rueda_tf.ShapeInferenceContextVectorFromSize(ctx, UNKNOWN);

    set_rows_unknown(ctx, 0, status);
    if (IS_SOUND)
        rueda_tf.ShapeInferenceContextSetOutput(ctx, 1, rows, status);
    rueda_tf.DeleteShapeHandle(rows);
}

void rueda_tf_shape_scalar(tf_shape_context *ctx, tf_status *status)
{
    tf_shape *shape = rueda_tf.ShapeInferenceContextScalar(ctx);

    rueda_tf.ShapeInferenceContextSetOutput(ctx, 0, shape, status);
    rueda_tf.DeleteShapeHandle(shape);
}
