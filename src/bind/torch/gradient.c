/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The type rueda._core.Gradient: a parameter whose gradient is reduced, and the
 * hook that submits the gradient. In a step of many small gradients the hooks
 * take longest, so they are in C and not in Python. A gradient that is as
 * prepare() says takes the fast path: it is submitted here. For all others the
 * hook calls the slow path, a Python function.
 *
 * A hook may also submit a bundle of gradients that have no hook of their own:
 * open_step(), bring() and serve_bundle() are the C half of bundles.py, which
 * decides what is in a bundle and is the only caller of lead().
 * tests/python/test_torch_bundles.py tests both halves.
 *
 * Tensors are known by their attributes only, as Python sees them, or by
 * DLPack's table of functions (bind/core/dlpack.h).
 */
#include "bind/core/core.h"

#include <structmember.h>

#include "bind/core/dlpack.h"
#include "bind/torch/gradient.h"
#include "os/clock.h"

/* The type and names are made once: they are the same for all, and never
 * change. */
static PyTypeObject *gradient_type;

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

/* ---- Reading a gradient ----------------------------------------------- */

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

/* Where are its numbers, and which stream writes them? False, perhaps with an
 * exception, if it cannot be submitted as it is. */
static bool find_memory(struct gradient *gradient, PyObject *grad)
{
    struct rueda_submit_args *args = &gradient->args;
    struct dl_tensor tensor;
    PyObject *at;

    if (rueda_core_describe(grad, &tensor)) {
        args->recv = (char *)tensor.data + tensor.byte_offset;
        return rueda_core_is_plain(&tensor, args->dtype, gradient->count) &&
               rueda_core_locate(grad, &tensor, &args->device, &args->stream);
    }
    args->device = RUEDA_DEVICE_HOST;
    if (!is_such(grad, names.dtype, gradient->dtype) ||
        !is_such(grad, names.layout, gradient->layout) ||
        !is_such(grad, names.is_cpu, Py_True) ||
        number_of(grad, names.numel, true) != gradient->count ||
        !answers(grad, names.is_contiguous, Py_True))
        return false;
    at = PyObject_CallMethodObjArgs(grad, names.data_ptr, NULL);
    if (at == NULL)
        return false;
    args->recv = PyLong_AsVoidPtr(at);
    Py_DECREF(at);
    return args->recv != NULL || PyErr_Occurred() == NULL;
}

/* ---- Submitting it ---------------------------------------------------- */

/* Memory, version and set; false, perhaps with an exception, if something is
 * not as usual. */
static bool inspect(struct gradient *gradient, PyObject *grad)
{
    struct rueda_submit_args *args = &gradient->args;

    if (!is_such(grad, names.requires_grad, Py_False) ||
        !find_memory(gradient, grad))
        return false;
    /* Others that are negated when read have gaps. */
    if (gradient->count == 1 && !answers(grad, names.is_neg, Py_False))
        return false;
    args->send = args->recv;
    args->set =
        (int)number_of(gradient->process_set, names.process_set_id, false);
    if (args->set < 0)
        return false;
    gradient->version = number_of(grad, names._version, false);
    return gradient->version >= 0;
}

/* Can the gradient take the fast path? It is what was sent then. */
static bool is_usual(struct gradient *gradient)
{
    PyObject *grad = NULL;
    PyObject *before;

    gradient->may_be_brought = false;
    if (gradient->passes_left == 1 && gradient->is_fast &&
        gradient->param != NULL)
        grad = PyObject_GetAttr(gradient->param, names.grad);
    if (grad == NULL || !inspect(gradient, grad)) {
        Py_XDECREF(grad);
        PyErr_Clear(); /* the slow path says what is wrong */
        return false;
    }
    before = gradient->sent;
    gradient->sent = grad;
    Py_XDECREF(before);
    return true;
}

/* Gradients that are submitted together. */
enum {
    TOGETHER = 64
};
struct load {
    int count;
    struct gradient *of[TOGETHER];
};

static rueda_status hand_over(rueda_ctx *ctx, const struct load *load)
{
    struct rueda_submit_args args[TOGETHER];
    rueda_handle handles[TOGETHER];
    rueda_status status;

    if (load->count == 1)
        return rueda_submit(ctx, &load->of[0]->args, &load->of[0]->handle);
    for (int i = 0; i < load->count; i++)
        args[i] = load->of[i]->args;
    status = rueda_submit_all(ctx, args, load->count, handles);
    for (int i = 0; i < load->count && status == RUEDA_OK; i++)
        load->of[i]->handle = handles[i];
    return status;
}

/* All or none; false: an exception is set. The end of the step tries again what
 * was not submitted: until passes_left is 0 a gradient counts as not submitted.
 */
static bool submit(struct load *load)
{
    rueda_ctx *ctx = rueda_core_enter();
    rueda_status status;
    bool is_good = true;

    if (ctx == NULL)
        return false;
    for (int i = 0; i < load->count; i++)
        load->of[i]->is_as_sent = false;
    status = hand_over(ctx, load);
    if (status != RUEDA_OK)
        rueda_core_raise(status, rueda_last_error());
    rueda_default_leave();
    for (int i = 0; i < load->count && status == RUEDA_OK; i++) {
        struct gradient *gradient = load->of[i];

        gradient->passes_left = 0;
        is_good =
            PyList_Append(gradient->in_flight, (PyObject *)gradient) == 0 &&
            is_good;
    }
    load->count = 0;
    return status == RUEDA_OK && is_good;
}

/* ---- Bundles ---------------------------------------------------------- */

/* Borrowed from the tuple. */
static struct gradient *gradient_at(PyObject *tuple, Py_ssize_t i)
{
    return (struct gradient *)PyTuple_GetItem(tuple, i);
}

/* The first gradient of a step has come. Where those without a hook have none
 * yet, one that they have later is autograd's, and whole. */
static void open_step(PyObject *gradients)
{
    const Py_ssize_t count = PyTuple_Size(gradients);
    bool are_empty = true;

    for (Py_ssize_t i = 0; are_empty && i < count; i++) {
        PyObject *param = gradient_at(gradients, i)->param;

        are_empty = param != NULL && is_such(param, names.grad, Py_None);
    }
    PyErr_Clear();
    for (Py_ssize_t i = 0; i < count; i++)
        gradient_at(gradients, i)->may_be_brought = are_empty;
}

/* Those that are not there yet are left to the end of the step. */
static bool bring(struct load *load, PyObject *gradients)
{
    const Py_ssize_t count = PyTuple_Size(gradients);
    bool is_good = true;

    for (Py_ssize_t i = 0; is_good && i < count; i++) {
        struct gradient *gradient = gradient_at(gradients, i);

        if (gradient->may_be_brought && is_usual(gradient))
            load->of[load->count++] = gradient;
        if (load->count == TOGETHER)
            is_good = submit(load);
    }
    return is_good;
}

/* Submit the gradient, behind those that it brings. We hold the tuples
 * meanwhile: reading an attribute of a tensor may run any Python code. False:
 * an exception is set. */
static bool serve(struct gradient *gradient, bool *out_is_usual)
{
    PyObject *opens = gradient->passes_left == 1 ? gradient->opens : NULL;
    PyObject *brings = gradient->brings;
    struct load load = {.count = 0};
    bool is_good = true;

    Py_XINCREF(opens);
    Py_XINCREF(brings);
    if (opens != NULL)
        open_step(opens);
    if (brings != NULL)
        is_good = bring(&load, brings);
    *out_is_usual = is_good && is_usual(gradient);
    if (*out_is_usual)
        load.of[load.count++] = gradient;
    if (is_good && load.count > 0)
        is_good = submit(&load);
    Py_XDECREF(opens);
    Py_XDECREF(brings);
    return is_good;
}

/* What autograd calls; the parameter is known. */
static PyObject *on_ready(PyObject *self, PyObject *args, PyObject *named)
{
    struct gradient *gradient = (struct gradient *)self;
    bool is_usual;

    gradient->came_ns = rueda_clock_ns();
    if (!serve(gradient, &is_usual))
        return NULL;
    if (is_usual)
        return rueda_core_none();
    if (gradient->slow_path == NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the gradient has not been prepared");
        return NULL;
    }
    return PyObject_Call(gradient->slow_path, args, named);
}

/* ---- Life ------------------------------------------------------------- */

static void keep(PyObject **place, PyObject *object)
{
    PyObject *before = *place;

    Py_INCREF(object);
    *place = object;
    Py_XDECREF(before);
}

static bool take_shape(struct gradient *gradient, PyObject *shape)
{
    gradient->args.dims =
        rueda_core_sizes(shape, gradient->shape, RUEDA_MAX_DIMS);
    if (gradient->args.dims < 0)
        return false;
    gradient->args.shape = gradient->shape;
    gradient->count = 1;
    for (int i = 0; i < gradient->args.dims; i++)
        gradient->count *= (long long)gradient->shape[i];
    return true;
}

/* prepare(key, dtype, its number, layout, shape, process_set, reduction,
 * prescale, postscale, in_flight, slow_path) */
static PyObject *prepare(PyObject *self, PyObject *args)
{
    struct gradient *gradient = (struct gradient *)self;
    PyObject *key, *dtype, *layout, *shape, *process_set, *in_flight;
    PyObject *slow_path;
    int number, reduction;
    double prescale, postscale;

    if (!PyArg_ParseTuple(args, "SOiOO!OiddO!O", &key, &dtype, &number, &layout,
                          &PyTuple_Type, &shape, &process_set, &reduction,
                          &prescale, &postscale, &PyList_Type, &in_flight,
                          &slow_path))
        return NULL;
    gradient->args = (struct rueda_submit_args)RUEDA_SUBMIT_ARGS_INIT;
    gradient->args.kind = RUEDA_ALLREDUCE;
    gradient->args.dtype = (rueda_dtype)number;
    gradient->args.reduction = (rueda_reduction)reduction;
    gradient->args.prescale = prescale;
    gradient->args.postscale = postscale;
    if (!take_shape(gradient, shape))
        return NULL;
    keep(&gradient->key, key);
    gradient->args.name = PyBytes_AsString(key);
    keep(&gradient->dtype, dtype);
    keep(&gradient->layout, layout);
    keep(&gradient->process_set, process_set);
    keep(&gradient->in_flight, in_flight);
    keep(&gradient->slow_path, slow_path);
    return rueda_core_none();
}

/* None, or a tuple of gradients? */
static bool are_gradients(PyObject *given)
{
    if (given == Py_None)
        return true;
    if (!PyTuple_Check(given))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++)
        if (!PyObject_TypeCheck(PyTuple_GetItem(given, i), gradient_type))
            return false;
    return true;
}

static void take_gradients(PyObject **place, PyObject *given)
{
    if (given == Py_None)
        Py_CLEAR(*place);
    else
        keep(place, given);
}

/* lead(brings, opens) */
static PyObject *lead(PyObject *self, PyObject *args)
{
    struct gradient *gradient = (struct gradient *)self;
    PyObject *brings, *opens;

    if (!PyArg_ParseTuple(args, "OO", &brings, &opens))
        return NULL;
    if (!are_gradients(brings) || !are_gradients(opens)) {
        PyErr_SetString(PyExc_TypeError, "tuples of gradients are expected");
        return NULL;
    }
    take_gradients(&gradient->brings, brings);
    take_gradients(&gradient->opens, opens);
    return rueda_core_none();
}

static int gradient_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct gradient *gradient = (struct gradient *)self;

#define X(name) Py_VISIT(gradient->name);
    RUEDA_GRADIENT_OBJECTS(X)
#undef X
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int gradient_clear(PyObject *self)
{
    struct gradient *gradient = (struct gradient *)self;

#define X(name) Py_CLEAR(gradient->name);
    RUEDA_GRADIENT_OBJECTS(X)
#undef X
    return 0;
}

static void gradient_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc give_back = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    gradient_clear(self);
    give_back(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"prepare", prepare, METH_VARARGS,
     "prepare(key, dtype, its number, layout, shape, process_set, reduction, "
     "prescale, postscale, in_flight, slow_path)\n\nGradients of this kind are "
     "submitted when the gradient is called, which then is in the list; "
     "`slow_path` is called for others."},
    {"lead", lead, METH_VARARGS,
     "lead(brings, opens)\n\nTuples of gradients without a hook, or None: "
     "those to "
     "hand over when this one is called, and all that are without a gradient "
     "when a step begins, which is when this one is called."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"param", T_OBJECT, offsetof(struct gradient, param), 0, NULL},
    {"sent", T_OBJECT, offsetof(struct gradient, sent), 0,
     "what is being reduced, or None"},
    {"handle", T_ULONG, offsetof(struct gradient, handle), READONLY, NULL},
    {"version", T_LONGLONG, offsetof(struct gradient, version), 0,
     "of what was submitted: it must not change meanwhile"},
    {"came_ns", T_LONGLONG, offsetof(struct gradient, came_ns), READONLY,
     "when it was last called"},
    {"stream", T_ULONGLONG, offsetof(struct gradient, args.stream), READONLY,
     "that wrote it when it was last submitted"},
    {"passes_left", T_INT, offsetof(struct gradient, passes_left), 0,
     "0: submitted"},
    {"may_be_brought", T_BOOL, offsetof(struct gradient, may_be_brought), 0,
     "had it no gradient when the step began?"},
    {"is_fast", T_BOOL, offsetof(struct gradient, is_fast), 0,
     "may it be submitted here?"},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot parts[] = {
    {Py_tp_doc, "A parameter whose gradient is reduced; calling it is the "
                "hook for when that is whole."},
    {Py_tp_call, (void *)on_ready},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_traverse, (void *)gradient_traverse},
    {Py_tp_clear, (void *)gradient_clear},
    {Py_tp_dealloc, (void *)gradient_free},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "rueda._core.Gradient",
    .basicsize = sizeof(struct gradient),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = parts,
};

/* ---- The end of a step ------------------------------------------------ */

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

/* Are the gradients what was submitted, and as they were? A version that has
 * changed tells of a program that wrote into a gradient while it was reduced.
 * Asked before the first wait, while the last of them are in flight: a result
 * that arrives changes no version. False: an exception is set. */
static bool compare_all(PyObject *gradients)
{
    for (Py_ssize_t i = 0; i < PyList_Size(gradients); i++) {
        struct gradient *gradient =
            (struct gradient *)PyList_GetItem(gradients, i);

        if (!PyObject_TypeCheck((PyObject *)gradient, gradient_type)) {
            PyErr_SetString(PyExc_TypeError, "a list of gradients is expected");
            return false;
        }
        gradient->is_as_sent =
            gradient->sent != NULL &&
            is_such(gradient->param, names.grad, gradient->sent) &&
            number_of(gradient->sent, names._version, false) ==
                gradient->version;
        PyErr_Clear();
    }
    return true;
}

/* False: an exception is set that ends the whole wait, such as Ctrl-C. */
static bool settle_one(rueda_ctx *ctx, struct gradient *gradient, int passes,
                       PyObject *odd, PyObject **failure)
{
    struct rueda_result result = RUEDA_RESULT_INIT;

    if (!rueda_core_finish(ctx, gradient->handle, &result)) {
        if (!PyErr_ExceptionMatches(PyExc_Exception))
            return false;
        if (*failure == NULL)
            *failure = take_exception();
        PyErr_Clear();
    }
    if (!gradient->is_as_sent)
        return PyList_Append(odd, (PyObject *)gradient) == 0;
    gradient->passes_left = passes;
    Py_CLEAR(gradient->sent);
    return true;
}

/* Wait for all gradients of a step. Those that were not submitted from C, or
 * failed, go on a list for Python. */
static PyObject *settle(PyObject *module, PyObject *args)
{
    PyObject *gradients, *odd;
    PyObject *failure = NULL;
    bool is_good = true;
    rueda_ctx *ctx;
    int passes;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!iO!", &PyList_Type, &gradients, &passes,
                          &PyList_Type, &odd) ||
        !compare_all(gradients))
        return NULL;
    ctx = rueda_core_enter();
    if (ctx == NULL)
        return NULL;
    for (Py_ssize_t i = 0; is_good && i < PyList_Size(gradients); i++) {
        PyObject *gradient = PyList_GetItem(gradients, i);

        Py_INCREF(gradient); /* other threads may run while we wait */
        is_good =
            settle_one(ctx, (struct gradient *)gradient, passes, odd, &failure);
        Py_DECREF(gradient);
    }
    rueda_default_leave();
    if (is_good)
        return failure != NULL ? failure : rueda_core_none();
    Py_XDECREF(failure);
    return NULL;
}

static PyMethodDef functions[] = {
    {"settle", settle, METH_VARARGS,
     "settle(gradients, passes, odd) -> the first failure, or None\n\n"
     "Wait for all gradients and prepare each for this number of passes; one "
     "that is not what was sent goes to the list `odd`."},
    {NULL, NULL, 0, NULL},
};

bool rueda_torch_add(PyObject *module)
{
    if (gradient_type == NULL && make_names())
        gradient_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (gradient_type == NULL)
        return false;
    Py_INCREF(gradient_type);
    if (PyModule_AddObject(module, "Gradient", (PyObject *)gradient_type) == 0)
        return PyModule_AddFunctions(module, functions) == 0;
    Py_DECREF(gradient_type);
    return false;
}
