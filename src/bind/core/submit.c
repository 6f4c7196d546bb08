/* SPDX-License-Identifier: Apache-2.0 */
/* From a tuple of Python's to an operation that is handed over. */
#include "bind/core/core.h"

#include <stdlib.h>

#define FEWEST_ARGS 7 /* up to the shape */

/* One operation, and what it refers to. */
struct order {
    struct rueda_submit_args args;
    PyObject *name; /* as bytes, or NULL */
    size_t *splits; /* or NULL */
    size_t shape[RUEDA_MAX_DIMS];
};

static void order_fini(struct order *order)
{
    Py_XDECREF(order->name);
    free(order->splits);
}

/* The i-th one or NULL, which is not there or None. */
static PyObject *optional(PyObject *tuple, Py_ssize_t count, int i)
{
    PyObject *item = i < count ? PyTuple_GetItem(tuple, i) : Py_None;

    return item != Py_None ? item : NULL;
}

static bool take_name(struct order *order, PyObject *name)
{
    if (name == NULL)
        return true;
    order->name = PyUnicode_AsUTF8String(name);
    if (order->name == NULL)
        return false;
    order->args.name = PyBytes_AsString(order->name);
    return true;
}

static bool take_splits(struct order *order, PyObject *splits)
{
    Py_ssize_t count;

    if (splits == NULL)
        return true;
    count = PyTuple_Size(splits);
    if (count < 0)
        return false;
    order->splits = calloc((size_t)count + 1, sizeof(size_t));
    if (order->splits == NULL) {
        PyErr_NoMemory();
        return false;
    }
    order->args.splits = order->splits;
    return rueda_core_sizes(splits, order->splits, (int)count) >= 0;
}

static bool take_room(struct order *order, PyObject *room)
{
    if (room == NULL)
        return true;
    order->args.alloc = rueda_core_room_alloc;
    order->args.alloc_arg = rueda_core_room_of(room);
    return order->args.alloc_arg != NULL;
}

static int small(PyObject *tuple, int i)
{
    return (int)PyLong_AsLong(PyTuple_GetItem(tuple, i));
}

/* Numbers that may be left out; errors are looked for at the end. */
static void take_rest(struct order *order, PyObject *tuple, Py_ssize_t count)
{
    struct rueda_submit_args *args = &order->args;

    if (count > 7)
        args->reduction = (rueda_reduction)small(tuple, 7);
    if (count > 8)
        args->root = small(tuple, 8);
    if (count > 9)
        args->prescale = PyFloat_AsDouble(PyTuple_GetItem(tuple, 9));
    if (count > 10)
        args->postscale = PyFloat_AsDouble(PyTuple_GetItem(tuple, 10));
    if (count > 13)
        args->compression = (rueda_compression)small(tuple, 13);
    if (count > 14)
        args->priority = small(tuple, 14);
}

/* False: an exception is set. In both cases the order is to be finished. */
static bool parse(PyObject *tuple, struct order *order)
{
    struct rueda_submit_args *args = &order->args;
    Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;

    order->args = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    order->name = NULL;
    order->splits = NULL;
    if (count < FEWEST_ARGS) {
        PyErr_Format(PyExc_TypeError, "at least %d arguments are expected",
                     FEWEST_ARGS);
        return false;
    }
    args->kind = (rueda_kind)small(tuple, 0);
    args->set = small(tuple, 2);
    args->dtype = (rueda_dtype)small(tuple, 3);
    args->send = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, 4));
    args->recv = PyLong_AsVoidPtr(PyTuple_GetItem(tuple, 5));
    take_rest(order, tuple, count);
    if (PyErr_Occurred() != NULL)
        return false;
    args->shape = order->shape;
    args->dims = rueda_core_sizes(PyTuple_GetItem(tuple, 6), order->shape,
                                  RUEDA_MAX_DIMS);
    return args->dims >= 0 && take_name(order, optional(tuple, count, 1)) &&
           take_splits(order, optional(tuple, count, 11)) &&
           take_room(order, optional(tuple, count, 12));
}

/* The library takes the number of splits to be that of the members. */
static bool check_splits(rueda_ctx *ctx, const struct order *order,
                         PyObject *tuple)
{
    PyObject *splits = optional(tuple, PyTuple_Size(tuple), 11);
    int members = rueda_set_size(ctx, order->args.set);

    if (splits == NULL || members < 0 || PyTuple_Size(splits) == members)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "rank %d: alltoall: %zd splits for a process set of %d "
                 "ranks; give one number for each",
                 rueda_rank(ctx), PyTuple_Size(splits), members);
    return false;
}

/* It waits for nobody: at most it takes a turn with operations that are light,
 * as rueda_engine_submit() says. So Python's lock stays ours, which others
 * could keep for longer than that takes. */
PyObject *rueda_core_submit(PyObject *module, PyObject *tuple)
{
    PyObject *result = NULL;
    struct order order;
    rueda_handle handle;
    rueda_status status;
    rueda_ctx *ctx;

    (void)module;
    if (!parse(tuple, &order))
        goto done;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        goto done;
    if (check_splits(ctx, &order, tuple)) {
        status = rueda_submit(ctx, &order.args, &handle);
        result = status == RUEDA_OK
                     ? PyLong_FromUnsignedLongLong(handle)
                     : rueda_core_raise(status, rueda_last_error());
    }
    rueda_default_leave();
done:
    order_fini(&order);
    return result;
}

/* ---- Groups ---------------------------------------------------------------
 */

static PyObject *list_of(const rueda_handle *handles, int count)
{
    PyObject *list = PyList_New(count);

    for (int i = 0; list != NULL && i < count; i++) {
        PyObject *handle = PyLong_FromUnsignedLongLong(handles[i]);

        if (handle == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SetItem(list, i, handle);
    }
    return list;
}

static PyObject *hand_over(const struct order *orders, int count)
{
    struct rueda_submit_args *args = calloc((size_t)count + 1, sizeof(*args));
    rueda_handle *handles = calloc((size_t)count + 1, sizeof(*handles));
    PyObject *result = NULL;
    rueda_status status;
    rueda_ctx *ctx;

    if (args == NULL || handles == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (int i = 0; i < count; i++)
        args[i] = orders[i].args;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        goto done;
    status = rueda_submit_group(ctx, args, count, handles);
    result = status == RUEDA_OK ? list_of(handles, count)
                                : rueda_core_raise(status, rueda_last_error());
    rueda_default_leave();
done:
    free(args);
    free(handles);
    return result;
}

PyObject *rueda_core_submit_group(PyObject *module, PyObject *list)
{
    PyObject *result = NULL;
    struct order *orders;
    Py_ssize_t count = PyList_Size(list);
    Py_ssize_t parsed = 0;
    bool is_good = true;

    (void)module;
    if (count < 0)
        return NULL;
    orders = calloc((size_t)count + 1, sizeof(*orders));
    if (orders == NULL)
        return PyErr_NoMemory();
    while (is_good && parsed < count) {
        is_good = parse(PyList_GetItem(list, parsed), &orders[parsed]);
        parsed++;
    }
    if (is_good)
        result = hand_over(orders, (int)count);
    for (Py_ssize_t i = 0; i < parsed; i++)
        order_fini(&orders[i]);
    free(orders);
    return result;
}
