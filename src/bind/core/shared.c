/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the ranks of a host share, as tensors. A tensor may outlive the
 * context whose segment its memory is in, and must not lead nowhere then. So it
 * sees the memory through a mapping of its own, which goes when the tensor
 * does, while operations are told where the segment has it: both are the same
 * pages.
 *
 *     segment       | ..... | memory | ..... |    submitted to operations
 *     pages                 |========|
 *     mapping               |  own   |            the tensor's data
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "bind/core/dlpack.h"

/* Which context of this process memory is from: it counts those that have been
 * shut down. */
static atomic_ulong generation;

struct shared {
    struct dl_managed managed;
    int64_t length;
    void *own;    /* the tensor's mapping */
    void *memory; /* in the segment */
    unsigned long generation;
};

void rueda_core_shared_end(void)
{
    atomic_fetch_add(&generation, 1);
}

/* By any thread, with or without Python's lock. */
static void shared_free(struct dl_managed *managed)
{
    struct shared *shared = managed->context;
    rueda_ctx *ctx = rueda_default_enter();

    rueda_default_unmap(shared->own, (size_t)shared->length);
    if (ctx != NULL) {
        /* A later context has no such memory, or other memory there. */
        if (shared->generation == atomic_load(&generation))
            rueda_free(ctx, shared->memory);
        rueda_default_leave();
    }
    free(shared);
}

/* NULL: an exception is set. */
static struct shared *shared_new(rueda_ctx *ctx, size_t bytes)
{
    struct shared *shared = calloc(1, sizeof(*shared));
    rueda_status status;

    if (shared == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    shared->generation = atomic_load(&generation);
    shared->length = (int64_t)bytes;
    status = rueda_alloc(ctx, bytes, &shared->memory);
    if (status != RUEDA_OK) {
        rueda_core_raise(status, rueda_last_error());
        goto err_free;
    }
    status = rueda_default_map(ctx, shared->memory, bytes, &shared->own);
    if (status != RUEDA_OK) {
        PyErr_SetFromErrno(PyExc_OSError);
        goto err_give;
    }
    return shared;

err_give:
    rueda_free(ctx, shared->memory);
err_free:
    free(shared);
    return NULL;
}

static PyObject *wrap(struct shared *shared)
{
    PyObject *capsule;
    PyObject *pair;

    shared->managed = (struct dl_managed){
        .tensor = {.data = shared->own,
                   .device_type = DL_ON_CPU,
                   .ndim = 1,
                   .code = DL_UINT,
                   .bits = 8,
                   .lanes = 1,
                   .shape = &shared->length},
        .context = shared,
        .deleter = shared_free,
    };
    capsule = rueda_core_dl_capsule(&shared->managed);
    if (capsule == NULL) {
        shared_free(&shared->managed);
        return NULL;
    }
    pair = Py_BuildValue("(NK)", capsule,
                         (unsigned long long)(uintptr_t)shared->memory);
    return pair;
}

/* shared(bytes) -> (a DLPack capsule, the address to submit) */
PyObject *rueda_core_shared(PyObject *module, PyObject *count)
{
    const size_t bytes = PyLong_AsSize_t(count);
    struct shared *shared;
    rueda_ctx *ctx;

    (void)module;
    if (PyErr_Occurred() != NULL)
        return NULL;
    if (bytes == 0 || bytes > INT64_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "shared memory of 1 byte or more");
        return NULL;
    }
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    shared = shared_new(ctx, bytes);
    rueda_default_leave();
    return shared != NULL ? wrap(shared) : NULL;
}
