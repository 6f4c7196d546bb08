/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A std::function<void()> that is copied and called from C.
 *
 *     words[0], words[1]    what is called, or where that is
 *     manage                copies it (OPERATION_CLONE), or destroys a copy
 *     invoke                calls it
 *
 * This is the layout of libstdc++, which is part of its ABI. Two tests keep us
 * from trusting it where it does not hold: one call of a function of ours when
 * the library is loaded, and a look at where the functions of the first
 * callback are.
 */
#include "bind/tensorflow/done.h"

#include <stdatomic.h>
#include <string.h>

#include "os/library.h"

/* libstdc++'s std::_Manager_operation */
enum operation {
    OPERATION_CLONE = 2,
    OPERATION_DESTROY = 3,
};

/* ---- The test --------------------------------------------------------- */

/*
 * Other C++ libraries have other layouts, which are seen by what is called:
 * libc++ calls its third word, or a virtual function of what its third or fifth
 * word points to. Each of these is a function of ours, so that nothing breaks.
 */
struct probe {
    struct rueda_tf_done done;
    void *object; /* with a table of virtual functions */
    void *words[3];
};

static const void *invoked_with;

static void note_call(const void *self)
{
    invoked_with = self;
}

static bool ignore_managing(void *to, const void *from, int what)
{
    (void)to;
    (void)from;
    (void)what;
    return false;
}

static void ignore_call(const void *self)
{
    (void)self;
}

bool rueda_tf_done_works(void)
{
    static void (*const table[])(const void *) = {
        ignore_call, ignore_call, ignore_call, ignore_call,
        ignore_call, ignore_call, ignore_call, ignore_call,
    };
    const void *object = table;
    struct probe probe = {
        .done = {.manage = ignore_managing, .invoke = note_call},
        .object = &object,
    };

    if (rueda_tf.NewAsyncKernelBuilder == NULL ||
        rueda_tf.RunAsyncOpKernelDoneCallback == NULL)
        return false;
    invoked_with = NULL;
    rueda_tf.RunAsyncOpKernelDoneCallback((tf_done *)&probe);
    return invoked_with == (const void *)&probe;
}

/* ---- Copies ----------------------------------------------------------- */

/* Both functions are part of TensorFlow. One look is enough: what differs
 * between callbacks is not their layout. */
static bool is_sound(const struct rueda_tf_done *given)
{
    static atomic_bool has_passed;
    void *manage, *invoke;

    if (atomic_load(&has_passed))
        return true;
    memcpy(&manage, &given->manage, sizeof(manage));
    memcpy(&invoke, &given->invoke, sizeof(invoke));
    if (!rueda_library_holds("tensorflow", manage) ||
        !rueda_library_holds("tensorflow", invoke))
        return false;
    atomic_store(&has_passed, true);
    return true;
}

bool rueda_tf_done_copy(struct rueda_tf_done *copy, const tf_done *done)
{
    struct rueda_tf_done given;

    memcpy(&given, done, sizeof(given));
    if (!is_sound(&given))
        return false;
    *copy = (struct rueda_tf_done){
        .manage = given.manage,
        .invoke = given.invoke,
    };
    given.manage(copy, done, OPERATION_CLONE);
    return true;
}

void rueda_tf_done_run(struct rueda_tf_done *copy)
{
    rueda_tf.RunAsyncOpKernelDoneCallback((tf_done *)copy);
    copy->manage(copy, copy, OPERATION_DESTROY);
}
