/* SPDX-License-Identifier: Apache-2.0 */
/* What a slot holds; see slot.c. */
#ifndef RUEDA_BIND_CORE_SLOT_H
#define RUEDA_BIND_CORE_SLOT_H

#include "bind/core/core.h"

/* Objects that it refers to, or NULL: what Python says of the parameter and of
 * a gradient that can be handed over at once, the list of slots that are under
 * way, what to call for other gradients, and slots that have no hook of their
 * own: those that this one brings, and all of them (bundles.py). */
#define RUEDA_SLOT_OBJECTS(X)                                                  \
    X(param)                                                                   \
    X(sent)                                                                    \
    X(key)                                                                     \
    X(dtype)                                                                   \
    X(layout)                                                                  \
    X(process_set)                                                             \
    X(under_way)                                                               \
    X(otherwise)                                                               \
    X(brings)                                                                  \
    X(opens)

struct slot {
    PyObject base;
#define X(name) PyObject *name;
    RUEDA_SLOT_OBJECTS(X)
#undef X
    rueda_handle handle;
    long long version;
    long long came_ns; /* when its hook was last called */
    int passes_left;
    char is_short;
    bool may_be_brought; /* it had no gradient when the step began */
    bool is_as_sent;     /* at the end of the step */
    long long count;     /* of numbers in the gradient */
    struct rueda_submit_args args;
    size_t shape[RUEDA_MAX_DIMS];
};

#endif /* RUEDA_BIND_CORE_SLOT_H */
