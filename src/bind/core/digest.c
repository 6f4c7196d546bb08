/* SPDX-License-Identifier: Apache-2.0 */
/* A number that stands for the bytes of a tensor, and how often it is asked
 * for: rueda/common/agreement.py compares it over all ranks. */
#include "bind/core/core.h"

#include "base/hash.h"

/* Fewer bytes are hashed sooner than Python's lock is given and taken. */
#define LEAST_WITHOUT_LOCK ((Py_ssize_t)1 << 16)

/* Large memory is read without Python's lock. */
PyObject *rueda_core_digest(PyObject *module, PyObject *args)
{
    PyObject *address;
    PyThreadState *thread;
    const void *memory;
    long long seed;
    Py_ssize_t len;
    uint64_t hash;

    (void)module;
    if (!PyArg_ParseTuple(args, "OnL", &address, &len, &seed))
        return NULL;
    memory = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred() != NULL)
        return NULL;
    if (len < 0 || (memory == NULL && len > 0)) {
        PyErr_SetString(PyExc_ValueError, "there is no such memory");
        return NULL;
    }
    if (len < LEAST_WITHOUT_LOCK) {
        hash = rueda_hash(memory, (size_t)len, (uint64_t)seed);
    } else {
        thread = PyEval_SaveThread();
        hash = rueda_hash(memory, (size_t)len, (uint64_t)seed);
        PyEval_RestoreThread(thread);
    }
    return PyLong_FromLongLong((int64_t)hash);
}
