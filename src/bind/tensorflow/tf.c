/* SPDX-License-Identifier: Apache-2.0 */
/* Finding TensorFlow's functions in the process. Only libraries that are loaded
 * already are looked at: ours is loaded by TensorFlow. */
#include "bind/tensorflow/tf.h"

#include "os/library.h"

struct rueda_tf_functions rueda_tf;

/* Where the functions are differs between versions. */
static const char *const library_names[] = {
    "libtensorflow_framework.so.2",
    "libtensorflow_cc.so.2",
};

#define LIBRARY_COUNT (sizeof(library_names) / sizeof(library_names[0]))

static bool find_function(void *const *libraries, const char *name, void *out)
{
    for (size_t i = 0; i < LIBRARY_COUNT; i++)
        if (libraries[i] != NULL &&
            rueda_library_function(libraries[i], name, out) == RUEDA_OK)
            return true;
    return false;
}

const char *rueda_tf_find(void)
{
    const char *missing = NULL;
    void *libraries[LIBRARY_COUNT];

    for (size_t i = 0; i < LIBRARY_COUNT; i++)
        libraries[i] = rueda_library_find(library_names[i]);
#define X(type, name, arguments)                                               \
    if (missing == NULL &&                                                     \
        !find_function(libraries, "TF_" #name, &rueda_tf.name))                \
        missing = "TF_" #name;
    RUEDA_TF_FUNCTIONS(X)
#undef X
#define X(type, name, arguments)                                               \
    find_function(libraries, "TF_" #name, &rueda_tf.name);
    RUEDA_TF_NEWER_FUNCTIONS(X)
#undef X
    for (size_t i = 0; i < LIBRARY_COUNT; i++)
        rueda_library_close(libraries[i]);
    return missing;
}
