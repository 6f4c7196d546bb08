/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernels.cu by their names; a part of cuda.c. */
union any_args {
    struct rueda_cuda_reduce reduce;
    struct rueda_cuda_fill fill;
    struct rueda_cuda_convert convert;
    struct rueda_cuda_combine combine;
    struct rueda_cuda_dots dots;
    struct rueda_cuda_fold fold;
    struct rueda_cuda_move move;
};

#define KERNELS(X)                                                             \
    X(rueda_reduce_u8, reduce)                                                 \
    X(rueda_reduce_i8, reduce)                                                 \
    X(rueda_reduce_u16, reduce)                                                \
    X(rueda_reduce_i16, reduce)                                                \
    X(rueda_reduce_i32, reduce)                                                \
    X(rueda_reduce_i64, reduce)                                                \
    X(rueda_reduce_f16, reduce)                                                \
    X(rueda_reduce_bf16, reduce)                                               \
    X(rueda_reduce_f32, reduce)                                                \
    X(rueda_reduce_f64, reduce)                                                \
    X(rueda_reduce_flag, reduce)                                               \
    X(rueda_fill, fill)                                                        \
    X(rueda_convert, convert)                                                  \
    X(rueda_combine, combine)                                                  \
    X(rueda_dots, dots)                                                        \
    X(rueda_fold, fold)                                                        \
    X(rueda_move, move)

#define X(name, field)                                                         \
    static void run_##name(const union any_args *args)                         \
    {                                                                          \
        name(args->field);                                                     \
    }
KERNELS(X)
#undef X

struct kernel {
    const char *name;
    size_t bytes;
    void (*run)(const union any_args *args);
};

static const struct kernel kernels[] = {
#define X(name, field)                                                         \
    {#name, sizeof(((union any_args *)0)->field), run_##name},
    KERNELS(X)
#undef X
};
