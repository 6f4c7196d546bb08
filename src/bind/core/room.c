/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results whose size is known only when all ranks have met. The engine asks for
 * memory on its own thread, where Python's lock must not be waited for; so that
 * is plain memory, which becomes a tensor later, by DLPack, without a copy.
 * Freeing it takes neither the lock nor the context, and may happen anywhere.
 */
#include "bind/core/core.h"

#include <stdlib.h>

#define ROOM_NAME "rueda.room"

struct room {
    void *data; /* or NULL */
    size_t rows;
};

#define ALIGNMENT 64

void *rueda_core_room_alloc(void *arg, size_t rows, size_t bytes)
{
    struct room *room = arg;

    if (bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    free(room->data);
    bytes = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    room->data = aligned_alloc(ALIGNMENT, bytes);
    room->rows = rows;
    return room->data;
}

void *rueda_core_room_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, ROOM_NAME);
}

static void room_free(PyObject *capsule)
{
    struct room *room = PyCapsule_GetPointer(capsule, ROOM_NAME);

    if (room == NULL)
        return;
    free(room->data);
    free(room);
}

PyObject *rueda_core_room(PyObject *module, PyObject *args)
{
    struct room *room = calloc(1, sizeof(*room));
    PyObject *capsule;

    (void)module;
    (void)args;
    if (room == NULL)
        return PyErr_NoMemory();
    capsule = PyCapsule_New(room, ROOM_NAME, room_free);
    if (capsule == NULL)
        free(room);
    return capsule;
}

/* ---- DLPack ---------------------------------------------------------------
 */

/* The interface by which frameworks pass tensors on, as it is laid out in
 * memory. */
enum {
    ON_CPU = 1
};
enum {
    CODE_INT = 0,
    CODE_UINT = 1,
    CODE_FLOAT = 2,
    CODE_BFLOAT = 4
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

struct pack {
    struct dl_managed managed;
    int64_t shape[RUEDA_MAX_DIMS];
};

#define PACK_NAME "dltensor"

static void pack_free(struct dl_managed *managed)
{
    struct pack *pack = managed->context;

    free(managed->tensor.data);
    free(pack);
}

/* A capsule that somebody has taken has another name. */
static void capsule_free(PyObject *capsule)
{
    struct dl_managed *managed;

    if (!PyCapsule_IsValid(capsule, PACK_NAME))
        return;
    managed = PyCapsule_GetPointer(capsule, PACK_NAME);
    managed->deleter(managed);
}

/* Booleans travel as bytes: not every framework's DLPack knows them. */
static uint8_t code_of(rueda_dtype dtype)
{
    switch (dtype) {
    case RUEDA_BFLOAT16:
        return CODE_BFLOAT;
    case RUEDA_FLOAT16:
    case RUEDA_FLOAT32:
    case RUEDA_FLOAT64:
        return CODE_FLOAT;
    case RUEDA_INT8:
    case RUEDA_INT16:
    case RUEDA_INT32:
    case RUEDA_INT64:
        return CODE_INT;
    case RUEDA_UINT8:
    case RUEDA_UINT16:
    case RUEDA_BOOL:
        break;
    }
    return CODE_UINT;
}

/* Takes the memory of the room, where that works out. */
static PyObject *wrap(struct room *room, rueda_dtype dtype, const size_t *shape,
                      int dims)
{
    struct pack *pack = calloc(1, sizeof(*pack));
    PyObject *capsule;

    if (pack == NULL)
        return PyErr_NoMemory();
    for (int i = 0; i < dims; i++)
        pack->shape[i] = (int64_t)(i == 0 ? room->rows : shape[i]);
    pack->managed = (struct dl_managed){
        .tensor =
            {
                .data = room->data,
                .device_type = ON_CPU,
                .ndim = dims,
                .code = code_of(dtype),
                .bits = (uint8_t)(8 * rueda_dtype_size(dtype)),
                .lanes = 1,
                .shape = pack->shape,
            },
        .context = pack,
        .deleter = pack_free,
    };
    capsule = PyCapsule_New(&pack->managed, PACK_NAME, capsule_free);
    if (capsule == NULL)
        free(pack);
    else
        room->data = NULL;
    return capsule;
}

PyObject *rueda_core_take(PyObject *module, PyObject *args)
{
    size_t shape[RUEDA_MAX_DIMS];
    PyObject *capsule;
    PyObject *tuple;
    struct room *room;
    int dtype;
    int dims;

    (void)module;
    if (!PyArg_ParseTuple(args, "OiO", &capsule, &dtype, &tuple))
        return NULL;
    room = PyCapsule_GetPointer(capsule, ROOM_NAME);
    if (room == NULL)
        return NULL;
    dims = rueda_core_sizes(tuple, shape, RUEDA_MAX_DIMS);
    if (dims < 0)
        return NULL;
    if (room->data == NULL || dims == 0)
        return rueda_core_none();
    return wrap(room, (rueda_dtype)dtype, shape, dims);
}
