/* SPDX-License-Identifier: Apache-2.0 */
/* What a slot holds; see slot.c. */
#ifndef RUEDA_BIND_CORE_SLOT_H
#define RUEDA_BIND_CORE_SLOT_H

#include "bind/core/core.h"

/* Objects that it refers to, or NULL: what Python says of the parameter and of
 * a gradient that can be handed over at once, the list of slots that are under
 * way, and what to call for other gradients. */
#define RUEDA_SLOT_OBJECTS(X)                                                  \
    X(param)                                                                   \
    X(sent)                                                                    \
    X(key)                                                                     \
    X(dtype)                                                                   \
    X(layout)                                                                  \
    X(process_set)                                                             \
    X(under_way)                                                               \
    X(otherwise)

struct slot {
    PyObject base;
#define X(name) PyObject *name;
    RUEDA_SLOT_OBJECTS(X)
#undef X
    rueda_handle handle;
    long long version;
    int passes_left;
    char is_short;
    long long count; /* of numbers in the gradient */
    struct rueda_submit_args args;
    size_t shape[RUEDA_MAX_DIMS];
};

#endif /* RUEDA_BIND_CORE_SLOT_H */
