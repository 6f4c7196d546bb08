/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulator consists of; for the files of this folder only.
 *
 * A message is joined with its receive as soon as both have been posted, in the
 * order of sends, whatever overtakes what on the way: so messages of one tag
 * come in order. It lives in the list of the end that sends it:
 *
 *     HELD      stays with the sender: no credit, no receive
 *     GRANTED   the sender is about to learn that it may go
 *     FLYING    on its way, its bytes are a copy
 *     HERE      has arrived, no receive is posted for it yet
 */
#ifndef RUEDA_TRANSPORT_SIM_STATE_H
#define RUEDA_TRANSPORT_SIM_STATE_H

#include <pthread.h>

#include "device/host_kernels.h"
#include "transport/reqs.h"
#include "transport/sim/queue.h"
#include "transport/sim/sim.h"

enum event_kind {
    EVENT_HOP,   /* a message's first byte reaches its next way */
    EVENT_SENT,  /* its last byte has left the sender */
    EVENT_HERE,  /* its last byte has arrived */
    EVENT_GO,    /* a held message may go */
    EVENT_LOST,  /* an end learns that its peer is gone */
    EVENT_WAKE,  /* a rank has time for its next turn */
    EVENT_ALARM, /* a rank wants a turn */
    EVENT_FAULT_BEGIN,
    EVENT_FAULT_END,
    EVENT_FAULT_LIMIT, /* ranks that cannot reach each other give up */
};

/* In the order in which a message goes through them. */
enum message_state {
    MESSAGE_HELD,
    MESSAGE_GRANTED,
    MESSAGE_FLYING,
    MESSAGE_HERE,
};

struct rueda_sim_message {
    struct rueda_sim_message
        *next; /* of the sender's list; or of those to reuse */
    struct rueda_sim_message *prev;
    struct rueda_sim_end *from;
    struct rueda_req *send; /* NULL: has ended */
    struct rueda_req *recv; /* NULL: none yet */
    struct rueda_tag tag;
    size_t len;
    char *bytes; /* owned; NULL: a phantom, or none, or not yet in flight */
    uint64_t tail_ns; /* when the last byte reaches the next way */
    enum message_state state;
    int hop;
    int events;   /* in the queue that name it */
    bool is_gone; /* dropped; only events still name it */
    bool is_end;  /* says that the sender has closed its end */
};

enum end_state {
    END_UNASKED, /* the peer has its end, this rank has not asked for one */
    END_OPEN,
    END_CLOSED,
};

struct rueda_sim_end {
    struct rueda_ep super;
    struct rueda_sim *sim;
    struct rueda_sim_end *other;
    struct rueda_sim_end *next; /* of the same rank */
    int rank;
    enum end_state state;
    bool is_lost;
    struct rueda_reqs recvs; /* no message yet */
    struct rueda_reqs ended; /* outcome in `channel`; for the next progress() */
    struct rueda_sim_message *first; /* sent from here, oldest first */
    struct rueda_sim_message *last;
    size_t under_way; /* bytes of those that are granted, flying or here */
    int waiting;      /* of those that are held or granted */
    int flying;
    bool
        has_been_asked; /* for messages without a receive: they wake the rank */
    bool has_end_come;  /* the last message of `other`, before some others */
};

struct rueda_sim_pair {
    struct rueda_sim_pair *next;
    struct rueda_sim_pair *next_in_bucket;
    struct rueda_sim_end ends[2];
};

struct rueda_sim_way {
    uint64_t free_ns;
    uint64_t latency_ns;
    uint64_t jitter_ns;
    double ns_per_byte;
};

enum turn_state {
    TURN_NONE,
    TURN_LATER, /* by EVENT_WAKE */
    TURN_NOW,   /* in the list `ready` */
};

struct rueda_sim_rank {
    struct rueda_sim_end *ends;
    int lost; /* of them */
    bool is_dead;
    bool is_gone; /* has left */
    bool is_running;
    bool has_started;
    enum turn_state turn;
    double slowness;
    uint64_t busy_ns; /* until then */
    struct rueda_kernels kernels;
    struct rueda_meter meter;
    uint64_t charged; /* of the meter */
};

struct rueda_sim_trouble {
    struct rueda_sim_fault what;
    struct rueda_sim_trouble *next;
};

#define MESSAGES_A_BLOCK 256

struct rueda_sim_block {
    struct rueda_sim_block *next;
    struct rueda_sim_message messages[MESSAGES_A_BLOCK];
};

struct rueda_sim {
    struct rueda_sim_settings settings;
    int size;
    pthread_mutex_t lock; /* guards everything outside of a run */
    struct rueda_dice dice;
    uint64_t now_ns;
    uint64_t digest;
    uint64_t events;
    struct rueda_sim_queue queue;
    bool is_short_of_memory; /* an event could not be kept */

    struct rueda_sim_rank *ranks;    /* [size] */
    struct rueda_sim_way *ways;      /* as net.h numbers them */
    struct rueda_sim_pair **buckets; /* [bucket_mask + 1], by both ranks; of
                                        equal ones the newest comes first */
    uint64_t bucket_mask;
    struct rueda_sim_pair *pairs; /* all, until the end */
    struct rueda_sim_trouble *troubles;
    struct rueda_sim_block *blocks;
    struct rueda_sim_message *unused;

    const struct rueda_sim_program *program; /* NULL: no run is on */
    int running;
    int *ready; /* [2 * size] ranks to be given a turn now */
    int ready_count;
    uint64_t began_ns;
    uint64_t ended_ns; /* of the rank that took longest */
};

/* ---- sim.c ------------------------------------------------------------ */

void rueda_sim_push(struct rueda_sim *sim, uint64_t at_ns, enum event_kind kind,
                    void *subject, int number);

/* One more number of all that happens. */
static inline void rueda_sim_note(struct rueda_sim *sim, uint64_t number)
{
    sim->digest = rueda_hash_mix(sim->digest * 3 + number);
}

/* Lets the next thing happen. False: there is nothing. */
bool rueda_sim_step(struct rueda_sim *sim);

/* ---- end.c ------------------------------------------------------------ */

/* The request has ended; its owner learns it now, or by its progress(). */
void rueda_sim_end_complete(struct rueda_sim_end *end, struct rueda_req *req,
                            rueda_status status);

/* The peer is gone: ends all that waits for it. */
void rueda_sim_end_lose(struct rueda_sim_end *end);

/* Says farewell on behalf of an end. */
void rueda_sim_end_shut(struct rueda_sim_end *end);

/* Is there a message that has arrived and for which no receive is posted? */
bool rueda_sim_end_has_mail(const struct rueda_sim_end *end);

/* ---- travel.c --------------------------------------------------------- */

struct rueda_sim_message *rueda_sim_message_new(struct rueda_sim_end *from);
void rueda_sim_message_drop(struct rueda_sim_message *message);

/* On its way, as soon as its rank has time. */
void rueda_sim_message_launch(struct rueda_sim_message *message);

/* Is there an earlier one of its tag that has come no further than this? */
bool rueda_sim_message_is_behind(const struct rueda_sim_message *message,
                                 enum message_state state);

/* A new one: on its way now, or when it may. */
void rueda_sim_message_send(struct rueda_sim_message *message);

/* May go; the sender learns it after the latency. */
void rueda_sim_message_grant(struct rueda_sim_message *message);

/* Hand the message over to its receive; it is over then. */
rueda_status rueda_sim_message_deliver(struct rueda_sim_message *message);

void rueda_sim_message_event(struct rueda_sim_message *message,
                             enum event_kind kind);

/* ---- fault.c ---------------------------------------------------------- */

void rueda_sim_trouble_event(struct rueda_sim *sim,
                             struct rueda_sim_trouble *trouble,
                             enum event_kind kind);

/* When two ranks can reach each other: now, or later, or never. */
uint64_t rueda_sim_trouble_until(const struct rueda_sim *sim, int rank_a,
                                 int rank_b);

/* Two ranks have just met: what they will learn of deaths and cuts. */
void rueda_sim_trouble_meet(struct rueda_sim *sim, struct rueda_sim_pair *pair);

/* ---- run.c ------------------------------------------------------------ */

/* The rank has done so much more: it is busy for longer. */
void rueda_sim_rank_charge(struct rueda_sim *sim, int rank, int messages);

/* Something has happened to the rank. */
void rueda_sim_rank_touch(struct rueda_sim *sim, int rank);

/* The event EVENT_WAKE. */
void rueda_sim_rank_wake(struct rueda_sim *sim, int rank);

/* The rank's part of the run is over. */
void rueda_sim_rank_end(struct rueda_sim *sim, int rank, rueda_status status);

#endif /* RUEDA_TRANSPORT_SIM_STATE_H */
