/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of TensorFlow's C interface that our ops need, declared by us and
 * found in the process when TensorFlow has loaded it. Nothing of TensorFlow is
 * needed to compile or to link this.
 */
#ifndef RUEDA_BIND_TENSORFLOW_TF_H
#define RUEDA_BIND_TENSORFLOW_TF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tf_status tf_status;
typedef struct tf_tensor tf_tensor;
typedef struct tf_op_builder tf_op_builder;
typedef struct tf_kernel_builder tf_kernel_builder;
typedef struct tf_shape tf_shape;
typedef struct tf_shape_context tf_shape_context;
typedef struct tf_construction tf_construction; /* of a kernel */
typedef struct tf_context tf_context;           /* of one run of a kernel */
typedef struct tf_done tf_done;                 /* see done.h */

/* Not terminated by a zero. */
struct tf_string_view {
    const char *data;
    size_t len;
};

/* TF_Code */
enum tf_code {
    TF_OK = 0,
    TF_UNKNOWN = 2,
    TF_INVALID_ARGUMENT = 3,
    TF_RESOURCE_EXHAUSTED = 8,
    TF_FAILED_PRECONDITION = 9,
    TF_ABORTED = 10,
    TF_UNIMPLEMENTED = 12,
};

/* TF_DataType */
enum tf_type {
    TF_FLOAT = 1,
    TF_DOUBLE = 2,
    TF_INT32 = 3,
    TF_UINT8 = 4,
    TF_INT16 = 5,
    TF_INT8 = 6,
    TF_INT64 = 9,
    TF_BOOL = 10,
    TF_BFLOAT16 = 14,
    TF_UINT16 = 17,
    TF_HALF = 19,
};

typedef void (*tf_shape_fn)(tf_shape_context *ctx, tf_status *status);
typedef void *(*tf_create_fn)(tf_construction *ctx);
typedef void (*tf_compute_fn)(void *kernel, tf_context *ctx);
typedef void (*tf_compute_async_fn)(void *kernel, tf_context *ctx,
                                    tf_done *done);
typedef void (*tf_delete_fn)(void *kernel);

/* X(type of the result, name without "TF_", arguments) */
#define RUEDA_TF_FUNCTIONS(X)                                                  \
    X(tf_status *, NewStatus, (void))                                          \
    X(void, DeleteStatus, (tf_status * status))                                \
    X(void, SetStatus, (tf_status * status, int code, const char *words))      \
    X(int, GetCode, (const tf_status *status))                                 \
    X(const char *, Message, (const tf_status *status))                        \
    X(void *, TensorData, (const tf_tensor *tensor))                           \
    X(int, NumDims, (const tf_tensor *tensor))                                 \
    X(int64_t, Dim, (const tf_tensor *tensor, int index))                      \
    X(int, TensorType, (const tf_tensor *tensor))                              \
    X(void, DeleteTensor, (tf_tensor * tensor))                                \
    X(tf_op_builder *, NewOpDefinitionBuilder, (const char *name))             \
    X(void, OpDefinitionBuilderAddAttr,                                        \
      (tf_op_builder * builder, const char *spec))                             \
    X(void, OpDefinitionBuilderAddInput,                                       \
      (tf_op_builder * builder, const char *spec))                             \
    X(void, OpDefinitionBuilderAddOutput,                                      \
      (tf_op_builder * builder, const char *spec))                             \
    X(void, OpDefinitionBuilderSetIsStateful,                                  \
      (tf_op_builder * builder, bool is_stateful))                             \
    X(void, OpDefinitionBuilderSetShapeInferenceFunction,                      \
      (tf_op_builder * builder, tf_shape_fn fn))                               \
    X(void, RegisterOpDefinition,                                              \
      (tf_op_builder * builder, tf_status * status))                           \
    X(int64_t, ShapeInferenceContextNumInputs, (tf_shape_context * ctx))       \
    X(tf_shape *, NewShapeHandle, (void))                                      \
    X(void, DeleteShapeHandle, (tf_shape * shape))                             \
    X(void, ShapeInferenceContextGetInput,                                     \
      (tf_shape_context * ctx, int index, tf_shape *shape, tf_status *status)) \
    X(void, ShapeInferenceContextSetOutput,                                    \
      (tf_shape_context * ctx, int index, tf_shape *shape, tf_status *status)) \
    X(tf_shape *, ShapeInferenceContextScalar, (tf_shape_context * ctx))       \
    X(tf_shape *, ShapeInferenceContextVectorFromSize,                         \
      (tf_shape_context * ctx, size_t size))                                   \
    X(void, ShapeInferenceContextWithRankAtLeast,                              \
      (tf_shape_context * ctx, tf_shape * shape, int64_t rank,                 \
       tf_shape * result, tf_status * status))                                 \
    X(void, ShapeInferenceContextSubshape,                                     \
      (tf_shape_context * ctx, tf_shape * shape, int64_t start, int64_t end,   \
       tf_shape * result, tf_status * status))                                 \
    X(void, ShapeInferenceContextConcatenateShapes,                            \
      (tf_shape_context * ctx, tf_shape * first, tf_shape * second,            \
       tf_shape * result, tf_status * status))                                 \
    X(tf_kernel_builder *, NewKernelBuilder,                                   \
      (const char *op, const char *device, tf_create_fn create,                \
       tf_compute_fn compute, tf_delete_fn destroy))                           \
    X(void, RegisterKernelBuilder,                                             \
      (const char *name, tf_kernel_builder *builder, tf_status *status))       \
    X(struct tf_string_view, OpKernelConstruction_GetName,                     \
      (tf_construction * ctx))                                                 \
    X(void, OpKernelConstruction_Failure,                                      \
      (tf_construction * ctx, tf_status * status))                             \
    X(void, OpKernelConstruction_GetAttrInt32,                                 \
      (tf_construction * ctx, const char *name, int32_t *out,                  \
       tf_status *status))                                                     \
    X(void, OpKernelConstruction_GetAttrFloat,                                 \
      (tf_construction * ctx, const char *name, float *out,                    \
       tf_status *status))                                                     \
    X(void, OpKernelConstruction_GetAttrBool,                                  \
      (tf_construction * ctx, const char *name, unsigned char *out,            \
       tf_status *status))                                                     \
    X(void, OpKernelConstruction_GetAttrSize,                                  \
      (tf_construction * ctx, const char *name, int32_t *count,                \
       int32_t *bytes, tf_status *status))                                     \
    X(void, OpKernelConstruction_GetAttrString,                                \
      (tf_construction * ctx, const char *name, char *out, size_t room,        \
       tf_status *status))                                                     \
    X(int, NumInputs, (tf_context * ctx))                                      \
    X(void, GetInput,                                                          \
      (tf_context * ctx, int index, tf_tensor **out, tf_status *status))       \
    X(void, OpKernelContext_Failure, (tf_context * ctx, tf_status * status))   \
    X(tf_tensor *, AllocateOutput,                                             \
      (tf_context * ctx, int index, int type, const int64_t *shape, int dims,  \
       size_t bytes, tf_status *status))                                       \
    X(tf_tensor *, ForwardInputOrAllocateOutput,                               \
      (tf_context * ctx, const int *candidates, int count, int index,          \
       const int64_t *shape, int dims, int *forwarded, tf_status *status))

/* Those that TensorFlow has only since 2.13; NULL where they are missing. */
#define RUEDA_TF_NEWER_FUNCTIONS(X)                                            \
    X(tf_kernel_builder *, NewAsyncKernelBuilder,                              \
      (const char *op, const char *device, tf_create_fn create,                \
       tf_compute_async_fn compute, tf_delete_fn destroy))                     \
    X(void, RunAsyncOpKernelDoneCallback, (tf_done * done))

struct rueda_tf_functions {
#define X(type, name, arguments) type(*name) arguments;
    RUEDA_TF_FUNCTIONS(X)
    RUEDA_TF_NEWER_FUNCTIONS(X)
#undef X
};

/* Filled in once, when the library is loaded. */
extern struct rueda_tf_functions rueda_tf;

/* Find all functions. Returns NULL, or the name of one that is missing. */
const char *rueda_tf_find(void);

#endif /* RUEDA_BIND_TENSORFLOW_TF_H */
