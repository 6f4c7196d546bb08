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

/* What fails here is left to the end of the step, which tries again. */
static PyObject *hand_over(struct slot *slot)
{
    rueda_ctx *ctx = rueda_core_enter();
    rueda_status status;

    if (ctx == NULL)
        return NULL;
    status = rueda_submit(ctx, &slot->args, &slot->handle);
    if (status == RUEDA_OK)
        slot->passes_left = 0;
    else
        rueda_core_raise(status, rueda_last_error());
    rueda_default_leave();
    if (status != RUEDA_OK ||
        PyList_Append(slot->under_way, (PyObject *)slot) != 0)
        return NULL;
    return rueda_core_none();
}

/* What autograd calls; the parameter is known. */
static PyObject *on_ready(PyObject *self, PyObject *args, PyObject *named)
{
    struct slot *slot = (struct slot *)self;
    PyObject *grad = NULL;

    if (slot->passes_left == 1 && slot->is_short)
        grad = PyObject_GetAttr(slot->param, names.grad);
    if (grad != NULL && look(slot, grad)) {
        PyObject *before = slot->sent;

        slot->sent = grad;
        Py_XDECREF(before);
        return hand_over(slot);
    }
    Py_XDECREF(grad);
    PyErr_Clear(); /* the other way says what is wrong */
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
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"param", T_OBJECT, offsetof(struct slot, param), 0, NULL},
    {"sent", T_OBJECT, offsetof(struct slot, sent), 0,
     "what is being reduced, or None"},
    {"handle", T_ULONG, offsetof(struct slot, handle), READONLY, NULL},
    {"version", T_LONGLONG, offsetof(struct slot, version), 0,
     "of what was handed over: it must not change meanwhile"},
    {"passes_left", T_INT, offsetof(struct slot, passes_left), 0,
     "0: handed over"},
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

/* Is the gradient what was handed over, and as it was? */
static bool is_as_sent(const struct slot *slot)
{
    return is_such(slot->param, names.grad, slot->sent) &&
           number_of(slot->sent, names._version, false) == slot->version;
}

/* False: an exception that nobody is to keep is set. */
static bool settle_one(rueda_ctx *ctx, PyObject *self, int passes,
                       PyObject *odd, PyObject **failure)
{
    struct rueda_result result = RUEDA_RESULT_INIT;
    struct slot *slot = (struct slot *)self;

    if (!PyObject_TypeCheck(self, slot_type)) {
        PyErr_SetString(PyExc_TypeError, "a list of slots is expected");
        return false;
    }
    if (!rueda_core_finish(ctx, slot->handle, &result)) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return false;
        if (*failure == NULL)
            *failure = take_exception();
        PyErr_Clear();
    }
    if (slot->sent == NULL || !is_as_sent(slot)) {
        PyErr_Clear();
        return PyList_Append(odd, self) == 0;
    }
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
                          &PyList_Type, &odd))
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    for (Py_ssize_t i = 0; is_good && i < PyList_Size(slots); i++) {
        PyObject *slot = PyList_GetItem(slots, i);

        Py_INCREF(slot); /* others may run while we wait */
        is_good = settle_one(ctx, slot, passes, odd, &failure);
        Py_DECREF(slot);
    }
    rueda_default_leave();
    if (is_good)
        return failure != NULL ? failure : rueda_core_none();
    Py_XDECREF(failure);
    return NULL;
}
