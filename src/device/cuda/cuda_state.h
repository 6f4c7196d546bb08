/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU from within: what the files of this folder share.
 *
 * A call of the device goes like this:
 *
 *     rueda_cuda_begin()   makes the context current; takes a row for the work
 *     calls of the driver  on the row's stream
 *     rueda_cuda_end()     restores the context; the result becomes a status
 *
 * Calls of one row come from one thread at a time (device.h); what rows share
 * is under the lock.
 */
#ifndef RUEDA_DEVICE_CUDA_CUDA_STATE_H
#define RUEDA_DEVICE_CUDA_CUDA_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/cuda/kernel_args.h"

/* The kernels by their names in kernels.cu. */
#define RUEDA_CUDA_KERNELS(X)                                                  \
    X(FILL, "rueda_fill")                                                      \
    X(CONVERT, "rueda_convert")                                                \
    X(COMBINE, "rueda_combine")                                                \
    X(DOTS, "rueda_dots")                                                      \
    X(FOLD, "rueda_fold")                                                      \
    X(MOVE, "rueda_move")                                                      \
    X(REDUCE, "rueda_reduce_u8") /* one for each dtype, in their order */      \
    X(REDUCE_I8, "rueda_reduce_i8")                                            \
    X(REDUCE_U16, "rueda_reduce_u16")                                          \
    X(REDUCE_I16, "rueda_reduce_i16")                                          \
    X(REDUCE_I32, "rueda_reduce_i32")                                          \
    X(REDUCE_I64, "rueda_reduce_i64")                                          \
    X(REDUCE_F16, "rueda_reduce_f16")                                          \
    X(REDUCE_F32, "rueda_reduce_f32")                                          \
    X(REDUCE_F64, "rueda_reduce_f64")                                          \
    X(REDUCE_FLAG, "rueda_reduce_flag")                                        \
    X(REDUCE_BF16, "rueda_reduce_bf16")

typedef enum rueda_cuda_kernel {
#define X(name, symbol) RUEDA_CUDA_##name,
    RUEDA_CUDA_KERNELS(X)
#undef X
    RUEDA_CUDA_KERNEL_COUNT
} rueda_cuda_kernel;

enum {
    RUEDA_CUDA_ROW_DOTS = 16 /* dot products in a row, at most */
};

/* The row of one struct rueda_work, whose state[0] points to it while a call is
 * in progress. */
struct rueda_cuda_row {
    struct rueda_cuda_row *next;      /* of all */
    struct rueda_cuda_row *next_free; /* of those in no work */
    void *stream;

    /* Dot products: partial sums on the GPU, and results in pinned memory,
     * which poll() hands to their owners. NULL until the first. */
    double *sums;
    double *dots; /* [RUEDA_CUDA_ROW_DOTS][3] */
    double *owners[RUEDA_CUDA_ROW_DOTS];
    int dot_count;
};

/* A list of pieces that rueda_move has been given, kept on the GPU: a training
 * step repeats those of the step before. */
struct rueda_cuda_table {
    struct rueda_cuda_table *next;
    uint64_t hash;
    int count;
    int room;
    struct rueda_cuda_piece *pieces; /* pinned */
    struct rueda_cuda_piece *copy;   /* on the GPU */
    void *event;                     /* recorded behind the last use */
    uint64_t used;                   /* when that was, in calls */
};

struct rueda_cuda {
    struct rueda_device super;
    struct rueda_cuda_driver driver;
    rueda_cuda_ordinal ordinal;
    int number;
    void *context;
    void *module;
    void *kernels[RUEDA_CUDA_KERNEL_COUNT];

    pthread_mutex_t lock; /* of all below */
    struct rueda_cuda_row *rows;
    struct rueda_cuda_row *free_rows;
    struct rueda_cuda_mark *free_marks;
    struct rueda_cuda_table *tables;
    int table_count;
    struct rueda_cuda_piece *scratch; /* [scratch_room] the list at work */
    int scratch_room;
    uint64_t calls;
    struct rueda_text words; /* of the last failure */

    struct rueda_nccl *nccl; /* NULL: not set up (nccl_state.h) */
};

/* What is in an event of the device's. */
struct rueda_cuda_mark {
    void *event; /* of the driver's */
    atomic_int holders;
    struct rueda_cuda_mark *next; /* free ones */
};

struct rueda_cuda_scope {
    struct rueda_cuda *cuda;
    struct rueda_cuda_row *row; /* NULL in a call without one */
    bool is_inside;             /* the context was made current */
    int mode;                   /* of captures, as it was before */
    rueda_cuda_result result;   /* of begin(): if not 0, end() follows */
};

/* The text of kernels.ptx, ended by zero. */
extern const char rueda_cuda_ptx[];

static inline struct rueda_cuda *
rueda_cuda_of(const struct rueda_device *device)
{
    return (struct rueda_cuda *)device;
}

/* work NULL: a call without a row. */
void rueda_cuda_begin(const struct rueda_device *device,
                      struct rueda_work *work, struct rueda_cuda_scope *scope);

/* `what` names the driver's function. A success is RUEDA_IN_PROGRESS in a row,
 * else RUEDA_OK; a failure is logged, and kept for tell(). */
rueda_status rueda_cuda_end(struct rueda_cuda_scope *scope,
                            rueda_cuda_result result, const char *what);

/* End a call that may fail without harm to the job; its caller says why. */
void rueda_cuda_leave(struct rueda_cuda_scope *scope);

/* Keep these words for tell(). */
void rueda_cuda_keep(struct rueda_cuda *cuda, const struct rueda_text *words);

/* Rows (rows.c). The context is current. */
rueda_cuda_result rueda_cuda_row_take(struct rueda_cuda *cuda,
                                      struct rueda_cuda_row **out);
void rueda_cuda_row_give(struct rueda_cuda *cuda, struct rueda_cuda_row *row);
void rueda_cuda_rows_fini(struct rueda_cuda *cuda);

/* Marks (rows.c). take: with one holder; the context is current. give: by one
 * of the holders. */
rueda_cuda_result rueda_cuda_mark_take(struct rueda_cuda *cuda,
                                       struct rueda_cuda_mark **out);
void rueda_cuda_mark_give(struct rueda_cuda *cuda,
                          struct rueda_cuda_mark *mark);

/* Start a kernel on `blocks` blocks, in the row's stream. */
rueda_cuda_result rueda_cuda_launch(const struct rueda_cuda_scope *scope,
                                    int kernel, uint64_t blocks, void *args);

/* The functions of the table (arith.c, pack.c). */
rueda_status rueda_cuda_reduce(const struct rueda_device *device,
                               struct rueda_work *work,
                               const struct rueda_arith *arith, void *dst,
                               const void *const *src, int n, size_t count);
rueda_status rueda_cuda_reduce_all(const struct rueda_device *device,
                                   struct rueda_work *work,
                                   const struct rueda_arith *arith,
                                   void *const *dst, const void *const *src,
                                   int n, size_t count);
rueda_status rueda_cuda_scale(const struct rueda_device *device,
                              struct rueda_work *work, rueda_dtype dtype,
                              void *dst, const void *src, size_t count,
                              double factor);
rueda_status rueda_cuda_neutral(const struct rueda_device *device,
                                struct rueda_work *work,
                                const struct rueda_arith *arith, void *dst,
                                size_t count);
rueda_status rueda_cuda_convert(const struct rueda_device *device,
                                struct rueda_work *work, rueda_dtype to,
                                void *dst, rueda_dtype from, const void *src,
                                size_t count);
rueda_status rueda_cuda_dots(const struct rueda_device *device,
                             struct rueda_work *work, rueda_dtype dtype,
                             const void *a, const void *b, size_t count,
                             double out_dots[3]);
rueda_status rueda_cuda_combine(const struct rueda_device *device,
                                struct rueda_work *work, rueda_dtype dtype,
                                void *dst, const void *const src[2],
                                const double by[2], size_t count);
rueda_status rueda_cuda_gather(const struct rueda_device *device,
                               struct rueda_work *work, char *slab,
                               const struct rueda_part *parts, int count);
rueda_status rueda_cuda_scatter(const struct rueda_device *device,
                                struct rueda_work *work, const char *slab,
                                const struct rueda_part *parts, int count);
void rueda_cuda_tables_fini(struct rueda_cuda *cuda);

/* Memory that processes share (ipc.c). */
void rueda_cuda_identity(const struct rueda_device *device, uint64_t out[2]);
rueda_status rueda_cuda_region(const struct rueda_device *device,
                               const void *at, struct rueda_region *out);
rueda_status rueda_cuda_share(const struct rueda_device *device,
                              const struct rueda_region *region,
                              struct rueda_shared *out, struct rueda_text *why);
rueda_status rueda_cuda_reach(const struct rueda_device *device,
                              const struct rueda_shared *shared, void **out,
                              struct rueda_text *why);
void rueda_cuda_unreach(const struct rueda_device *device,
                        const struct rueda_shared *shared, void *at);

#endif /* RUEDA_DEVICE_CUDA_CUDA_STATE_H */
