/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results whose size is known only when all ranks have met. The engine asks for
 * memory on its own thread, where Python's lock must not be waited for; so that
 * is plain memory, which becomes a tensor later, by DLPack, without a copy.
 * Freeing it takes neither the lock nor the context, and may happen anywhere.
 *
 *     room()                  no memory yet
 *     submit(room=...)        the engine calls rueda_core_room_alloc()
 *     wait_for()              the number of rows is in the room
 *     take(room, ...)         a capsule owns the memory, the room is empty
 */
#include "bind/core/dlpack.h"

#include <stdlib.h>

#define ROOM_NAME "rueda.room"

struct room {
    void *data; /* or NULL */
    size_t rows;
};

#define ALIGNMENT 64

/* A room that is used again gives up what an earlier operation has made. The
 * size is rounded up past a whole unit, so that a result of no bytes has an
 * address too. */
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

/* A result of a size that is known only later is allocated by the library
 * through this object. */
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

/* ---- DLPack ----------------------------------------------------------- */

/* The shape that DLPack's struct points to has to live as long as it does. */
struct pack {
    struct dl_managed managed;
    int64_t shape[RUEDA_MAX_DIMS];
};

static void pack_free(struct dl_managed *managed)
{
    struct pack *pack = managed->context;

    free(managed->tensor.data);
    free(pack);
}

/* Takes the memory of the room, where that works out. */
static PyObject *wrap(struct room *room, rueda_dtype dtype, const size_t *shape,
                      int dims)
{
    struct pack *pack = calloc(1, sizeof(*pack));
    PyObject *capsule;

    if (pack == NULL)
        return PyErr_NoMemory();
    /* Not every framework's DLPack knows booleans. */
    if (dtype == RUEDA_BOOL)
        dtype = RUEDA_UINT8;
    for (int i = 0; i < dims; i++)
        pack->shape[i] = (int64_t)(i == 0 ? room->rows : shape[i]);
    pack->managed = (struct dl_managed){
        .tensor =
            {
                .data = room->data,
                .device_type = DL_ON_CPU,
                .ndim = dims,
                .code = rueda_core_dl_code(dtype),
                .bits = (uint8_t)(8 * rueda_dtype_size(dtype)),
                .lanes = 1,
                .shape = pack->shape,
            },
        .context = pack,
        .deleter = pack_free,
    };
    capsule = rueda_core_dl_capsule(&pack->managed);
    if (capsule == NULL)
        free(pack);
    else
        room->data = NULL;
    return capsule;
}

/* Hand the memory over to the framework as a DLPack capsule, without a copy. */
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
