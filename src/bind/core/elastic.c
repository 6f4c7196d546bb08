/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of this process in an elastic job, and changes of its hosts. */
#include "bind/core/core.h"

#include "job/rendezvous.h"
#include "os/sigterm.h"

PyObject *rueda_core_elastic_term(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    return PyLong_FromUnsignedLong(rueda_rendezvous_term());
}

PyObject *rueda_core_elastic_is_refused(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    return PyBool_FromLong(rueda_rendezvous_is_refused());
}

PyObject *rueda_core_elastic_set_progress(PyObject *module, PyObject *number)
{
    const unsigned long long progress = PyLong_AsUnsignedLongLong(number);

    (void)module;
    if (PyErr_Occurred() != NULL)
        return NULL;
    rueda_rendezvous_set_progress(progress);
    return rueda_core_none();
}

PyObject *rueda_core_elastic_change(PyObject *module, PyObject *args)
{
    struct rueda_rendezvous_change change;
    PyThreadState *thread;
    rueda_status status;
    int timeout_ms;

    (void)module;
    if (!PyArg_ParseTuple(args, "i", &timeout_ms))
        return NULL;
    thread = PyEval_SaveThread();
    status = rueda_rendezvous_wait(timeout_ms, &change);
    PyEval_RestoreThread(thread);
    if (status == RUEDA_OK)
        return Py_BuildValue("(II)", (unsigned)change.term,
                             (unsigned)change.flags);
    if (status == RUEDA_ERR_TIMEOUT)
        return rueda_core_none();
    return rueda_core_raise(status, "the launcher's store cannot be reached");
}

PyObject *rueda_core_elastic_leave(PyObject *module, PyObject *args)
{
    PyThreadState *thread;
    rueda_status status;

    (void)module;
    (void)args;
    thread = PyEval_SaveThread();
    status = rueda_rendezvous_leave();
    PyEval_RestoreThread(thread);
    if (status == RUEDA_OK)
        return rueda_core_none();
    return rueda_core_raise(status, "the launcher's store cannot be reached");
}

PyObject *rueda_core_elastic_add(PyObject *module, PyObject *args)
{
    PyThreadState *thread;
    rueda_status status;
    const char *key;
    long long count;
    int64_t sum;

    (void)module;
    if (!PyArg_ParseTuple(args, "sL", &key, &count))
        return NULL;
    thread = PyEval_SaveThread();
    status = rueda_rendezvous_add(key, count, &sum);
    PyEval_RestoreThread(thread);
    if (status == RUEDA_OK)
        return PyLong_FromLongLong(sum);
    return rueda_core_raise(status, "the launcher's store does not count");
}

PyObject *rueda_core_elastic_notice(PyObject *module, PyObject *agent)
{
    const long ender = PyLong_AsLong(agent);
    rueda_status status;
    int bell = -1;

    (void)module;
    if (PyErr_Occurred() != NULL)
        return NULL;
    status = rueda_sigterm_open((int)ender, &bell);
    if (status == RUEDA_OK || status == RUEDA_ERR_INVALID)
        return PyLong_FromLong(bell);
    return rueda_core_raise(status, "no descriptor for a notice");
}
