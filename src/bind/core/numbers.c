/* SPDX-License-Identifier: Apache-2.0 */
/* Tuples of sizes, to C and back. */
#include "bind/core/core.h"

int rueda_core_sizes(PyObject *tuple, size_t *out, int room)
{
    Py_ssize_t count;

    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "a tuple of integers is expected");
        return -1;
    }
    count = PyTuple_Size(tuple);
    if (count > room) {
        PyErr_Format(PyExc_ValueError, "%zd numbers; there may be %d", count,
                     room);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = PyLong_AsSize_t(PyTuple_GetItem(tuple, i));
        if (out[i] == (size_t)-1 && PyErr_Occurred() != NULL)
            return -1;
    }
    return (int)count;
}

PyObject *rueda_core_tuple(const size_t *numbers, int count)
{
    PyObject *tuple = PyTuple_New(count);

    for (int i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromSize_t(numbers[i]);

        if (number == NULL) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SetItem(tuple, i, number);
    }
    return tuple;
}
