/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registers our ops with the TensorFlow that has loaded this library. Names and
 * attributes are those of Horovod's ops, so that graphs, logs and the scripts
 * that look into them know ours.
 */
#include <stdio.h>
#include <string.h>

#include "api/default.h"
#include "bind/tensorflow/done.h"
#include "bind/tensorflow/op.h"
#include "bind/tensorflow/shape.h"

#define TYPES                                                                  \
    "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, "      \
    "int64, bool}"
#define ONE     "T: " TYPES
#define SEVERAL "T: list(" TYPES ") >= 1"
#define NAMED                                                                  \
    ";tensor_name: string = '';ignore_name_scope: bool = false"                \
    ";process_set_id: int = 0"
#define REDUCED                                                                \
    ";reduce_op: int;prescale_factor: float = 1.0"                             \
    ";postscale_factor: float = 1.0" NAMED
#define ROOTED ";root_rank: int" NAMED
#define IN_SET "process_set_id: int = 0"

bool rueda_tf_is_blocking;

/* ---- Numbers ---------------------------------------------------------- */

static int ask_size(const rueda_ctx *ctx, int set)
{
    return rueda_set_size(ctx, set);
}

static int ask_rank(const rueda_ctx *ctx, int set)
{
    (void)set;
    return rueda_rank(ctx);
}

static int ask_local_size(const rueda_ctx *ctx, int set)
{
    (void)set;
    return rueda_local_size(ctx);
}

static int ask_local_rank(const rueda_ctx *ctx, int set)
{
    (void)set;
    return rueda_local_rank(ctx);
}

static int ask_included(const rueda_ctx *ctx, int set)
{
    return rueda_set_size(ctx, set) < 0 ? -1 : rueda_set_rank(ctx, set) >= 0;
}

static int ask_nothing(const rueda_ctx *ctx, int set)
{
    (void)ctx;
    (void)set;
    return 0;
}

/* ---- The ops ---------------------------------------------------------- */

/* X(name, ...: fields of struct rueda_tf_op). Tensors first: groups count by
 * the number of inputs. */
#define OPS(X)                                                                 \
    X(HorovodAllreduce, .attrs = ONE REDUCED, .inputs = "tensor: T",           \
      .outputs = "sum: T", .shape = rueda_tf_shape_same,                       \
      .kind = RUEDA_ALLREDUCE, .has_token = true, .has_set = true,             \
      .has_reduction = true)                                                   \
    X(HorovodGroupedAllreduce, .attrs = SEVERAL REDUCED,                       \
      .inputs = "tensors: T", .outputs = "sum: T",                             \
      .shape = rueda_tf_shape_same, .kind = RUEDA_ALLREDUCE,                   \
      .has_token = true, .has_set = true, .has_reduction = true,               \
      .is_group = true)                                                        \
    X(HorovodAllgather, .attrs = ONE NAMED, .inputs = "tensor: T",             \
      .outputs = "output: T", .shape = rueda_tf_shape_rows,                    \
      .kind = RUEDA_ALLGATHER, .has_token = true, .has_set = true)             \
    X(HorovodGroupedAllgather, .attrs = SEVERAL NAMED, .inputs = "tensors: T", \
      .outputs = "outputs: T", .shape = rueda_tf_shape_rows,                   \
      .kind = RUEDA_ALLGATHER, .has_token = true, .has_set = true,             \
      .is_group = true)                                                        \
    X(HorovodBroadcast, .attrs = ONE ROOTED, .inputs = "tensor: T",            \
      .outputs = "output: T", .shape = rueda_tf_shape_same,                    \
      .kind = RUEDA_BROADCAST, .has_token = true, .has_set = true,             \
      .has_root = true)                                                        \
    X(HorovodGroupedBroadcast, .attrs = SEVERAL ROOTED,                        \
      .inputs = "tensors: T", .outputs = "outputs: T",                         \
      .shape = rueda_tf_shape_same, .kind = RUEDA_BROADCAST,                   \
      .has_token = true, .has_set = true, .has_root = true, .is_group = true)  \
    X(HorovodAlltoall, .attrs = ONE NAMED,                                     \
      .inputs = "tensor: T;splits: int32",                                     \
      .outputs = "output: T;received_splits: int32",                           \
      .shape = rueda_tf_shape_alltoall, .kind = RUEDA_ALLTOALL,                \
      .has_token = true, .has_set = true)                                      \
    X(HorovodReducescatter, .attrs = ONE REDUCED, .inputs = "tensor: T",       \
      .outputs = "output: T", .shape = rueda_tf_shape_rows,                    \
      .kind = RUEDA_REDUCE_SCATTER, .has_token = true, .has_set = true,        \
      .has_reduction = true)                                                   \
    X(HorovodGroupedReducescatter, .attrs = SEVERAL REDUCED,                   \
      .inputs = "tensors: T", .outputs = "outputs: T",                         \
      .shape = rueda_tf_shape_rows, .kind = RUEDA_REDUCE_SCATTER,              \
      .has_token = true, .has_set = true, .has_reduction = true,               \
      .is_group = true)                                                        \
    X(HorovodJoin, .outputs = "output: int32", .shape = rueda_tf_shape_scalar, \
      .kind = RUEDA_JOIN)                                                      \
    X(HorovodBarrier, .attrs = IN_SET, .kind = RUEDA_BARRIER, .has_set = true) \
    X(HorovodSize, .attrs = IN_SET, .outputs = "size: int32",                  \
      .shape = rueda_tf_shape_scalar, .has_set = true, .ask = ask_size)        \
    X(HorovodRank, .outputs = "rank: int32", .shape = rueda_tf_shape_scalar,   \
      .ask = ask_rank)                                                         \
    X(HorovodLocalSize, .outputs = "local_size: int32",                        \
      .shape = rueda_tf_shape_scalar, .ask = ask_local_size)                   \
    X(HorovodLocalRank, .outputs = "local_rank: int32",                        \
      .shape = rueda_tf_shape_scalar, .ask = ask_local_rank)                   \
    X(HorovodProcessSetIncluded, .attrs = IN_SET,                              \
      .outputs = "included: int32", .shape = rueda_tf_shape_scalar,            \
      .has_set = true, .ask = ask_included)                                    \
    X(HorovodToken, .outputs = "token: int32", .shape = rueda_tf_shape_scalar, \
      .ask = ask_nothing)

/* ---- Kernels ---------------------------------------------------------- */

static void answer(struct rueda_tf_kernel *kernel, tf_context *ctx)
{
    const bool needs_no_job = kernel->op->ask == ask_nothing;
    rueda_ctx *rueda = needs_no_job ? NULL : rueda_default_enter();
    tf_status *status = rueda_tf.NewStatus();
    tf_tensor *output = NULL;
    int number = -1;

    if (rueda != NULL || needs_no_job)
        number = kernel->op->ask(rueda, kernel->set);
    if (number < 0)
        rueda_tf.SetStatus(
            status,
            rueda == NULL ? TF_FAILED_PRECONDITION : TF_INVALID_ARGUMENT,
            rueda == NULL ? "Rueda has not been initialized; use hvd.init()."
                          : "there is no process set of this id");
    else
        output = rueda_tf.AllocateOutput(ctx, 0, TF_INT32, NULL, 0,
                                         sizeof(int32_t), status);
    if (rueda_tf.GetCode(status) == TF_OK)
        *(int32_t *)rueda_tf.TensorData(output) = number;
    else
        rueda_tf.OpKernelContext_Failure(ctx, status);
    if (output != NULL)
        rueda_tf.DeleteTensor(output);
    rueda_tf.DeleteStatus(status);
    if (rueda != NULL)
        rueda_default_leave();
}

static void compute(void *arg, tf_context *ctx)
{
    struct rueda_tf_kernel *kernel = arg;

    if (kernel == NULL)
        rueda_tf_fail(ctx, TF_FAILED_PRECONDITION, "the kernel was not made");
    else if (kernel->op->ask != NULL)
        answer(kernel, ctx);
    else
        rueda_tf_call(kernel, ctx, NULL);
}

static void compute_async(void *arg, tf_context *ctx, tf_done *done)
{
    if (arg != NULL) {
        rueda_tf_call(arg, ctx, done);
        return;
    }
    rueda_tf_fail(ctx, TF_FAILED_PRECONDITION, "the kernel was not made");
    rueda_tf.RunAsyncOpKernelDoneCallback(done);
}

/* A function for each, since TensorFlow does not say which op it is. */
#define X(op_name, ...)                                                        \
    static const struct rueda_tf_op op_##op_name = {.name = #op_name,          \
                                                    __VA_ARGS__};              \
    static void *create_##op_name(tf_construction *ctx)                        \
    {                                                                          \
        return rueda_tf_kernel_create(ctx, &op_##op_name);                     \
    }
OPS(X)
#undef X

/* ---- Registration ----------------------------------------------------- */

/* Call `add` with each of the specifications in a list. */
static void add_each(tf_op_builder *builder, const char *list,
                     void (*add)(tf_op_builder *builder, const char *spec))
{
    char spec[512];

    while (list != NULL && *list != '\0') {
        const char *end = strchr(list, ';');
        size_t len = end != NULL ? (size_t)(end - list) : strlen(list);

        if (len >= sizeof(spec))
            return;
        memcpy(spec, list, len);
        spec[len] = '\0';
        if (len > 0)
            add(builder, spec);
        list = end != NULL ? end + 1 : NULL;
    }
}

static void register_op(const struct rueda_tf_op *op, tf_create_fn create,
                        tf_status *status)
{
    tf_op_builder *builder = rueda_tf.NewOpDefinitionBuilder(op->name);
    bool is_async = op->ask == NULL && !rueda_tf_is_blocking;
    tf_kernel_builder *kernel;

    add_each(builder, op->attrs, rueda_tf.OpDefinitionBuilderAddAttr);
    add_each(builder, op->inputs, rueda_tf.OpDefinitionBuilderAddInput);
    if (op->has_token)
        rueda_tf.OpDefinitionBuilderAddInput(builder, "token: int32");
    add_each(builder, op->outputs, rueda_tf.OpDefinitionBuilderAddOutput);
    if (op->shape != NULL)
        rueda_tf.OpDefinitionBuilderSetShapeInferenceFunction(builder,
                                                              op->shape);
    /* Ops with state run one after another, which is right for these. To say
     * that an op has none would make it one that has. */
    if (!op->has_token || rueda_tf_is_blocking)
        rueda_tf.OpDefinitionBuilderSetIsStateful(builder, true);
    rueda_tf.RegisterOpDefinition(builder, status);
    if (rueda_tf.GetCode(status) != TF_OK)
        return;
    kernel = is_async
                 ? rueda_tf.NewAsyncKernelBuilder(op->name, "CPU", create,
                                                  compute_async,
                                                  rueda_tf_kernel_delete)
                 : rueda_tf.NewKernelBuilder(op->name, "CPU", create, compute,
                                             rueda_tf_kernel_delete);
    rueda_tf.RegisterKernelBuilder(op->name, kernel, status);
}

static char failure[512];

/* Runs when TensorFlow loads the library. */
__attribute__((constructor)) static void register_all(void)
{
    const char *missing = rueda_tf_find();
    tf_status *status;

    if (missing != NULL) {
        snprintf(failure, sizeof(failure), "%s", missing);
        return;
    }
    rueda_tf_is_blocking =
        rueda_default_tensorflow_waits() || !rueda_tf_done_works();
    status = rueda_tf.NewStatus();
#define X(op_name, ...)                                                        \
    if (rueda_tf.GetCode(status) == TF_OK)                                     \
        register_op(&op_##op_name, create_##op_name, status);
    OPS(X)
#undef X
    if (rueda_tf.GetCode(status) != TF_OK)
        snprintf(failure, sizeof(failure), "%s", rueda_tf.Message(status));
    rueda_tf.DeleteStatus(status);
}

/* ---- For Python ------------------------------------------------------- */

/* What went wrong, such as a function that TensorFlow does not have; empty if
 * nothing did. */
RUEDA_API const char *rueda_tensorflow_failure(void);

const char *rueda_tensorflow_failure(void)
{
    return failure;
}

/* Do kernels wait, because they cannot be asynchronous? */
RUEDA_API bool rueda_tensorflow_blocks(void);

bool rueda_tensorflow_blocks(void)
{
    return rueda_tf_is_blocking;
}
