/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registering the module: its functions from the list of core.h, and the
 * constants of rueda.h by name, so that Python has no numbers of its own for
 * them.
 */
#include "bind/core/core.h"

/* One line for each framework that brings C code of its own. */
#include "bind/torch/gradient.h"

static PyMethodDef functions[] = {
#define X(name, convention, help)                                              \
    {#name, rueda_core_##name, (convention), (help)},
    RUEDA_CORE_FUNCTIONS(X)
#undef X
        {"submit", (PyCFunction)(void (*)(void))rueda_core_submit,
         METH_VARARGS | METH_KEYWORDS, RUEDA_CORE_SUBMIT_HELP},
    {NULL, NULL, 0, NULL},
};

/* The enums of the header: KIND_*, DTYPE_*, REDUCTION_*, COMPRESS_*. */
static const struct {
    const char *name;
    int value;
} constants[] = {
#define X(name, value, bytes, text) {"DTYPE_" #name, (value)},
    RUEDA_DTYPE_MAP(X)
#undef X
#define X(name, value, text) {"REDUCTION_" #name, (value)},
        RUEDA_REDUCTION_MAP(X)
#undef X
#define X(name, value, text) {#name, (value)},
            RUEDA_COMPRESSION_MAP(X)
#undef X
                {"KIND_ALLREDUCE", RUEDA_ALLREDUCE},
    {"KIND_ALLGATHER", RUEDA_ALLGATHER},
    {"KIND_BROADCAST", RUEDA_BROADCAST},
    {"KIND_ALLTOALL", RUEDA_ALLTOALL},
    {"KIND_REDUCE_SCATTER", RUEDA_REDUCE_SCATTER},
    {"KIND_BARRIER", RUEDA_BARRIER},
    {"KIND_JOIN", RUEDA_JOIN},
    {"KIND_SEND", RUEDA_SEND},
    {"KIND_RECV", RUEDA_RECV},
};

static int fill_in(PyObject *module)
{
    const size_t count = sizeof(constants) / sizeof(constants[0]);

    for (size_t i = 0; i < count; i++)
        if (PyModule_AddIntConstant(module, constants[i].name,
                                    constants[i].value) != 0)
            return -1;
    if (!rueda_torch_add(module))
        return -1;
    return PyModule_AddStringConstant(module, "version", rueda_version());
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)fill_in},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rueda._core",
    .m_doc = "The C library, for the bindings; see src/bind/core/core.h.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
