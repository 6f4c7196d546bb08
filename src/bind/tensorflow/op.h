/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our ops for TensorFlow: what they are called, what they take, and the kernels
 * that run them on the CPU.
 *
 *     register.c    when the library is loaded: names, attributes, kernels
 *     shape.c       while a graph is built: shapes of results
 *     kernel.c      once for each place of a graph: attributes into a kernel
 *     call.c        each time it runs: tensors into operations, and back
 *     done.c        tells an asynchronous run's end; alone.c: or waits for it
 *     tf.c          the functions of TensorFlow that all of these call
 *
 * Ops with tensors have one input more, the *token*: a number that only an op
 * with state can give. TensorFlow computes an op whose inputs are all constant
 * once, when it prepares a graph, and uses that result in each step; the token
 * prevents it, and does not make our ops wait for each other as state of their
 * own would.
 */
#ifndef RUEDA_BIND_TENSORFLOW_OP_H
#define RUEDA_BIND_TENSORFLOW_OP_H

#include <rueda/rueda.h>

#include "bind/tensorflow/alone.h"
#include "bind/tensorflow/tf.h"

/* What is known of an op when it is registered; static. Results whose size is
 * found out by all ranks together are made when it is known; the others before
 * the operation is submitted. */
struct rueda_tf_op {
    const char *name;
    const char *attrs;   /* separated by ';', as are the others */
    const char *inputs;  /* but for the token */
    const char *outputs; /* or NULL */
    tf_shape_fn shape;
    rueda_kind kind;

    /* What it has of attributes and inputs. */
    bool has_token;
    bool has_set;
    bool has_root;
    bool has_reduction;
    bool is_group;

    /* For ops that ask for a number only. */
    int (*ask)(const rueda_ctx *ctx, int set);
};

/* An op at one place of a graph, or called by one name. TensorFlow may run it
 * on several threads at once, so nothing of it changes after it was made but
 * the two atomic fields at the end. */
struct rueda_tf_kernel {
    const struct rueda_tf_op *op;
    char *name; /* that ranks match by, or NULL */
    bool waits; /* until the operation has ended */
    int32_t set;
    int32_t root;
    rueda_reduction reduction;
    float prescale;
    float postscale;
    struct rueda_tf_habit habit;
    atomic_int running; /* calls in flight, of kernels that do not wait */
};

/* True where kernels cannot be asynchronous. */
extern bool rueda_tf_is_blocking;

/* For tf_create_fn: attributes into a kernel, or NULL with a failure set. */
struct rueda_tf_kernel *rueda_tf_kernel_create(tf_construction *ctx,
                                               const struct rueda_tf_op *op);
void rueda_tf_kernel_delete(void *arg);

/* Run a collective. `done` is NULL where the kernel has to wait. */
void rueda_tf_call(struct rueda_tf_kernel *kernel, tf_context *ctx,
                   tf_done *done);

/* Fail the run of a kernel. */
void rueda_tf_fail(tf_context *ctx, int code, const char *words);

#endif /* RUEDA_BIND_TENSORFLOW_OP_H */
