/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type rueda._core.Slot: a parameter whose gradient is reduced, and the
 * hook that hands the gradient over. Of a step of many small gradients hooks
 * are what takes longest, so they are here and not in Python. Tensors are known
 * by their attributes only, as Python sees them.
 */
#include "bind/core/core.h"

#include <structmember.h>

#include "bind/core/dlpack.h"
#include "bind/core/slot.h"
#include "os/clock.h"

/* The type and names are made once: they are the same for all, and never
 * change. */
static PyTypeObject *slot_type;

#define NAMES(X)                                                               \
    X(grad)                                                                    \
    X(dtype)                                                                   \
    X(layout)                                                                  \
    X(is_cpu)                                                                  \
    X(requires_grad)                                                           \
    X(_version)                                                                \
    X(numel)                                                                   \
    X(is_contiguous)                                                           \
    X(is_neg)                                                                  \
    X(data_ptr)                                                                \
    X(process_set_id)

static struct {
#define X(name) PyObject *name;
    NAMES(X)
#undef X
} names;

static bool make_names(void)
{
#define X(name)                                                                \
    if (names.name == NULL)                                                    \
        names.name = PyUnicode_InternFromString(#name);                        \
    if (names.name == NULL)                                                    \
        return false;
    NAMES(X)
#undef X
    return true;
}

_Static_assert(sizeof(rueda_handle) == sizeof(unsigned long),
               "Python reads a handle as that");

/* ---- Looking at a gradient ------------------------------------------------
 */

/* Is this what the attribute is? False also with an exception. */
static bool is_such(PyObject *object, PyObject *name, const PyObject *wanted)
{
    PyObject *found = PyObject_GetAttr(object, name);

    Py_XDECREF(found);
    return found != NULL && found == wanted;
}

/* A number, of an attribute or a method; -1 with an exception. */
static long long number_of(PyObject *object, PyObject *name, bool is_method)
{
    PyObject *found = is_method ? PyObject_CallMethodObjArgs(object, name, NULL)
                                : PyObject_GetAttr(object, name);
    long long number = -1;

    if (found != NULL)
        number = PyLong_AsLongLong(found);
    Py_XDECREF(found);
    return number;
}

/* Is this what the method answers? False also with an exception. */
static bool answers(PyObject *object, PyObject *name, const PyObject *wanted)
{
    PyObject *answer = PyObject_CallMethodObjArgs(object, name, NULL);

    Py_XDECREF(answer);
    return answer != NULL && answer == wanted;
}

/* Where are its numbers? False, perhaps with an exception, if it cannot be
 * handed over as it is. */
static bool find_memory(const struct slot *slot, PyObject *grad, void **out)
{
    struct dl_tensor tensor;
    PyObject *at;

    if (rueda_core_describe(grad, &tensor)) {
        *out = (char *)tensor.data + tensor.byte_offset;
        return rueda_core_is_plain(&tensor, slot->args.dtype, slot->count);
    }
    if (!is_such(grad, names.dtype, slot->dtype) ||
        !is_such(grad, names.layout, slot->layout) ||
        !is_such(grad, names.is_cpu, Py_True) ||
        number_of(grad, names.numel, true) != slot->count ||
        !answers(grad, names.is_contiguous, Py_True))
        return false;
    at = PyObject_CallMethodObjArgs(grad, names.data_ptr, NULL);
    if (at == NULL)
        return false;
    *out = PyLong_AsVoidPtr(at);
    Py_DECREF(at);
    return *out != NULL || PyErr_Occurred() == NULL;
}

/* ---- Handing it over ------------------------------------------------------
 */

/* Memory, version and set; false, perhaps with an exception, if something is
 * not as usual. */
static bool look(struct slot *slot, PyObject *grad)
{
    struct rueda_submit_args *args = &slot->args;

    if (!is_such(grad, names.requires_grad, Py_False) ||
        !find_memory(slot, grad, &args->recv))
        return false;
    /* Others that are negated when read have gaps. */
    if (slot->count == 1 && !answers(grad, names.is_neg, Py_False))
        return false;
    args->send = args->recv;
    args->set = (int)number_of(slot->process_set, names.process_set_id, false);
    if (args->set < 0)
        return false;
    slot->version = number_of(grad, names._version, false);
    return slot->version >= 0;
}

/* False: an exception is set. */
static bool submit(struct slot *slot, unsigned flags)
{
    rueda_ctx *ctx = rueda_core_enter();
    rueda_status status;

    if (ctx == NULL)
        return false;
    slot->args.flags = flags;
    slot->is_as_sent = false;
    status = rueda_submit(ctx, &slot->args, &slot->handle);
    if (status == RUEDA_OK)
        slot->passes_left = 0;
    else
        rueda_core_raise(status, rueda_last_error());
    rueda_default_leave();
    return status == RUEDA_OK &&
           PyList_Append(slot->under_way, (PyObject *)slot) == 0;
}

enum way {
    SHORT,
    LONG,
    FAILED
};

/* The gradient, if it can go the short way. What fails is left to the end of
 * the step, which tries again; then an exception is set. */
static enum way hand_over(struct slot *slot, unsigned flags)
{
    PyObject *grad = NULL;
    PyObject *before;

    slot->may_be_brought = false;
    if (slot->passes_left == 1 && slot->is_short && slot->param != NULL)
        grad = PyObject_GetAttr(slot->param, names.grad);
    if (grad == NULL || !look(slot, grad)) {
        Py_XDECREF(grad);
        PyErr_Clear(); /* the other way says what is wrong */
        return LONG;
    }
    before = slot->sent;
    slot->sent = grad;
    Py_XDECREF(before);
    return submit(slot, flags) ? SHORT : FAILED;
}

/* ---- Bundles --------------------------------------------------------------
 */

static struct slot *slot_at(PyObject *tuple, Py_ssize_t i)
{
    return (struct slot *)PyTuple_GetItem(tuple, i);
}

/* The first gradient of a step has come. Where those without a hook have none
 * yet, one that they have later is autograd's, and whole. */
static void open_step(PyObject *slots)
{
    const Py_ssize_t count = PyTuple_Size(slots);
    bool are_empty = true;

    for (Py_ssize_t i = 0; are_empty && i < count; i++) {
        PyObject *param = slot_at(slots, i)->param;

        are_empty = param != NULL && is_such(param, names.grad, Py_None);
    }
    PyErr_Clear();
    for (Py_ssize_t i = 0; i < count; i++)
        slot_at(slots, i)->may_be_brought = are_empty;
}

/* Those that are not there yet are left to the end of the step. */
static bool bring(PyObject *slots)
{
    const Py_ssize_t count = PyTuple_Size(slots);
    bool is_good = true;

    for (Py_ssize_t i = 0; is_good && i < count; i++) {
        struct slot *slot = slot_at(slots, i);

        if (slot->may_be_brought)
            is_good = hand_over(slot, RUEDA_MORE) != FAILED;
    }
    return is_good;
}

/* What a hook does besides. The tuples are ours meanwhile, for attributes of a
 * tensor may be anybody's code. */
static bool serve_others(struct slot *slot)
{
    PyObject *opens = slot->passes_left == 1 ? slot->opens : NULL;
    PyObject *brings = slot->brings;
    bool is_good = true;

    Py_XINCREF(opens);
    Py_XINCREF(brings);
    if (opens != NULL)
        open_step(opens);
    if (brings != NULL)
        is_good = bring(brings);
    Py_XDECREF(opens);
    Py_XDECREF(brings);
    return is_good;
}

/* What autograd calls; the parameter is known. */
static PyObject *on_ready(PyObject *self, PyObject *args, PyObject *named)
{
    struct slot *slot = (struct slot *)self;
    enum way way;

    slot->came_ns = rueda_clock_ns();
    if (!serve_others(slot))
        return NULL;
    way = hand_over(slot, 0);
    if (way != LONG)
        return way == SHORT ? rueda_core_none() : NULL;
    if (slot->otherwise == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the slot has not been prepared");
        return NULL;
    }
    return PyObject_Call(slot->otherwise, args, named);
}

/* ---- Life -----------------------------------------------------------------
 */

static void keep(PyObject **place, PyObject *object)
{
    PyObject *before = *place;

    Py_INCREF(object);
    *place = object;
    Py_XDECREF(before);
}

static bool take_shape(struct slot *slot, PyObject *shape)
{
    slot->args.dims = rueda_core_sizes(shape, slot->shape, RUEDA_MAX_DIMS);
    if (slot->args.dims < 0)
        return false;
    slot->args.shape = slot->shape;
    slot->count = 1;
    for (int i = 0; i < slot->args.dims; i++)
        slot->count *= (long long)slot->shape[i];
    return true;
}

/* prepare(key, dtype, its number, layout, shape, process_set, reduction,
 * prescale, postscale, under_way, otherwise) */
static PyObject *prepare(PyObject *self, PyObject *args)
{
    struct slot *slot = (struct slot *)self;
    PyObject *key, *dtype, *layout, *shape, *process_set, *under_way;
    PyObject *otherwise;
    int number, reduction;
    double prescale, postscale;

    if (!PyArg_ParseTuple(args, "SOiOO!OiddO!O", &key, &dtype, &number, &layout,
                          &PyTuple_Type, &shape, &process_set, &reduction,
                          &prescale, &postscale, &PyList_Type, &under_way,
                          &otherwise))
        return NULL;
    slot->args = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    slot->args.kind = RUEDA_ALLREDUCE;
    slot->args.dtype = (rueda_dtype)number;
    slot->args.reduction = (rueda_reduction)reduction;
    slot->args.prescale = prescale;
    slot->args.postscale = postscale;
    if (!take_shape(slot, shape))
        return NULL;
    keep(&slot->key, key);
    slot->args.name = PyBytes_AsString(key);
    keep(&slot->dtype, dtype);
    keep(&slot->layout, layout);
    keep(&slot->process_set, process_set);
    keep(&slot->under_way, under_way);
    keep(&slot->otherwise, otherwise);
    return rueda_core_none();
}

/* None, or a tuple of slots? */
static bool are_slots(PyObject *given)
{
    if (given == Py_None)
        return true;
    if (!PyTuple_Check(given))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++)
        if (!PyObject_TypeCheck(PyTuple_GetItem(given, i), slot_type))
            return false;
    return true;
}

static void take_slots(PyObject **place, PyObject *given)
{
    if (given == Py_None)
        Py_CLEAR(*place);
    else
        keep(place, given);
}

/* lead(brings, opens) */
static PyObject *lead(PyObject *self, PyObject *args)
{
    struct slot *slot = (struct slot *)self;
    PyObject *brings, *opens;

    if (!PyArg_ParseTuple(args, "OO", &brings, &opens))
        return NULL;
    if (!are_slots(brings) || !are_slots(opens)) {
        PyErr_SetString(PyExc_TypeError, "tuples of slots are expected");
        return NULL;
    }
    take_slots(&slot->brings, brings);
    take_slots(&slot->opens, opens);
    return rueda_core_none();
}

static int slot_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct slot *slot = (struct slot *)self;

#define X(name) Py_VISIT(slot->name);
    RUEDA_SLOT_OBJECTS(X)
#undef X
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int slot_clear(PyObject *self)
{
    struct slot *slot = (struct slot *)self;

#define X(name) Py_CLEAR(slot->name);
    RUEDA_SLOT_OBJECTS(X)
#undef X
    return 0;
}

static void slot_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    slot_clear(self);
    give_back(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"prepare", prepare, METH_VARARGS,
     "prepare(key, dtype, its number, layout, shape, process_set, reduction, "
     "prescale, postscale, under_way, otherwise)\n\nGradients of this kind are "
     "handed over when the slot is called, which then is in the list; "
     "`otherwise` is called for others."},
    {"lead", lead, METH_VARARGS,
     "lead(brings, opens)\n\nTuples of slots without a hook, or None: those to "
     "hand over when this one is called, and all that are without a gradient "
     "when a step begins, which is when this one is called."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"param", T_OBJECT, offsetof(struct slot, param), 0, NULL},
    {"sent", T_OBJECT, offsetof(struct slot, sent), 0,
     "what is being reduced, or None"},
    {"handle", T_ULONG, offsetof(struct slot, handle), READONLY, NULL},
    {"version", T_LONGLONG, offsetof(struct slot, version), 0,
     "of what was handed over: it must not change meanwhile"},
    {"came_ns", T_LONGLONG, offsetof(struct slot, came_ns), READONLY,
     "when it was last called"},
    {"passes_left", T_INT, offsetof(struct slot, passes_left), 0,
     "0: handed over"},
    {"may_be_brought", T_BOOL, offsetof(struct slot, may_be_brought), 0,
     "had it no gradient when the step began?"},
    {"is_short", T_BOOL, offsetof(struct slot, is_short), 0,
     "may it be handed over here?"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot parts[] = {
    {Py_tp_doc, "A parameter whose gradient is reduced; calling it is the "
                "hook for when that is whole."},
    {Py_tp_call, (void *)on_ready},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_traverse, (void *)slot_traverse},
    {Py_tp_clear, (void *)slot_clear},
    {Py_tp_dealloc, (void *)slot_free},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "rueda._core.Slot",
    .basicsize = sizeof(struct slot),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = parts,
};

bool rueda_core_add_slot(PyObject *module)
{
    if (slot_type == NULL && make_names())
        slot_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (slot_type == NULL)
        return false;
    Py_INCREF(slot_type);
    if (PyModule_AddObject(module, "Slot", (PyObject *)slot_type) == 0)
        return true;
    Py_DECREF(slot_type);
    return false;
}

/* ---- The end of a step ----------------------------------------------------
 */

/* The exception that is set, as an object. */
static PyObject *take_exception(void)
{
    PyObject *type, *value, *trace;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value != NULL && trace != NULL)
        PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
}

/* Are the gradients what was handed over, and as they were? Asked before
 * anybody is waited for, while the last of them are on their way. False: an
 * exception is set. */
static bool compare_all(PyObject *slots)
{
    for (Py_ssize_t i = 0; i < PyList_Size(slots); i++) {
        struct slot *slot = (struct slot *)PyList_GetItem(slots, i);

        if (!PyObject_TypeCheck((PyObject *)slot, slot_type)) {
            PyErr_SetString(PyExc_TypeError, "a list of slots is expected");
            return false;
        }
        slot->is_as_sent =
            slot->sent != NULL &&
            is_such(slot->param, names.grad, slot->sent) &&
            number_of(slot->sent, names._version, false) == slot->version;
        PyErr_Clear();
    }
    return true;
}

/* False: an exception that nobody is to keep is set. */
static bool settle_one(rueda_ctx *ctx, struct slot *slot, int passes,
                       PyObject *odd, PyObject **failure)
{
    struct rueda_result result = RUEDA_RESULT_INIT;

    if (!rueda_core_finish(ctx, slot->handle, &result)) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return false;
        if (*failure == NULL)
            *failure = take_exception();
        PyErr_Clear();
    }
    if (!slot->is_as_sent)
        return PyList_Append(odd, (PyObject *)slot) == 0;
    slot->passes_left = passes;
    Py_CLEAR(slot->sent);
    return true;
}

PyObject *rueda_core_settle(PyObject *module, PyObject *args)
{
    PyObject *slots, *odd;
    PyObject *failure = NULL;
    bool is_good = true;
    rueda_ctx *ctx;
    int passes;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO!", &PyList_Type, &slots, &passes,
                          &PyList_Type, &odd) ||
        !compare_all(slots))
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    for (Py_ssize_t i = 0; is_good && i < PyList_Size(slots); i++) {
        PyObject *slot = PyList_GetItem(slots, i);

        Py_INCREF(slot); /* others may run while we wait */
        is_good = settle_one(ctx, (struct slot *)slot, passes, odd, &failure);
        Py_DECREF(slot);
    }
    rueda_default_leave();
    if (is_good)
        return failure != NULL ? failure : rueda_core_none();
    Py_XDECREF(failure);
    return NULL;
}
