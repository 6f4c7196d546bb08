/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Envelopes (auth/envelope.h) for exchanges that Python makes, such as that
 * through torch's store: they need no job, as they help to make one.
 */
#include "bind/core/core.h"

#include "auth/envelope.h"
#include "auth/key.h"

PyObject *rueda_core_envelope_opener(PyObject *module, PyObject *args)
{
    struct rueda_envelope_opener opener;
    PyObject *made;

    (void)module;
    (void)args;
    if (rueda_envelope_opener_make(&opener) != RUEDA_OK)
        return rueda_core_raise(RUEDA_ERR_IO, "no random numbers for a key");
    made = Py_BuildValue("(y#y#)", (char *)opener.public_key,
                         (Py_ssize_t)sizeof(opener.public_key),
                         (char *)opener.secret_key,
                         (Py_ssize_t)sizeof(opener.secret_key));
    rueda_secret_wipe(&opener, sizeof(opener));
    return made;
}

PyObject *rueda_core_envelope_seal(PyObject *module, PyObject *args)
{
    const char *public_key;
    const char *secret;
    Py_ssize_t key_bytes;
    Py_ssize_t bytes;
    PyObject *envelope;

    (void)module;
    if (!PyArg_ParseTuple(args, "y#y#", &public_key, &key_bytes, &secret,
                          &bytes))
        return NULL;
    if (key_bytes != RUEDA_ENVELOPE_KEY_BYTES)
        return rueda_core_raise(RUEDA_ERR_INVALID, "this is no public key");
    envelope =
        PyBytes_FromStringAndSize(NULL, bytes + RUEDA_ENVELOPE_EXTRA_BYTES);
    if (envelope == NULL)
        return NULL;
    if (rueda_envelope_seal(
            (const unsigned char *)public_key, secret, (size_t)bytes,
            (unsigned char *)PyBytes_AsString(envelope)) == RUEDA_OK)
        return envelope;
    Py_DECREF(envelope);
    return rueda_core_raise(RUEDA_ERR_INVALID, "this is no public key");
}

PyObject *rueda_core_envelope_open(PyObject *module, PyObject *args)
{
    struct rueda_envelope_opener opener;
    const char *public_key;
    const char *secret_key;
    const char *envelope;
    Py_ssize_t public_bytes;
    Py_ssize_t secret_bytes;
    Py_ssize_t bytes;
    rueda_status status = RUEDA_ERR_AUTH;
    PyObject *opened = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "y#y#y#", &public_key, &public_bytes,
                          &secret_key, &secret_bytes, &envelope, &bytes))
        return NULL;
    if (public_bytes == sizeof(opener.public_key) &&
        secret_bytes == sizeof(opener.secret_key) &&
        bytes >= RUEDA_ENVELOPE_EXTRA_BYTES) {
        opened =
            PyBytes_FromStringAndSize(NULL, bytes - RUEDA_ENVELOPE_EXTRA_BYTES);
        if (opened == NULL)
            return NULL;
        memcpy(opener.public_key, public_key, sizeof(opener.public_key));
        memcpy(opener.secret_key, secret_key, sizeof(opener.secret_key));
        status =
            rueda_envelope_open(&opener, (const unsigned char *)envelope,
                                (size_t)(bytes - RUEDA_ENVELOPE_EXTRA_BYTES),
                                PyBytes_AsString(opened));
        rueda_secret_wipe(&opener, sizeof(opener));
    }
    if (status == RUEDA_OK)
        return opened;
    Py_XDECREF(opened);
    return rueda_core_raise(RUEDA_ERR_INVALID,
                            "this envelope was sealed for another rank, or "
                            "changed since");
}
