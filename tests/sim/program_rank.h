/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that carries out its part of a random program, and the scenario in
 * which all of them do. */
#ifndef RUEDA_TESTS_SIM_PROGRAM_RANK_H
#define RUEDA_TESTS_SIM_PROGRAM_RANK_H

#include "base/text.h"
#include "sim/program_data.h"
#include "sim/program_drive.h"
#include "sim/random_check.h"
#include "transport/sim/sim.h"

#define SCRIPT_THREADS 3

#define US ((uint64_t)1000)
#define MS ((uint64_t)1000000)

/*
 * A thread submits its part of a round, and ends its handles; which one of a
 * rank runs next is rolled. A patient one does so in the order of the program,
 * and waits for some before it goes on. As no rank waits for what comes later
 * in the program than what he is going to submit, all get through.
 */
struct thread {
    int order[SCRIPT_OPS]; /* of those that are left to submit */
    int left;
    bool is_patient;
    int awaited; /* -1: it does not wait */
};

struct rank {
    rueda_ctx ctx; /* as much of it as works without a thread of its own */
    struct rueda_job job;
    bool is_open;
    rueda_status status;

    int round;
    struct thread threads[SCRIPT_THREADS];
    int thread_count;
    struct program_op *ops[SCRIPT_OPS]; /* NULL: not submitted */
    bool is_called[SCRIPT_OPS];         /* to be submitted by a callback */
    uint64_t moves;                     /* of threads and callbacks */
    struct program_drive drive;
};

struct scenario {
    struct random_check check;
    struct rueda_sim_settings settings;
    struct rueda_sim *sim;
    struct rueda_topology topology;
    bool has_topology; /* not where all are on one host */
    struct rueda_topology_row rows[SCRIPT_RANKS];
    struct rueda_select select;
    struct rueda_config config;
    size_t fusion_bytes;
    bool is_deadly;
    bool has_delays;
    int size;
    struct script script;
    struct rank rank[SCRIPT_RANKS];
    struct rueda_text left; /* what ranks had not got when they were ended */
    uint64_t trace;         /* stands for all that ended, when and how */
    struct tally {
        size_t right; /* results */
        size_t refused;
        size_t in_vain;   /* refused where they were submitted */
        size_t cancelled; /* with their set */
        size_t failed;    /* ranks that lost one which died */
        size_t helped;    /* turns of threads that had submitted */
        size_t left;      /* turns that were left to the background thread */
    } tally;
};

void program_rank_open(struct scenario *scenario, int index);

/* For rueda_sim_run(); arg is the scenario. */
rueda_status program_rank_start(void *arg, int index);
rueda_status program_rank_turn(void *arg, int index);

/* Add what it has submitted and not got, and what it has not submitted. */
void program_rank_tell(const struct scenario *scenario, int index,
                       struct rueda_text *words);

/* It is over, or has failed, if it has not left yet: end all that it has in
 * flight. */
void program_rank_leave(struct scenario *scenario, int index,
                        rueda_status status);

#endif /* RUEDA_TESTS_SIM_PROGRAM_RANK_H */
