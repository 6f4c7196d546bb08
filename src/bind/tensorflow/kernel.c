/* SPDX-License-Identifier: Apache-2.0 */
/* From the attributes of an op to a kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/tensorflow/op.h"

/* Horovod's numbers of reductions, which attributes have. */
static const rueda_reduction reductions[] = {
    RUEDA_AVERAGE, RUEDA_SUM, RUEDA_ADASUM, RUEDA_MIN, RUEDA_MAX, RUEDA_PRODUCT,
};

#define REDUCTION_COUNT ((int32_t)(sizeof(reductions) / sizeof(reductions[0])))

static bool is_sound(const tf_status *status)
{
    return rueda_tf.GetCode(status) == TF_OK;
}

static void take_reduction(struct rueda_tf_kernel *kernel, tf_construction *ctx,
                           tf_status *status)
{
    int32_t number = 0;

    rueda_tf.OpKernelConstruction_GetAttrInt32(ctx, "reduce_op", &number,
                                               status);
    if (is_sound(status))
        rueda_tf.OpKernelConstruction_GetAttrFloat(ctx, "prescale_factor",
                                                   &kernel->prescale, status);
    if (is_sound(status))
        rueda_tf.OpKernelConstruction_GetAttrFloat(ctx, "postscale_factor",
                                                   &kernel->postscale, status);
    if (!is_sound(status))
        return;
    if (number < 0 || number >= REDUCTION_COUNT) {
        rueda_tf.SetStatus(status, TF_INVALID_ARGUMENT,
                           "reduce_op is no reduction");
        return;
    }
    kernel->reduction = reductions[number];
}

/* What the caller called it, and the kind of operation; NULL if there is no
 * such name. */
static char *name_given(tf_construction *ctx, rueda_kind kind,
                        tf_status *status)
{
    const char *text = rueda_kind_str(kind);
    const size_t before = strlen(text) + 1;
    int32_t count, bytes = 0;
    char *name;

    rueda_tf.OpKernelConstruction_GetAttrSize(ctx, "tensor_name", &count,
                                              &bytes, status);
    if (!is_sound(status) || bytes <= 0)
        return NULL;
    name = calloc(1, before + (size_t)bytes + 1);
    if (name == NULL)
        return NULL;
    snprintf(name, before + 1, "%s.", text);
    rueda_tf.OpKernelConstruction_GetAttrString(
        ctx, "tensor_name", name + before, (size_t)bytes, status);
    return name;
}

/* The node's name, which is one for each place of a graph, and the same on all
 * ranks that build the same graph. NULL if there is no memory. */
static char *name_of_node(tf_construction *ctx, struct tf_string_view node,
                          tf_status *status)
{
    unsigned char ignores_scope = 0;
    const char *slash = memrchr(node.data, '/', node.len);
    const char *first = node.data;

    rueda_tf.OpKernelConstruction_GetAttrBool(ctx, "ignore_name_scope",
                                              &ignores_scope, status);
    if (slash != NULL && ignores_scope)
        first = slash + 1;
    return strndup(first, node.len - (size_t)(first - node.data));
}

/*
 * Where ops run one by one a node has the name of its op: all calls of it share
 * one. There ranks match by the name that the caller gave, or else by order;
 * and the kernel waits, as its caller does.
 */
static void take_name(struct rueda_tf_kernel *kernel, tf_construction *ctx,
                      tf_status *status)
{
    const struct tf_string_view node =
        rueda_tf.OpKernelConstruction_GetName(ctx);
    const char *type = kernel->op->name;
    bool is_single =
        node.len == strlen(type) && memcmp(node.data, type, node.len) == 0;

    kernel->waits = is_single || rueda_tf_is_blocking;
    if (!kernel->op->has_token)
        return;
    kernel->name = is_single ? name_given(ctx, kernel->op->kind, status)
                             : name_of_node(ctx, node, status);
}

struct rueda_tf_kernel *rueda_tf_kernel_create(tf_construction *ctx,
                                               const struct rueda_tf_op *op)
{
    struct rueda_tf_kernel *kernel = calloc(1, sizeof(*kernel));
    tf_status *status = rueda_tf.NewStatus();

    if (kernel == NULL) {
        rueda_tf.SetStatus(status, TF_RESOURCE_EXHAUSTED, "out of memory");
        goto done;
    }
    kernel->op = op;
    kernel->prescale = 1.0f;
    kernel->postscale = 1.0f;
    if (op->has_set)
        rueda_tf.OpKernelConstruction_GetAttrInt32(ctx, "process_set_id",
                                                   &kernel->set, status);
    if (is_sound(status) && op->has_reduction)
        take_reduction(kernel, ctx, status);
    if (is_sound(status) && op->has_root)
        rueda_tf.OpKernelConstruction_GetAttrInt32(ctx, "root_rank",
                                                   &kernel->root, status);
    if (is_sound(status) && op->ask == NULL)
        take_name(kernel, ctx, status);
done:
    if (!is_sound(status)) {
        rueda_tf.OpKernelConstruction_Failure(ctx, status);
        rueda_tf_kernel_delete(kernel);
        kernel = NULL;
    }
    rueda_tf.DeleteStatus(status);
    return kernel;
}

void rueda_tf_kernel_delete(void *arg)
{
    struct rueda_tf_kernel *kernel = arg;

    if (kernel == NULL)
        return;
    free(kernel->name);
    free(kernel);
}
