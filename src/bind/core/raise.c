/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statuses as exceptions of Python.
 *
 *     RUEDA_ERR_INVALID        ValueError
 *     RUEDA_ERR_UNSUPPORTED    NotImplementedError
 *     RUEDA_ERR_NOMEM          MemoryError
 *     RUEDA_ERR_FORKED         RuntimeError
 *     all others               HorovodInternalError
 *
 * The last is what elastic training catches to start again with the ranks that
 * are left. So a failure that would come again must not be one of "all others":
 * callers pass RUEDA_ERR_INVALID instead where they know that.
 */
#include "bind/core/core.h"

#include <string.h>

/* Words that were too long may have been cut within a character. */
static void set_error(PyObject *type, const char *words)
{
    PyObject *text =
        PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");

    if (text != NULL)
        PyErr_SetObject(type, text);
    Py_XDECREF(text);
}

/* A class of the package's own. Errors are rare, so it is looked up each time.
 */
static void raise_ours(const char *name, const char *words)
{
    PyObject *module = PyImport_ImportModule("rueda.common.exceptions");
    PyObject *type = NULL;

    if (module != NULL)
        type = PyObject_GetAttrString(module, name);
    if (type != NULL)
        set_error(type, words);
    Py_XDECREF(type);
    Py_XDECREF(module);
}

/* The class that means a failure of the job. */
static void raise_internal(const char *words)
{
    raise_ours("HorovodInternalError", words);
}

/* Scripts match the words. */
PyObject *rueda_core_raise_early(void)
{
    raise_ours("NotInitializedError",
               "Rueda has not been initialized; use hvd.init().");
    return NULL;
}

/* Statuses become the exceptions that Python programs expect, or
 * HorovodInternalError. */
PyObject *rueda_core_raise(rueda_status status, const char *words)
{
    if (words == NULL || words[0] == '\0')
        words = rueda_status_str(status);
    if (status == RUEDA_ERR_FORKED)
        words = "this process was forked from a rank, whose job it does not "
                "belong to: call init() in the child, or start workers (of a "
                "DataLoader, say) before init(), or by \"spawn\"";
    switch (status) {
    case RUEDA_ERR_INVALID:
        set_error(PyExc_ValueError, words);
        break;
    case RUEDA_ERR_UNSUPPORTED:
        set_error(PyExc_NotImplementedError, words);
        break;
    case RUEDA_ERR_NOMEM:
        set_error(PyExc_MemoryError, words);
        break;
    case RUEDA_ERR_FORKED: /* starting again would not help a worker */
        set_error(PyExc_RuntimeError, words);
        break;
    default:
        raise_internal(words);
        break;
    }
    return NULL;
}

PyObject *rueda_core_answer(rueda_status status)
{
    return status == RUEDA_OK ? rueda_core_none()
                              : rueda_core_raise(status, rueda_last_error());
}

rueda_ctx *rueda_core_enter(void)
{
    rueda_ctx *ctx = rueda_default_enter();

    if (ctx == NULL)
        rueda_core_raise_early();
    return ctx;
}
