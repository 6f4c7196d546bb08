/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DLPack, the interface by which frameworks pass tensors on, as it is laid out
 * in memory (version 1, https://dmlc.github.io/dlpack).
 */
#ifndef RUEDA_BIND_CORE_DLPACK_H
#define RUEDA_BIND_CORE_DLPACK_H

#include "bind/core/core.h"

enum {
    DL_ON_CPU = 1,
    DL_ON_CUDA = 2
};

enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_BOOL = 6
};

struct dl_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* NULL: rows one after another */
    uint64_t byte_offset;
};

struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};

/* What a type of tensors has as __dlpack_c_exchange_api__, since 1.3. */
struct dl_exchange {
    uint32_t major;
    uint32_t minor;
    const void *older;
    void (*others[3])(void);
    /* Describe a tensor of that type, without a reference to it; may be NULL.
     * Not 0: an exception is set. */
    int (*describe)(void *tensor, struct dl_tensor *out);
    /* The stream that now writes tensors of this device; may be NULL. Not 0: an
     * exception is set. */
    int (*work_stream)(int32_t device_type, int32_t device_id, void **out);
};

#define DL_EXCHANGE_NAME  "dlpack_exchange_api"
#define DL_EXCHANGE_MAJOR 1

/* The code of a type; its bits are those of the type. */
uint8_t rueda_core_dl_code(rueda_dtype dtype);

/* A capsule that frees what it holds unless a consumer has taken it. NULL: an
 * exception is set, and the caller still owns it. */
PyObject *rueda_core_dl_capsule(struct dl_managed *managed);

/*
 * Describe a tensor whose type rueda_core_learn() knows, for as long as nothing
 * of Python runs. False, with no exception, for all others.
 */
bool rueda_core_describe(PyObject *tensor, struct dl_tensor *out);

/* Is it row after row, with `count` numbers of this type? */
bool rueda_core_is_plain(const struct dl_tensor *tensor, rueda_dtype dtype,
                         long long count);

/* Where a tensor is that was described like this, as struct rueda_submit_args
 * says it; false, with no exception, if it is nowhere that the library reaches.
 */
bool rueda_core_locate(PyObject *tensor, const struct dl_tensor *described,
                       int *out_device, void **out_stream);

#endif /* RUEDA_BIND_CORE_DLPACK_H */
