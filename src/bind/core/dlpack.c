/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ask a framework by one call in C what a tensor is, where the framework offers
 * such a call. Through Python it takes an attribute or a method per detail.
 */
#include "bind/core/dlpack.h"

/* The types whose tensors C can read, at most one for each framework of the
 * process. They are never removed, so a framework's table stays valid. */
#define MOST_TYPES 8

static struct {
    PyTypeObject *type;
    int (*describe)(void *tensor, struct dl_tensor *out);
    int (*work_stream)(int32_t device_type, int32_t device_id, void **out);
} known[MOST_TYPES];
static int known_count;

/* known_count if the type is not there. The table is read and written with
 * Python's lock held. */
static int index_of(const PyTypeObject *type)
{
    int i = 0;

    while (i < known_count && known[i].type != type)
        i++;
    return i;
}

/* A type that is taught again, by a framework that was loaded again, keeps its
 * place. */
PyObject *rueda_core_learn(PyObject *module, PyObject *type)
{
    PyObject *capsule =
        PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const struct dl_exchange *exchange = NULL;
    int i;

    (void)module;
    if (capsule != NULL)
        exchange = PyCapsule_GetPointer(capsule, DL_EXCHANGE_NAME);
    Py_XDECREF(capsule); /* the table lasts as long as the process */
    PyErr_Clear();
    if (!PyType_Check(type) || exchange == NULL ||
        exchange->major != DL_EXCHANGE_MAJOR || exchange->describe == NULL)
        return PyBool_FromLong(0);
    i = index_of((PyTypeObject *)type);
    if (i == MOST_TYPES)
        return PyBool_FromLong(0);
    if (i == known_count) {
        Py_INCREF(type);
        known[i].type = (PyTypeObject *)type;
        known_count++;
    }
    known[i].describe = exchange->describe;
    known[i].work_stream = exchange->work_stream;
    return PyBool_FromLong(1);
}

/* Nothing of Python runs between the look-up and the description, so the type
 * cannot go meanwhile. */
bool rueda_core_describe(PyObject *tensor, struct dl_tensor *out)
{
    const int i = index_of(Py_TYPE(tensor));

    if (i == known_count)
        return false;
    if (known[i].describe(tensor, out) == 0)
        return true;
    PyErr_Clear();
    return false;
}

/* Strides of dimensions of size 1 mean nothing. */
static bool is_row_after_row(const struct dl_tensor *tensor, long long count)
{
    int64_t next = 1;

    if (tensor->strides == NULL || count == 0)
        return true;
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != next)
            return false;
        next *= tensor->shape[i];
    }
    return true;
}

bool rueda_core_is_plain(const struct dl_tensor *tensor, rueda_dtype dtype,
                         long long count)
{
    long long found = 1;

    for (int i = 0; i < tensor->ndim; i++)
        found *= tensor->shape[i];
    return tensor->lanes == 1 && tensor->code == rueda_core_dl_code(dtype) &&
           tensor->bits == 8 * rueda_dtype_size(dtype) && found == count &&
           is_row_after_row(tensor, count);
}

bool rueda_core_locate(PyObject *tensor, const struct dl_tensor *described,
                       int *out_device, void **out_stream)
{
    const int i = index_of(Py_TYPE(tensor));

    *out_device = RUEDA_DEVICE_HOST;
    *out_stream = NULL;
    if (described->device_type == DL_ON_CPU)
        return true;
    if (described->device_type != DL_ON_CUDA || i == known_count ||
        known[i].work_stream == NULL)
        return false;
    *out_device = described->device_id;
    if (known[i].work_stream(DL_ON_CUDA, described->device_id, out_stream) == 0)
        return true;
    PyErr_Clear();
    return false;
}

#define CAPSULE_NAME "dltensor"

/* A consumer that takes a capsule gives it another name. */
static void capsule_free(PyObject *capsule)
{
    struct dl_managed *managed;

    if (!PyCapsule_IsValid(capsule, CAPSULE_NAME))
        return;
    managed = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    managed->deleter(managed);
}

PyObject *rueda_core_dl_capsule(struct dl_managed *managed)
{
    return PyCapsule_New(managed, CAPSULE_NAME, capsule_free);
}

/* The type's family; its size tells the members apart. */
uint8_t rueda_core_dl_code(rueda_dtype dtype)
{
    switch (dtype) {
    case RUEDA_BFLOAT16:
        return DL_BFLOAT;
    case RUEDA_FLOAT16:
    case RUEDA_FLOAT32:
    case RUEDA_FLOAT64:
        return DL_FLOAT;
    case RUEDA_INT8:
    case RUEDA_INT16:
    case RUEDA_INT32:
    case RUEDA_INT64:
        return DL_INT;
    case RUEDA_BOOL:
        return DL_BOOL;
    case RUEDA_UINT8:
    case RUEDA_UINT16:
        break;
    }
    return DL_UINT;
}
