/* SPDX-License-Identifier: Apache-2.0 */
#include "bind/core/core.h"

/* The class that means a failure of the job. Errors are rare, so it is looked
 * up each time. */
static void raise_internal(const char *words)
{
    PyObject *module = PyImport_ImportModule("rueda.common.exceptions");
    PyObject *type = NULL;

    if (module != NULL)
        type = PyObject_GetAttrString(module, "HorovodInternalError");
    if (type != NULL)
        PyErr_SetString(type, words);
    Py_XDECREF(type);
    Py_XDECREF(module);
}

PyObject *rueda_core_raise(rueda_status status, const char *words)
{
    if (words == NULL || words[0] == '\0')
        words = rueda_status_str(status);
    switch (status) {
    case RUEDA_ERR_INVALID:
        PyErr_SetString(PyExc_ValueError, words);
        break;
    case RUEDA_ERR_UNSUPPORTED:
        PyErr_SetString(PyExc_NotImplementedError, words);
        break;
    case RUEDA_ERR_NOMEM:
        PyErr_SetString(PyExc_MemoryError, words);
        break;
    case RUEDA_ERR_FORKED: /* starting again would not help a worker */
        PyErr_SetString(PyExc_RuntimeError, words);
        break;
    default:
        raise_internal(words);
        break;
    }
    return NULL;
}

rueda_ctx *rueda_core_enter(void)
{
    rueda_ctx *ctx = rueda_default_enter();

    if (ctx == NULL)
        raise_internal("Rueda has not been initialized; call init() first");
    return ctx;
}
