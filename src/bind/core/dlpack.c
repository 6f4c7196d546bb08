/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tensor is, asked of its framework by one call in C, where that offers
 * one: Python's way is an attribute or a method for each detail.
 */
#include "bind/core/dlpack.h"

/* The type whose tensors are asked so, and its function; both or neither. */
static PyTypeObject *known_type;
static int (*describe)(void *tensor, struct dl_tensor *out);

PyObject *rueda_core_learn(PyObject *module, PyObject *type)
{
    PyObject *capsule =
        PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const struct dl_exchange *exchange = NULL;

    (void)module;
    if (capsule != NULL)
        exchange = PyCapsule_GetPointer(capsule, DL_EXCHANGE_NAME);
    Py_XDECREF(capsule); /* the table lasts as long as the process */
    PyErr_Clear();
    if (!PyType_Check(type) || exchange == NULL ||
        exchange->major != DL_EXCHANGE_MAJOR || exchange->describe == NULL)
        return PyBool_FromLong(0);
    Py_INCREF(type);
    Py_XDECREF((PyObject *)known_type);
    known_type = (PyTypeObject *)type;
    describe = exchange->describe;
    return PyBool_FromLong(1);
}

bool rueda_core_describe(PyObject *tensor, struct dl_tensor *out)
{
    if (Py_TYPE(tensor) != known_type)
        return false;
    if (describe(tensor, out) == 0)
        return true;
    PyErr_Clear();
    return false;
}

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
    return tensor->device_type == DL_ON_CPU && tensor->lanes == 1 &&
           tensor->code == rueda_core_dl_code(dtype) &&
           tensor->bits == 8 * rueda_dtype_size(dtype) && found == count &&
           is_row_after_row(tensor, count);
}

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
