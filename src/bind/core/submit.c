/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From Python's arguments to a submitted operation.
 *
 * RUEDA_CORE_SUBMIT_FIELDS lists the fields once, in order. Callers give them
 * by position, which is the fast way, or from any point on by name; a member of
 * a group is a tuple or a dict of them. To add a field, add it at the end of
 * the list and read it in take_numbers().
 */
#include "bind/core/core.h"

#include <stdlib.h>

enum field {
#define X(name) FIELD_##name,
    RUEDA_CORE_SUBMIT_FIELDS(X)
#undef X
    FIELD_COUNT
};

#define REQUIRED_COUNT (FIELD_shape + 1)

static const char *const field_names[] = {
#define X(name) #name,
    RUEDA_CORE_SUBMIT_FIELDS(X)
#undef X
};

/* One operation, and what it refers to. */
struct order {
    struct rueda_submit_args args;
    PyObject *name; /* as bytes, or NULL */
    size_t *splits; /* or NULL */
    Py_ssize_t split_count;
    size_t shape[RUEDA_MAX_DIMS];
};

/* May be called after a parse that failed anywhere in the middle. */
static void order_fini(struct order *order)
{
    Py_XDECREF(order->name);
    free(order->splits);
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

/* The number of splits is compared with the members later, when the set is
 * known. */
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
    order->split_count = count;
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

static void take_int(PyObject *given, int *out)
{
    if (given != NULL)
        *out = (int)PyLong_AsLong(given);
}

static void take_double(PyObject *given, double *out)
{
    if (given != NULL)
        *out = PyFloat_AsDouble(given);
}

static void *pointer_of(PyObject *given)
{
    return given != NULL ? PyLong_AsVoidPtr(given) : NULL;
}

/* An argument that is not a number leaves an exception set, and the next ones
 * are read all the same: one look at the end (PyErr_Occurred) is cheaper than
 * one for each of twenty fields. */
static void take_numbers(struct order *order, PyObject *const *given)
{
    struct rueda_submit_args *args = &order->args;
    int kind = 0, dtype = 0, reduction = 0, compression = 0, ordered = 0;
    int unpacked = 0, more = 0;

    take_int(given[FIELD_kind], &kind);
    take_int(given[FIELD_set], &args->set);
    take_int(given[FIELD_dtype], &dtype);
    args->send = pointer_of(given[FIELD_send]);
    args->recv = pointer_of(given[FIELD_recv]);
    take_int(given[FIELD_reduction], &reduction);
    take_int(given[FIELD_root], &args->root);
    take_double(given[FIELD_prescale], &args->prescale);
    take_double(given[FIELD_postscale], &args->postscale);
    take_int(given[FIELD_compression], &compression);
    take_int(given[FIELD_priority], &args->priority);
    take_int(given[FIELD_device], &args->device);
    args->stream = pointer_of(given[FIELD_stream]);
    take_int(given[FIELD_ordered], &ordered);
    take_int(given[FIELD_unpacked], &unpacked);
    take_int(given[FIELD_more], &more);
    args->flags = (ordered != 0 ? RUEDA_ORDERED : 0) |
                  (more != 0 ? RUEDA_MORE : 0) |
                  (unpacked != 0 ? RUEDA_UNPACKED : 0);
    take_int(given[FIELD_peer], &args->peer);
    take_int(given[FIELD_tag], &args->tag);
    args->kind = (rueda_kind)kind;
    args->dtype = (rueda_dtype)dtype;
    args->reduction = (rueda_reduction)reduction;
    args->compression = (rueda_compression)compression;
}

/* None stands for the default of a field that has one. */
static PyObject *or_default(PyObject *value, Py_ssize_t field)
{
    bool has_default = field >= REQUIRED_COUNT || field == FIELD_name;

    return value == Py_None && has_default ? NULL : value;
}

/* A field that is given by name. */
static bool take_field(PyObject *name, PyObject *value, Py_ssize_t positional,
                       PyObject **given)
{
    for (int i = 0; PyUnicode_Check(name) && i < FIELD_COUNT; i++) {
        if (PyUnicode_CompareWithASCIIString(name, field_names[i]) != 0)
            continue;
        if (i < positional) {
            PyErr_Format(PyExc_TypeError, "submit: %s is given twice",
                         field_names[i]);
            return false;
        }
        given[i] = or_default(value, i);
        return true;
    }
    PyErr_Format(PyExc_TypeError, "submit: there is no field %R", name);
    return false;
}

static bool check_required(Py_ssize_t count, PyObject *const *given)
{
    for (Py_ssize_t i = count; i < REQUIRED_COUNT; i++) {
        if (given[i] == NULL && i != FIELD_name) {
            PyErr_Format(PyExc_TypeError, "submit: %s is missing",
                         field_names[i]);
            return false;
        }
    }
    return true;
}

/* Sort the arguments by field; a field that has its default is NULL. Either
 * collection may be NULL. False: an exception is set. */
static bool sort_fields(PyObject *tuple, PyObject *dict, PyObject **given)
{
    const Py_ssize_t count = tuple != NULL ? PyTuple_Size(tuple) : 0;
    PyObject *name, *value;
    Py_ssize_t at = 0;

    if (count > FIELD_COUNT) {
        PyErr_Format(PyExc_TypeError, "submit: %zd fields; there are %d", count,
                     FIELD_COUNT);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        given[i] = or_default(PyTuple_GetItem(tuple, i), i);
    while (dict != NULL && PyDict_Next(dict, &at, &name, &value))
        if (!take_field(name, value, count, given))
            return false;
    return check_required(count, given);
}

/* False: an exception is set. In both cases the order is to be finished by
 * order_fini(). Its args point into the order itself and into the name, so it
 * must not be moved. */
static bool parse(PyObject *tuple, PyObject *dict, struct order *order)
{
    struct rueda_submit_args *args = &order->args;
    PyObject *given[FIELD_COUNT] = {NULL};

    order->args = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    order->name = NULL;
    order->splits = NULL;
    order->split_count = -1;
    if (!sort_fields(tuple, dict, given))
        return false;
    take_numbers(order, given);
    if (PyErr_Occurred() != NULL)
        return false;
    args->shape = order->shape;
    args->dims =
        rueda_core_sizes(given[FIELD_shape], order->shape, RUEDA_MAX_DIMS);
    return args->dims >= 0 && take_name(order, given[FIELD_name]) &&
           take_splits(order, given[FIELD_splits]) &&
           take_room(order, given[FIELD_room]);
}

/* The library takes the number of splits to be that of the members. */
static bool check_splits(rueda_ctx *ctx, const struct order *order)
{
    int members = rueda_set_size(ctx, order->args.set);

    if (order->splits == NULL || members < 0 || order->split_count == members)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "rank %d: alltoall: %zd splits for a process set of %d "
                 "ranks; give one number for each",
                 rueda_rank(ctx), order->split_count, members);
    return false;
}

/* Submitting never waits: at most it takes a turn with light operations, as
 * rueda_engine_submit() says. So this thread keeps Python's lock: another
 * thread could hold it for longer than that takes. */
PyObject *rueda_core_submit(PyObject *module, PyObject *tuple, PyObject *dict)
{
    PyObject *result = NULL;
    struct order order;
    rueda_handle handle;
    rueda_status status;
    rueda_ctx *ctx;

    (void)module;
    if (!parse(tuple, dict, &order))
        goto done;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        goto done;
    if (check_splits(ctx, &order)) {
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

/* ---- Groups ----------------------------------------------------------- */

/* Handles as a list. */
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

/* Submit a group whose members are all parsed. */
static PyObject *submit_all(const struct order *orders, int count)
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

/* A member of a group is a tuple or a dict of the fields of submit(). */
static bool parse_member(PyObject *member, struct order *order)
{
    bool is_dict = PyDict_Check(member);

    if (!is_dict && !PyTuple_Check(member)) {
        order->name = NULL;
        order->splits = NULL;
        PyErr_SetString(PyExc_TypeError,
                        "submit_group: a member is a tuple or a dict");
        return false;
    }
    return parse(is_dict ? NULL : member, is_dict ? member : NULL, order);
}

/* Parse all members before anything is submitted. */
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
        is_good = parse_member(PyList_GetItem(list, parsed), &orders[parsed]);
        parsed++;
    }
    if (is_good)
        result = submit_all(orders, (int)count);
    for (Py_ssize_t i = 0; i < parsed; i++)
        order_fini(&orders[i]);
    free(orders);
    return result;
}
