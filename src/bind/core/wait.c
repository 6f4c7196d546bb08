/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for an operation, in slices, so that Ctrl-C ends it and so does a
 * shutdown() by another thread. */
#include "bind/core/core.h"

#include <limits.h>
#include <stdlib.h>

#include "os/clock.h"

/* How late Ctrl-C and a shutdown() may be noticed. */
#define SLICE_MS    100
#define WORDS_BYTES 2048

static const char closed_words[] =
    "Rueda was shut down by another thread while this one waited";

/* How long the next slice is, with so much time left that INT64_MAX means no
 * limit. Rounded up: a slice of 0 ms would not wait at all. */
static int slice_of(int64_t until_ns)
{
    int64_t left_ms;

    if (until_ns == INT64_MAX)
        return SLICE_MS;
    left_ms = (until_ns - rueda_clock_ns() + 999999) / 1000000;
    if (left_ms < 0)
        return 0;
    return left_ms < SLICE_MS ? (int)left_ms : SLICE_MS;
}

bool rueda_core_finish(rueda_ctx *ctx, rueda_handle handle,
                       struct rueda_result *result)
{
    bool is_late;

    return rueda_core_finish_in(ctx, handle, -1, result, &is_late);
}

bool rueda_core_finish_in(rueda_ctx *ctx, rueda_handle handle, int timeout_ms,
                          struct rueda_result *result, bool *out_is_late)
{
    const int64_t until_ns =
        timeout_ms < 0 ? INT64_MAX
                       : rueda_clock_ns() + timeout_ms * INT64_C(1000000);
    char words[WORDS_BYTES];
    rueda_status status;

    *out_is_late = false;
    words[0] = '\0';
    result->error = words;
    result->error_bytes = sizeof(words);
    result->is_slice = true;
    /* What has ended needs no letting go, which others might make long. */
    if (rueda_poll(ctx, handle) != RUEDA_IN_PROGRESS) {
        status = rueda_wait_for(ctx, handle, 0, result);
    } else {
        while (true) {
            const int slice_ms = slice_of(until_ns);
            PyThreadState *thread = PyEval_SaveThread();

            status = rueda_wait_for(ctx, handle, slice_ms, result);
            PyEval_RestoreThread(thread);
            /* Words: the operation has ended so, not the slice. */
            if (status != RUEDA_ERR_TIMEOUT || words[0] != '\0')
                break;
            /* Only the last slice is a short one. The engine expects this
             * thread to come back after a slice, and learns by a poll that it
             * does not. */
            if (slice_ms < SLICE_MS) {
                *out_is_late = true;
                rueda_poll(ctx, handle);
                return false;
            }
            if (!rueda_default_is(ctx)) {
                rueda_core_raise(RUEDA_ERR_CLOSED, closed_words);
                return false;
            }
            if (PyErr_CheckSignals() != 0) {
                /* This thread does not wait on. */
                rueda_poll(ctx, handle);
                return false;
            }
        }
    }
    if (status == RUEDA_OK)
        return true;
    rueda_core_raise(status, words[0] != '\0' ? words : rueda_last_error());
    return false;
}

/* The context, entered, of a call about this operation. NULL: an exception is
 * set. */
static rueda_ctx *enter_for(PyObject *number, rueda_handle *out_handle)
{
    *out_handle = PyLong_AsUnsignedLongLong(number);
    return PyErr_Occurred() != NULL ? NULL : rueda_core_enter();
}

/* A handle that is gone has ended. */
PyObject *rueda_core_poll(PyObject *module, PyObject *number)
{
    rueda_handle handle;
    rueda_ctx *ctx = enter_for(number, &handle);
    rueda_status status;

    (void)module;
    if (ctx == NULL)
        return NULL;
    status = rueda_poll(ctx, handle);
    rueda_default_leave();
    return PyBool_FromLong(status != RUEDA_IN_PROGRESS);
}

/* For operations without a result of their own. */
PyObject *rueda_core_wait(PyObject *module, PyObject *number)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    rueda_handle handle;
    rueda_ctx *ctx = enter_for(number, &handle);
    bool is_good;

    (void)module;
    if (ctx == NULL)
        return NULL;
    is_good = rueda_core_finish(ctx, handle, &result);
    rueda_default_leave();
    return is_good ? rueda_core_none() : NULL;
}

/* The arguments are a handle and milliseconds. False with *is_late: it has not
 * ended; without: an exception is set. */
static bool finish_by_args(PyObject *args, struct rueda_result *result,
                           bool *is_late)
{
    unsigned long long handle;
    int timeout_ms;
    rueda_ctx *ctx;
    bool is_good;

    *is_late = false;
    if (!PyArg_ParseTuple(args, "Ki", &handle, &timeout_ms))
        return false;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return false;
    is_good = rueda_core_finish_in(ctx, handle, timeout_ms, result, is_late);
    rueda_default_leave();
    return is_good;
}

PyObject *rueda_core_wait_until(PyObject *module, PyObject *args)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    bool is_late;
    const bool is_good = finish_by_args(args, &result, &is_late);

    (void)module;
    return is_good || is_late ? PyBool_FromLong(is_good) : NULL;
}

/* For messages: the rank that sent it, and how many rows. */
PyObject *rueda_core_wait_message(PyObject *module, PyObject *args)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    bool is_late;

    (void)module;
    if (finish_by_args(args, &result, &is_late))
        return Py_BuildValue("(in)", result.peer, (Py_ssize_t)result.rows);
    return is_late ? rueda_core_none() : NULL;
}

static PyObject *tell(const struct rueda_result *result, int members)
{
    PyObject *rows = rueda_core_tuple(result->rows_from, members);

    if (rows == NULL)
        return NULL;
    return Py_BuildValue("(niN)", (Py_ssize_t)result->rows, result->last_rank,
                         rows);
}

/* For operations whose result has a size or a rank that only the end tells. */
PyObject *rueda_core_wait_for(PyObject *module, PyObject *args)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    unsigned long long handle;
    PyObject *told = NULL;
    rueda_ctx *ctx;
    int members;

    (void)module;
    if (!PyArg_ParseTuple(args, "Ki", &handle, &members) || members < 0)
        return NULL;
    result.rows_from = calloc((size_t)members + 1, sizeof(size_t));
    if (result.rows_from == NULL)
        return PyErr_NoMemory();
    result.rows_from_count = members;
    ctx = rueda_core_enter();
    if (ctx != NULL) {
        if (rueda_core_finish(ctx, handle, &result))
            told = tell(&result, members);
        rueda_default_leave();
    }
    free(result.rows_from);
    return told;
}

/* An operation for which the program does not wait. */
struct forgotten {
    rueda_ctx *ctx;
    rueda_handle handle;
};

/* In the engine's callback, after the end: waiting takes no time, and frees the
 * handle. */
static void end_handle(void *arg, rueda_status status)
{
    struct forgotten *one = arg;

    (void)status;
    rueda_wait(one->ctx, one->handle, 0);
    free(one);
}

/* The handle is ended by a callback, when the operation has ended. */
PyObject *rueda_core_forget(PyObject *module, PyObject *number)
{
    rueda_handle handle = PyLong_AsUnsignedLongLong(number);
    struct forgotten *one;
    rueda_ctx *ctx;

    (void)module;
    if (PyErr_Occurred() != NULL)
        return NULL;
    one = malloc(sizeof(*one));
    if (one == NULL)
        return PyErr_NoMemory();
    ctx = rueda_default_enter();
    *one = (struct forgotten){ctx, handle};
    if (ctx == NULL ||
        rueda_handle_then(ctx, handle, end_handle, one) != RUEDA_OK)
        free(one); /* it is gone already */
    if (ctx != NULL)
        rueda_default_leave();
    return rueda_core_none();
}
