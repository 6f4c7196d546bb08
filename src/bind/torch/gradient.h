/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gradient in flight holds; see gradient.c. This folder is the part of
 * rueda._core that knows torch; bind/core knows no framework. Every function
 * runs with Python's lock held.
 */
#ifndef RUEDA_BIND_TORCH_GRADIENT_H
#define RUEDA_BIND_TORCH_GRADIENT_H

#include "bind/core/core.h"

/* Objects that it refers to, or NULL: the parameter; what was sent; what Python
 * says of a gradient that can be submitted at once; the list of gradients in
 * flight; the Python function for all other gradients; and gradients that have
 * no hook of their own: those that this one submits, and all of them
 * (bundles.py). */
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
