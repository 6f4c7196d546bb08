/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training in virtual time: every rank computes, submits its gradients by name
 * as the backward pass makes them, and runs the engine's own lanes over
 * transport/sim: negotiation, fusion, choice of algorithm, the algorithms. The
 * gradients are phantoms: lengths without bytes.
 *
 *     model.c          a network to train: gradients, when each is ready
 *     training.c       a run: network, ranks, faults, sums of what came out
 *     training_rank.c  one rank's loop of steps, over the engine's lanes
 *     bound.c          the time that no library could go below
 *     models/          the built-in networks, as text
 *
 * So a prediction changes when the library does: there is no second model of it
 * that could fall behind. docs/scaling.md says what the simulator leaves out,
 * and compares its predictions with measurements.
 *
 * A run takes one thread, and several may run at once in threads of their own.
 */
#ifndef RUEDA_PREDICT_TRAINING_H
#define RUEDA_PREDICT_TRAINING_H

#include "algo/select.h"
#include "predict/model.h"
#include "transport/sim/sim.h"

/* This rank's computation takes factor times as long. */
struct rueda_straggler {
    int rank;
    double factor;
};

struct rueda_training {
    const struct rueda_model *model; /* borrowed, like all others */
    struct rueda_sim_net net;
    struct rueda_select select; /* which algorithm is used for what */
    rueda_compression compression;
    double compute_ns; /* of a step of one rank, alone */
    double jitter;     /* each takes up to this part more or less, at random */
    int steps;         /* at least 2: the first one negotiates names */
    uint64_t seed;
    size_t fusion_bytes;
    uint64_t overhead_ns; /* of a rank, for each message */
    double work_bytes_per_s;
    const struct rueda_straggler *stragglers;
    int straggler_count;
    const struct rueda_sim_fault *faults; /* those of ranks and links that are
                                             not there are left out */
    int fault_count;
};

struct rueda_training_result {
    rueda_status status;     /* RUEDA_OK: all ranks have ended all steps */
    double first_ns;         /* the first step */
    double step_ns;          /* the mean of the others */
    double bound_ns;         /* no step can be shorter (bound.h) */
    double over_ns;          /* when the last rank had ended, well or not */
    int failed;              /* ranks that ended because of another one */
    struct rueda_text words; /* of a failure */
    uint64_t digest;         /* stands for all that happened */
    uint64_t events;
};

/* A step's settings as the library has them, for this model on this network.
 * Borrows the model; everything else is copied. */
void rueda_training_default(struct rueda_training *training,
                            const struct rueda_model *model,
                            const struct rueda_sim_net *net);

/* RUEDA_OK: result says how it went. Otherwise there was no memory, or too few
 * descriptors, or a setting cannot be; error has the words. */
rueda_status rueda_training_run(const struct rueda_training *training,
                                struct rueda_training_result *out,
                                struct rueda_text *error);

#endif /* RUEDA_PREDICT_TRAINING_H */
