/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gradient in flight holds; see gradient.c. This folder is the part of
 * rueda._core that knows torch; bind/core knows no framework. Every function
 * runs with Python's lock held.
 */
#ifndef RUEDA_BIND_TORCH_GRADIENT_H
#define RUEDA_BIND_TORCH_GRADIENT_H

#include "bind/core/core.h"

/*
 * Objects of Python that it refers to, or NULL:
 *
 *     param          the parameter, whose .grad is read in each step
 *     sent           the gradient that was submitted, until the step ends
 *     key            its name, as bytes; args.name points into it
 *     dtype, layout  what Python says of a gradient that the fast path takes
 *     process_set    read in each step, as its id may change
 *     in_flight      the list of gradients in flight, of all of an optimizer
 *     slow_path      the Python function for all other gradients
 *     brings         gradients without a hook that this one submits
 *     opens          all of these, if this one is the first of a step
 *
 * The last two are of bundles (bundles.py).
 */
#define RUEDA_GRADIENT_OBJECTS(X)                                              \
    X(param)                                                                   \
    X(sent)                                                                    \
    X(key)                                                                     \
    X(dtype)                                                                   \
    X(layout)                                                                  \
    X(process_set)                                                             \
    X(in_flight)                                                               \
    X(slow_path)                                                               \
    X(brings)                                                                  \
    X(opens)

/* One parameter. Its fields are written with Python's lock held, and the engine
 * reads none of them: args is copied when it is submitted. */
struct gradient {
    PyObject base;
#define X(name) PyObject *name;
    RUEDA_GRADIENT_OBJECTS(X)
#undef X
    rueda_handle handle;
    long long version;
    long long came_ns; /* when its hook was last called */
    int passes_left;
    char is_fast;
    bool may_be_brought; /* it had no gradient when the step began */
    bool is_as_sent;     /* at the end of the step */
    long long count;     /* of numbers in the gradient */
    struct rueda_submit_args args;
    size_t shape[RUEDA_MAX_DIMS];
};

/* Add the type Gradient and the function settle(); false with an exception. */
bool rueda_torch_add(PyObject *module);

#endif /* RUEDA_BIND_TORCH_GRADIENT_H */
