/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of GPUs, as dictionaries. */
#include "bind/core/core.h"

static PyObject *dict_of(int index, const struct rueda_gpu_metrics *gpu)
{
    return Py_BuildValue(
        "{s:i,s:s,s:s,s:i,s:i,s:L,s:L,s:d,s:d,s:i}", "index", index, "name",
        gpu->name, "uuid", gpu->uuid, "busy_percent", gpu->busy_percent,
        "memory_busy_percent", gpu->memory_busy_percent, "memory_used_bytes",
        (long long)gpu->memory_used_bytes, "memory_total_bytes",
        (long long)gpu->memory_total_bytes, "power_watts", gpu->power_watts,
        "power_limit_watts", gpu->power_limit_watts, "celsius", gpu->celsius);
}

/* Without Python's lock, as the driver may take its time. */
static rueda_status read_gpu(rueda_ctx *ctx, int index,
                             struct rueda_gpu_metrics *out)
{
    PyThreadState *thread = PyEval_SaveThread();
    const rueda_status status = rueda_gpu_read(ctx, index, out);

    PyEval_RestoreThread(thread);
    return status;
}

/* Adds all to the list. */
static rueda_status read_all(rueda_ctx *ctx, PyObject *list)
{
    struct rueda_gpu_metrics gpu = RUEDA_GPU_METRICS_INIT;
    PyThreadState *thread = PyEval_SaveThread();
    int count = 0;
    rueda_status status = rueda_gpu_count(ctx, &count);

    PyEval_RestoreThread(thread);
    for (int i = 0; i < count && status == RUEDA_OK; i++) {
        PyObject *dict;

        status = read_gpu(ctx, i, &gpu);
        if (status != RUEDA_OK)
            break;
        dict = dict_of(i, &gpu);
        if (dict == NULL || PyList_Append(list, dict) != 0)
            status = RUEDA_ERR_NOMEM;
        Py_XDECREF(dict);
    }
    return status;
}

PyObject *rueda_core_gpu_metrics(PyObject *module, PyObject *args)
{
    rueda_ctx *ctx = rueda_core_enter();
    PyObject *list;
    PyObject *both = NULL;
    rueda_status status;

    (void)module;
    (void)args;
    if (ctx == NULL)
        return NULL;
    list = PyList_New(0);
    if (list != NULL) {
        status = read_all(ctx, list);
        if (!PyErr_Occurred())
            both = Py_BuildValue("Os", list,
                                 status == RUEDA_OK ? "" : rueda_last_error());
        Py_DECREF(list);
    }
    rueda_default_leave();
    return both;
}
