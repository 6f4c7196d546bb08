/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seals of objects that ranks send each other (api/pickle.h). Memory comes as a
 * number, as for submit(), and has to stay for the call.
 */
#include "bind/core/core.h"

#include "api/pickle.h"

/* The fields that every function begins with: purpose, name, set. */
#define ID_FORMAT "Isi"

/* Each object has a number of its own, so that an old one cannot be sent again.
 */
PyObject *rueda_core_object_count(PyObject *module, PyObject *args)
{
    struct rueda_object_id id = {0};
    unsigned int purpose;
    uint64_t count;
    rueda_ctx *ctx;

    (void)module;
    if (!PyArg_ParseTuple(args, ID_FORMAT, &purpose, &id.name, &id.set))
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    id.purpose = purpose;
    count = rueda_pickle_count(ctx, &id);
    rueda_default_leave();
    return PyLong_FromUnsignedLongLong(count);
}

/* Proves the bytes without Python's lock; the caller keeps them. */
PyObject *rueda_core_seal_object(PyObject *module, PyObject *args)
{
    unsigned char head[RUEDA_OBJECT_HEAD_BYTES];
    struct rueda_object_id id = {0};
    unsigned long long sequence;
    PyObject *number;
    unsigned int purpose;
    PyThreadState *thread;
    rueda_status status;
    const void *at;
    Py_ssize_t len;
    rueda_ctx *ctx;

    (void)module;
    if (!PyArg_ParseTuple(args, ID_FORMAT "KOn", &purpose, &id.name, &id.set,
                          &sequence, &number, &len))
        return NULL;
    at = PyLong_AsVoidPtr(number);
    if (PyErr_Occurred() != NULL)
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    id.purpose = purpose;
    id.sequence = sequence;
    id.sender = rueda_rank(ctx);
    thread = PyEval_SaveThread();
    status = rueda_pickle_make_head(ctx, &id, at, (size_t)len, head);
    rueda_default_leave();
    PyEval_RestoreThread(thread);
    if (status != RUEDA_OK)
        return rueda_core_raise(status, rueda_last_error());
    return PyBytes_FromStringAndSize((const char *)head, sizeof(head));
}

/* What both functions of a receiver take. */
struct sealed {
    struct rueda_object_id id;
    const unsigned char *head;
};

/* Take the fields that both have. False: an exception is set. */
static bool sealed_set(struct sealed *out, unsigned int purpose,
                       unsigned long long sequence, const char *head,
                       Py_ssize_t head_len)
{
    if (head_len != RUEDA_OBJECT_HEAD_BYTES) {
        PyErr_Format(PyExc_ValueError, "the head of an object has %d bytes",
                     RUEDA_OBJECT_HEAD_BYTES);
        return false;
    }
    out->id.purpose = purpose;
    out->id.sequence = sequence;
    out->head = (const unsigned char *)head;
    return true;
}

/* Checks the head before any byte of the object is received. */
PyObject *rueda_core_object_length(PyObject *module, PyObject *args)
{
    struct sealed sealed = {.head = NULL};
    unsigned long long sequence;
    unsigned int purpose;
    rueda_status status;
    Py_ssize_t head_len;
    const char *head;
    uint64_t len = 0;
    rueda_ctx *ctx;

    (void)module;
    if (!PyArg_ParseTuple(args, ID_FORMAT "Kiy#", &purpose, &sealed.id.name,
                          &sealed.id.set, &sequence, &sealed.id.sender, &head,
                          &head_len) ||
        !sealed_set(&sealed, purpose, sequence, head, head_len))
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    status = rueda_pickle_read_head(ctx, &sealed.id, sealed.head, &len);
    rueda_default_leave();
    if (status != RUEDA_OK)
        return rueda_core_raise(status, rueda_last_error());
    return PyLong_FromUnsignedLongLong(len);
}

/* Checks the bytes before they are unpickled. */
PyObject *rueda_core_open_object(PyObject *module, PyObject *args)
{
    struct sealed sealed = {.head = NULL};
    unsigned long long sequence;
    PyObject *number;
    unsigned int purpose;
    PyThreadState *thread;
    rueda_status status;
    Py_ssize_t head_len;
    const char *head;
    const void *at;
    Py_ssize_t len;
    rueda_ctx *ctx;

    (void)module;
    if (!PyArg_ParseTuple(args, ID_FORMAT "Kiy#On", &purpose, &sealed.id.name,
                          &sealed.id.set, &sequence, &sealed.id.sender, &head,
                          &head_len, &number, &len) ||
        !sealed_set(&sealed, purpose, sequence, head, head_len))
        return NULL;
    at = PyLong_AsVoidPtr(number);
    if (PyErr_Occurred() != NULL)
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    thread = PyEval_SaveThread();
    status = rueda_pickle_accept(ctx, &sealed.id, sealed.head, at, (size_t)len);
    rueda_default_leave();
    PyEval_RestoreThread(thread);
    return rueda_core_answer(status);
}
