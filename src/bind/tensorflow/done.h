/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The callback by which an asynchronous kernel says that it is done.
 *
 * TensorFlow passes the address of a std::function<void()> that lives only as
 * long as the compute function runs. So it is copied first, as libstdc++ does
 * it: two words of storage, a function that manages it, one that calls it.
 */
#ifndef RUEDA_BIND_TENSORFLOW_DONE_H
#define RUEDA_BIND_TENSORFLOW_DONE_H

#include "bind/tensorflow/tf.h"

struct rueda_tf_done {
    void *words[2];
    bool (*manage)(void *to, const void *from, int what);
    void (*invoke)(const void *self);
};

/* Does TensorFlow call a function of this layout as we expect? Tried with one
 * of our own, when the library is loaded. */
bool rueda_tf_done_works(void);

/* Copy what a kernel was given. False: it does not look like such a function,
 * and nothing was touched. */
bool rueda_tf_done_copy(struct rueda_tf_done *copy, const tf_done *done);

/* Say that the kernel is done, and end the copy. */
void rueda_tf_done_run(struct rueda_tf_done *copy);

#endif /* RUEDA_BIND_TENSORFLOW_DONE_H */
