/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in virtual time: thousands of ranks in one process and without
 * threads, whose endpoints keep the contract of transport.h. What is sent takes
 * its time on the links of net.h; links fail, ranks die, all by one seed, and
 * the same seed gives the same run.
 *
 * Two ways to use it. rueda_sim_run() drives everything: it lets happen what
 * comes next and gives a turn to the ranks that it happened to. Otherwise,
 * where the caller uses rueda_ep_progress() as with any transport, that call
 * lets the next thing happen if there is nothing else to report.
 *
 * The first way is for one thread. In the second, a lock lets each rank have a
 * thread of its own (the order is then theirs and not repeatable).
 */
#ifndef RUEDA_TRANSPORT_SIM_SIM_H
#define RUEDA_TRANSPORT_SIM_SIM_H

#include "device/host.h"
#include "transport/sim/dice.h"
#include "transport/sim/net.h"
#include "transport/transport.h"

#define RUEDA_SIM_NEVER UINT64_MAX

struct rueda_sim;

struct rueda_sim_settings {
    struct rueda_sim_net net;
    uint64_t seed;

    /* Lengths travel, bytes do not, but for those of control messages: buffers
     * are never touched, nor does arithmetic happen in the device of
     * rueda_sim_device(). */
    bool is_phantom;

    /* What a rank spends on each message that it sends or receives, and how
     * fast it computes, in bytes of results; 0: in no time. */
    uint64_t overhead_ns;
    double work_bytes_per_s;

    uint64_t skew_ns; /* ranks start within this time, at random */

    /* At most this much is in flight from one rank to another without a receive
     * that waits for it; what exceeds it stays with the sender. */
    size_t credit_bytes;

    uint64_t detect_ns; /* from a death until the peers know of it */
    uint64_t limit_ns;  /* peers that cannot reach each other give up then */

    /* For one run: ranks that still run afterwards end with a timeout. */
    uint64_t run_limit_ns;
    uint64_t run_limit_events;
};

/* For this network: 4 MiB of credit, deaths seen after 1 ms, 3 s of patience,
 * no limits to a run, no costs in a rank, no skew, seed 1. */
struct rueda_sim_settings
rueda_sim_settings_default(const struct rueda_sim_net *net);

rueda_status rueda_sim_open(const struct rueda_sim_settings *settings,
                            struct rueda_sim **out_sim,
                            struct rueda_text *error);

/* After all endpoints have been closed. */
void rueda_sim_close(struct rueda_sim *sim);

int rueda_sim_size(const struct rueda_sim *sim);
uint64_t rueda_sim_now(const struct rueda_sim *sim);
uint64_t rueda_sim_events(const struct rueda_sim *sim);

/* The virtual time that the last run took. */
uint64_t rueda_sim_took(const struct rueda_sim *sim);

/* Stands for all that has happened, when, and for all bytes that arrived. */
uint64_t rueda_sim_digest(const struct rueda_sim *sim);

/* For rueda_mesh_init(), with the simulator as owner; the mesh has its size. */
rueda_status rueda_sim_connect(struct rueda_mesh *mesh, int peer,
                               struct rueda_ep **out_ep);

/* This rank's device, for struct rueda_place. Its work costs it time. */
const struct rueda_device *rueda_sim_device(struct rueda_sim *sim, int rank);

/* This rank has failed and closed its endpoints: a rank that still
 * connects to it, or that made an end which this rank never asked for, finds it
 * lost. */
void rueda_sim_leave(struct rueda_sim *sim, int rank);

/* The first peer that this rank has lost, or -1. As rueda_mesh_progress()
 * would tell, but without a look at every endpoint. */
int rueda_sim_lost_peer(const struct rueda_sim *sim, int rank);

/* ---- Bad days --------------------------------------------------------- */

typedef enum rueda_sim_fault_kind {
    RUEDA_SIM_KILL,      /* rank dies at from_ns */
    RUEDA_SIM_SLOW,      /* rank takes factor times as long for what it does */
    RUEDA_SIM_UNPLUG,    /* link number `index` carries nothing */
    RUEDA_SIM_PARTITION, /* hosts that are apart reach no others */
} rueda_sim_fault_kind;

struct rueda_sim_fault {
    rueda_sim_fault_kind kind;
    uint64_t from_ns;
    uint64_t until_ns; /* or RUEDA_SIM_NEVER */
    int rank;
    double factor;
    rueda_sim_link link;
    int index;
    const bool *is_apart; /* [hosts], copied */
};

/* From now on or later. RUEDA_ERR_INVALID: there is no such rank, link, time
 * or factor. */
rueda_status rueda_sim_add_fault(struct rueda_sim *sim,
                                 const struct rueda_sim_fault *fault);

/* ---- Running ---------------------------------------------------------- */

/* What the ranks do. */
struct rueda_sim_program {
    void *arg;

    /* Begin, and go on, as far as it goes without waiting. RUEDA_IN_PROGRESS:
     * again when something has happened to the rank. */
    rueda_status (*start)(void *arg, int rank);
    rueda_status (*turn)(void *arg, int rank);

    /* Called once for each rank: with what start() or turn() returned, with
     * RUEDA_ERR_CLOSED for one that has died, or with RUEDA_ERR_TIMEOUT for
     * one that would wait for ever. */
    void (*finish)(void *arg, int rank, rueda_status status);
};

/* For a rank in its own turn: it is at work on something else for this time,
 * and has another turn then, whatever happens. */
void rueda_sim_spend(struct rueda_sim *sim, int rank, uint64_t ns);

/* For a rank in its own turn: it has another turn at this time, or as soon as
 * it has time for one then. Meanwhile it is not busy. */
void rueda_sim_alarm(struct rueda_sim *sim, int rank, uint64_t at_ns);

/*
 * Run the program on all ranks that are alive, until all have ended. RUEDA_OK:
 * each by itself, well or not. RUEDA_ERR_TIMEOUT: some had to be ended, and why
 * says which ranks waited for which. What is in flight at the end is still so
 * in the next run.
 */
rueda_status rueda_sim_run(struct rueda_sim *sim,
                           const struct rueda_sim_program *program,
                           struct rueda_text *why);

#endif /* RUEDA_TRANSPORT_SIM_SIM_H */
