/* SPDX-License-Identifier: Apache-2.0 */
/* init and shutdown, the numbers of this rank, and reporting a failure. */
#include "bind/core/core.h"

#include <string.h>

#define WORDS_BYTES 2048

/* ---- init ---------------------------------------------------------------- */

/* A function of the caller's that passes rank 0's bytes on, and what it raised,
 * which is kept until the lock is ours for good. */
struct exchange {
    PyObject *function;
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
};

/* The answer has to be as long as the question. */
static int copy_answer(PyObject *answer, void *bytes, size_t len)
{
    char *chars;
    Py_ssize_t count;

    if (answer == NULL || PyBytes_AsStringAndSize(answer, &chars, &count) != 0)
        return -1;
    if ((size_t)count != len) {
        PyErr_Format(PyExc_ValueError, "the exchange returned %zd bytes of %zu",
                     count, len);
        return -1;
    }
    memcpy(bytes, chars, len);
    return 0;
}

/* The thread of init(), which lets go of Python's lock while it waits. */
struct waiter {
    PyThreadState *thread;
    bool is_interrupted; /* and an exception is set */
};

/* Signals are handled by Python's own code, which needs the lock: it is taken
 * for a moment in each slice of the wait. */
static bool goes_on(void *arg)
{
    struct waiter *waiter = arg;

    PyEval_RestoreThread(waiter->thread);
    waiter->is_interrupted = PyErr_CheckSignals() != 0;
    waiter->thread = PyEval_SaveThread();
    return !waiter->is_interrupted;
}

/* On the thread of init(), which has let go of Python's lock. */
static int exchange_bytes(void *arg, void *bytes, size_t len)
{
    struct exchange *exchange = arg;
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *answer = PyObject_CallFunction(
        exchange->function, "y#", (const char *)bytes, (Py_ssize_t)len);
    int failed = copy_answer(answer, bytes, len);

    Py_XDECREF(answer);
    if (failed != 0)
        PyErr_Fetch(&exchange->type, &exchange->value, &exchange->traceback);
    PyGILState_Release(lock);
    return failed;
}

/* The library starts on a thread of its own, so Ctrl-C reaches the caller while
 * it waits. Of several failures one is raised: Ctrl-C before what the exchange
 * has raised, and that before the library's own. */
PyObject *rueda_core_init(PyObject *module, PyObject *args)
{
    struct rueda_init_args init = RUEDA_INIT_ARGS_INIT;
    struct exchange exchange = {NULL};
    struct waiter waiter = {NULL, false};
    char words[WORDS_BYTES] = "";
    rueda_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "iiizOz", &init.rank, &init.size,
                          &init.timeout_ms, &init.store, &exchange.function,
                          &init.process_sets))
        return NULL;
    if (exchange.function != Py_None) {
        init.exchange = exchange_bytes;
        init.exchange_arg = &exchange;
    }
    init.error = words;
    init.error_bytes = sizeof(words);

    waiter.thread = PyEval_SaveThread();
    status = rueda_default_open(&init, goes_on, &waiter);
    PyEval_RestoreThread(waiter.thread);

    if (waiter.is_interrupted) {
        Py_XDECREF(exchange.type);
        Py_XDECREF(exchange.value);
        Py_XDECREF(exchange.traceback);
        return NULL;
    }
    if (status == RUEDA_OK)
        return rueda_core_none();
    if (exchange.type != NULL) {
        PyErr_Restore(exchange.type, exchange.value, exchange.traceback);
        return NULL;
    }
    /* Whatever it is, the caller has to change something. */
    return rueda_core_raise(
        RUEDA_ERR_INVALID, words[0] != '\0' ? words : rueda_status_str(status));
}

/* Shared memory is told first: tensors that are freed later must not give
 * memory back to the next context, which may have other memory at that place.
 */
PyObject *rueda_core_shutdown(PyObject *module, PyObject *args)
{
    PyThreadState *thread = PyEval_SaveThread();

    (void)module;
    (void)args;
    rueda_core_shared_end();
    rueda_default_close();
    PyEval_RestoreThread(thread);
    return rueda_core_none();
}

PyObject *rueda_core_is_initialized(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    if (rueda_default_enter() == NULL)
        return PyBool_FromLong(0);
    rueda_default_leave();
    return PyBool_FromLong(1);
}

/* ---- Numbers of this rank ------------------------------------------------ */

/* A number that the default context knows. */
static PyObject *tell(PyObject *module, PyObject *args,
                      int (*ask)(const rueda_ctx *))
{
    rueda_ctx *ctx = rueda_default_enter();
    int answer;

    (void)module;
    (void)args;
    if (ctx == NULL)
        return rueda_core_raise_early();
    answer = ask(ctx);
    rueda_default_leave();
    return PyLong_FromLong(answer);
}

/* A function of the module that answers one such question. What clang-tidy
 * takes for a product is a type. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define ANSWER(name, ask)                                                      \
    PyObject *rueda_core_##name(PyObject *module, PyObject *args)              \
    {                                                                          \
        return tell(module, args, (ask));                                      \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
ANSWER(rank, rueda_rank)
ANSWER(size, rueda_size)
ANSWER(local_rank, rueda_local_rank)
ANSWER(local_size, rueda_local_size)
ANSWER(cross_rank, rueda_cross_rank)
ANSWER(cross_size, rueda_cross_size)
ANSWER(check_every, rueda_default_check_every)
ANSWER(has_timeline, rueda_default_has_timeline)
ANSWER(has_dynamic_sets, rueda_default_has_dynamic_sets)

/* Without a context there is nothing to change. Waits only while the ranks
 * change. */
PyObject *rueda_core_step(PyObject *module, PyObject *args)
{
    rueda_ctx *ctx = rueda_default_enter();
    PyThreadState *thread;
    rueda_status status;

    (void)module;
    (void)args;
    if (ctx == NULL)
        return rueda_core_none();
    thread = PyEval_SaveThread();
    status = rueda_step(ctx);
    PyEval_RestoreThread(thread);
    rueda_default_leave();
    return status == RUEDA_OK ? rueda_core_none()
                              : rueda_core_raise(status, rueda_last_error());
}

/* False without a context: there is nothing to repair. */
PyObject *rueda_core_repairs(PyObject *module, PyObject *args)
{
    rueda_ctx *ctx = rueda_default_enter();
    bool is_so = false;

    (void)module;
    (void)args;
    if (ctx != NULL) {
        is_so = rueda_default_repairs(ctx) != 0;
        rueda_default_leave();
    }
    return PyBool_FromLong(is_so);
}

/* True without a context, as a single process is. */
PyObject *rueda_core_is_homogeneous(PyObject *module, PyObject *args)
{
    rueda_ctx *ctx = rueda_default_enter();
    bool is_so = true;

    (void)module;
    (void)args;
    if (ctx != NULL) {
        is_so = rueda_is_homogeneous(ctx);
        rueda_default_leave();
    }
    return PyBool_FromLong(is_so);
}

/* ---- Failure ---------------------------------------------------------- */

/* The words may hold anything that Python can print. */
PyObject *rueda_core_fail(PyObject *module, PyObject *why)
{
    PyObject *bytes = PyUnicode_AsEncodedString(why, "utf-8", "replace");
    bool is_first = true;
    rueda_ctx *ctx;

    (void)module;
    if (bytes == NULL)
        return NULL;
    ctx = rueda_default_enter();
    if (ctx != NULL) {
        is_first = rueda_error(ctx)[0] == '\0';
        rueda_fail(ctx, PyBytes_AsString(bytes));
        rueda_default_leave();
    }
    Py_DECREF(bytes);
    return PyBool_FromLong(is_first);
}

/* ---- The log ---------------------------------------------------------- */

PyObject *rueda_core_log_debug(PyObject *module, PyObject *words)
{
    PyObject *bytes = PyUnicode_AsEncodedString(words, "utf-8", "replace");
    rueda_ctx *ctx;

    (void)module;
    if (bytes == NULL)
        return NULL;
    ctx = rueda_default_enter();
    if (ctx != NULL) {
        rueda_default_debug(ctx, PyBytes_AsString(bytes));
        rueda_default_leave();
    }
    Py_DECREF(bytes);
    return rueda_core_none();
}
