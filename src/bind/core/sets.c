/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets, which all ranks make together, and the timeline. */
#include "bind/core/core.h"

#include <limits.h>
#include <stdlib.h>

/* ---- Process sets ----------------------------------------------------- */

/* A tuple of ranks as a list that the caller frees; NULL with an exception. */
static int *ranks_of(PyObject *tuple, int *out_count)
{
    Py_ssize_t count = PyTuple_Size(tuple);
    int *ranks;

    if (count < 0 || count > INT_MAX)
        return NULL;
    ranks = calloc((size_t)count + 1, sizeof(*ranks));
    if (ranks == NULL)
        return (int *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        long rank = PyLong_AsLong(PyTuple_GetItem(tuple, i));

        /* A number that does not fit an int is not a rank either. */
        ranks[i] = rank < 0 || rank > INT_MAX ? -1 : (int)rank;
    }
    if (PyErr_Occurred() != NULL) {
        free(ranks);
        return NULL;
    }
    *out_count = (int)count;
    return ranks;
}

/* Wait for a change that was handed over, if it was, and leave the context. */
static bool finish(rueda_ctx *ctx, rueda_status status, rueda_handle handle,
                   struct rueda_result *result)
{
    bool is_good = status == RUEDA_OK && rueda_core_finish(ctx, handle, result);

    if (status != RUEDA_OK)
        rueda_core_raise(status, rueda_last_error());
    rueda_default_leave();
    return is_good;
}

/* Waits until all ranks have made the set. */
PyObject *rueda_core_set_create(PyObject *module, PyObject *tuple)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_handle handle = 0;
    rueda_status status;
    rueda_ctx *ctx;
    int count = 0;
    int *ranks = ranks_of(tuple, &count);

    (void)module;
    if (ranks == NULL)
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL) {
        free(ranks);
        return NULL;
    }
    status = rueda_set_create_async(ctx, ranks, count, &handle);
    free(ranks);
    return finish(ctx, status, handle, &result) ? PyLong_FromLong(result.set)
                                                : NULL;
}

/* The context, entered, of a call about this set. NULL: an exception is set. */
static rueda_ctx *enter_for(PyObject *number, int *out_set)
{
    *out_set = (int)PyLong_AsLong(number);
    return PyErr_Occurred() != NULL ? NULL : rueda_core_enter();
}

/* Waits until all ranks have come to the end of the set. */
PyObject *rueda_core_set_destroy(PyObject *module, PyObject *number)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    int set;
    rueda_ctx *ctx = enter_for(number, &set);
    rueda_handle handle = 0;
    rueda_status status;

    (void)module;
    if (ctx == NULL)
        return NULL;
    status = rueda_set_destroy_async(ctx, set, &handle);
    return finish(ctx, status, handle, &result) ? rueda_core_none() : NULL;
}

/* The number of a change of a private set, or its exception. */
static PyObject *handed_over(rueda_status status, rueda_handle handle)
{
    PyObject *result = status == RUEDA_OK
                           ? PyLong_FromUnsignedLongLong(handle)
                           : rueda_core_raise(status, rueda_last_error());

    rueda_default_leave();
    return result;
}

PyObject *rueda_core_set_open(PyObject *module, PyObject *args)
{
    rueda_handle handle = 0;
    rueda_status status;
    PyObject *tuple;
    rueda_ctx *ctx;
    int count = 0;
    int *ranks;
    int set;

    (void)module;
    if (!PyArg_ParseTuple(args, "iO!", &set, &PyTuple_Type, &tuple))
        return NULL;
    ranks = ranks_of(tuple, &count);
    if (ranks == NULL)
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL) {
        free(ranks);
        return NULL;
    }
    status = rueda_set_open_async(ctx, ranks, count, set, &handle);
    free(ranks);
    return handed_over(status, handle);
}

PyObject *rueda_core_set_close(PyObject *module, PyObject *number)
{
    int set;
    rueda_ctx *ctx = enter_for(number, &set);
    rueda_handle handle = 0;

    (void)module;
    if (ctx == NULL)
        return NULL;
    return handed_over(rueda_set_close_async(ctx, set, &handle), handle);
}

/* A list of them, as users know it. */
static PyObject *list_of(const int *ranks, int count)
{
    PyObject *list = PyList_New(count);

    for (int i = 0; list != NULL && i < count; i++) {
        PyObject *rank = PyLong_FromLong(ranks[i]);

        if (rank == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, i, rank);
    }
    return list;
}

/* None for a set that does not exist. */
PyObject *rueda_core_set_ranks(PyObject *module, PyObject *number)
{
    int set;
    rueda_ctx *ctx = enter_for(number, &set);
    PyObject *list = NULL;
    int *ranks;
    int count;

    (void)module;
    if (ctx == NULL)
        return NULL;
    count = rueda_size(ctx);
    ranks = calloc((size_t)count, sizeof(*ranks));
    if (ranks != NULL)
        count = rueda_set_ranks(ctx, set, ranks, count);
    rueda_default_leave();
    if (ranks == NULL)
        return PyErr_NoMemory();
    if (count >= 0)
        list = list_of(ranks, count);
    free(ranks);
    if (count < 0)
        return rueda_core_none();
    return list;
}

/* ---- Timeline --------------------------------------------------------- */

/* Opening a file may take long, so Python's lock is free meanwhile. */
PyObject *rueda_core_timeline_start(PyObject *module, PyObject *args)
{
    const char *path;
    int marks_cycles;
    rueda_status status;
    PyThreadState *thread;
    rueda_ctx *ctx;

    (void)module;
    if (!PyArg_ParseTuple(args, "sp", &path, &marks_cycles))
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    thread = PyEval_SaveThread();
    status =
        rueda_timeline_start(ctx, path, marks_cycles ? RUEDA_MARK_CYCLES : 0);
    rueda_default_leave();
    PyEval_RestoreThread(thread);
    /* Not a failure of the job, which elastic training would restart. */
    if (status == RUEDA_ERR_IO)
        return rueda_core_raise(RUEDA_ERR_INVALID, rueda_last_error());
    return rueda_core_answer(status);
}

/* Rank 0 waits for the records of the others without Python's lock. */
PyObject *rueda_core_timeline_stop(PyObject *module, PyObject *args)
{
    rueda_ctx *ctx = rueda_core_enter();
    PyThreadState *thread;
    rueda_status status;

    (void)module;
    (void)args;
    if (ctx == NULL)
        return NULL;
    thread = PyEval_SaveThread();
    status = rueda_timeline_stop(ctx);
    rueda_default_leave();
    PyEval_RestoreThread(thread);
    return rueda_core_answer(status);
}
