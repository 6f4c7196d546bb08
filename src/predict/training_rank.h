/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a simulated training, and what all of them share; for the files
 * of this folder only. Everything is used by the thread of the run. */
#ifndef RUEDA_PREDICT_TRAINING_RANK_H
#define RUEDA_PREDICT_TRAINING_RANK_H

#include "engine/engine.h"
#include "op/ticket.h"
#include "predict/training.h"

/* The engine is a real one without its threads: job and segment have only what
 * lanes look at. */
struct training_rank {
    struct rueda_engine engine; /* its lanes; it has no thread */
    struct rueda_job job;
    struct rueda_segment *segment;
    bool is_open;
    rueda_status status;

    struct rueda_ticket *ticket; /* [gradients] */
    int step;
    int submitted; /* gradients of this step, and */
    int ended;
    uint64_t began_ns;
    double compute_ns; /* of this step */
    uint64_t alarm_ns; /* the last one that was set */
    uint64_t first_end_ns;
    uint64_t end_ns; /* of the last step */
};

struct training_run {
    const struct rueda_training *training;
    struct rueda_sim *sim;
    struct rueda_topology topology;
    struct rueda_segment **segments; /* [size] views of shared memory */
    struct training_rank *ranks;     /* [size] */
    int size;
    char *gradients; /* addresses of all, never touched */
    size_t bytes;
};

/* On failure error has words, and rueda_training_rank_leave() frees the rest.
 */
rueda_status rueda_training_rank_open(struct training_run *run, int index,
                                      struct rueda_text *error);

/* For rueda_sim_run(); arg is the run. */
rueda_status rueda_training_rank_start(void *arg, int index);
rueda_status rueda_training_rank_turn(void *arg, int index);
void rueda_training_rank_finish(void *arg, int index, rueda_status status);

/* End all that it has in flight, and free it. */
void rueda_training_rank_leave(struct training_run *run, int index,
                               rueda_status status);

#endif /* RUEDA_PREDICT_TRAINING_RANK_H */
