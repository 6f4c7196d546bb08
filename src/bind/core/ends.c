/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends: one thread of Python's hears of the ends of many operations. The
 * engine's callback appends the handle of an operation that has ended to a
 * list, and needs no lock of Python's for that; the thread takes what is in the
 * list, or sleeps until something is.
 *
 *     engine                        list                     Python's thread
 *     append() on an end  ------->  first ... last  ------>  next_ends()
 *                                   is_rung         ------>  next_ends() -> []
 *
 * The list belongs to its capsule and to all operations that are to tell it,
 * whichever is gone last (`owners`). Handles in the list are still there: the
 * thread waits for each, which takes no time any more.
 */
#include "bind/core/core.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/clock.h"

#define ENDS_NAME "rueda.ends"

struct end {
    struct end *next;
    struct ends *ends;
    rueda_handle handle;
};

struct ends {
    atomic_int owners;
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct end *first;
    struct end *last;
    bool is_rung; /* the thread is to return, also without an end */
};

static void let_go(struct ends *ends)
{
    if (atomic_fetch_sub(&ends->owners, 1) > 1)
        return;
    while (ends->first != NULL) {
        struct end *next = ends->first->next;

        free(ends->first);
        ends->first = next;
    }
    pthread_cond_destroy(&ends->came);
    pthread_mutex_destroy(&ends->lock);
    free(ends);
}

static void free_ends(PyObject *capsule)
{
    struct ends *ends = PyCapsule_GetPointer(capsule, ENDS_NAME);

    if (ends != NULL)
        let_go(ends);
}

PyObject *rueda_core_ends(PyObject *module, PyObject *args)
{
    struct ends *ends = calloc(1, sizeof(*ends));
    pthread_condattr_t attr;
    PyObject *capsule;

    (void)module;
    (void)args;
    if (ends == NULL)
        return PyErr_NoMemory();
    atomic_init(&ends->owners, 1);
    pthread_mutex_init(&ends->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ends->came, &attr);
    pthread_condattr_destroy(&attr);
    capsule = PyCapsule_New(ends, ENDS_NAME, free_ends);
    if (capsule == NULL)
        let_go(ends);
    return capsule;
}

/* ---- From the engine -------------------------------------------------- */

/* In the engine's callback, on whichever thread delivers. That thread must not
 * wait, so all threads hold the lock for a few instructions only. */
static void append(void *arg, rueda_status status)
{
    struct end *end = arg;
    struct ends *ends = end->ends;

    (void)status;
    end->next = NULL;
    pthread_mutex_lock(&ends->lock);
    if (ends->first == NULL)
        ends->first = end;
    else
        ends->last->next = end;
    ends->last = end;
    pthread_cond_signal(&ends->came);
    pthread_mutex_unlock(&ends->lock);
    let_go(ends);
}

PyObject *rueda_core_tell_end(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    struct ends *ends = NULL;
    PyObject *capsule;
    rueda_status status;
    struct end *end;
    rueda_ctx *ctx;

    (void)module;
    if (PyArg_ParseTuple(args, "OK", &capsule, &handle))
        ends = PyCapsule_GetPointer(capsule, ENDS_NAME);
    if (ends == NULL)
        return NULL;
    end = malloc(sizeof(*end));
    if (end == NULL)
        return PyErr_NoMemory();
    ctx = rueda_core_enter();
    if (ctx == NULL) {
        free(end);
        return NULL;
    }
    *end = (struct end){.ends = ends, .handle = handle};
    atomic_fetch_add(&ends->owners, 1);
    status = rueda_handle_then(ctx, handle, append, end);
    rueda_default_leave();
    if (status == RUEDA_OK)
        return rueda_core_none();
    free(end);
    let_go(ends);
    return rueda_core_answer(status);
}

/* ---- To the thread ---------------------------------------------------- */

/* All that is in the list, when something is, or NULL. */
static struct end *take_all(struct ends *ends, int timeout_ms)
{
    const int64_t until_ns = rueda_clock_ns() + timeout_ms * INT64_C(1000000);
    const struct timespec until = {.tv_sec = until_ns / 1000000000,
                                   .tv_nsec = until_ns % 1000000000};
    struct end *first;
    int late = 0;

    pthread_mutex_lock(&ends->lock);
    while (ends->first == NULL && !ends->is_rung && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&ends->came, &ends->lock, &until);
    first = ends->first;
    ends->first = NULL;
    ends->is_rung = false;
    pthread_mutex_unlock(&ends->lock);
    return first;
}

PyObject *rueda_core_next_ends(PyObject *module, PyObject *args)
{
    struct ends *ends = NULL;
    PyThreadState *thread;
    PyObject *capsule;
    struct end *end;
    PyObject *list;
    int timeout_ms;

    (void)module;
    if (PyArg_ParseTuple(args, "Oi", &capsule, &timeout_ms))
        ends = PyCapsule_GetPointer(capsule, ENDS_NAME);
    if (ends == NULL)
        return NULL;
    thread = PyEval_SaveThread();
    end = take_all(ends, timeout_ms);
    PyEval_RestoreThread(thread);
    list = PyList_New(0);
    while (end != NULL) {
        struct end *next = end->next;
        PyObject *handle = PyLong_FromUnsignedLongLong(end->handle);

        if (list != NULL &&
            (handle == NULL || PyList_Append(list, handle) != 0))
            Py_CLEAR(list);
        Py_XDECREF(handle);
        free(end);
        end = next;
    }
    return list;
}

PyObject *rueda_core_ring_ends(PyObject *module, PyObject *capsule)
{
    struct ends *ends = PyCapsule_GetPointer(capsule, ENDS_NAME);

    (void)module;
    if (ends == NULL)
        return NULL;
    pthread_mutex_lock(&ends->lock);
    ends->is_rung = true;
    pthread_cond_signal(&ends->came);
    pthread_mutex_unlock(&ends->lock);
    return rueda_core_none();
}
