/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job, as one of its ranks sees it: how it started, and what outlives the
 * changes of its membership: settings, keys, the store, the segment, the hubs.
 * Which ranks there are, and where, is in its formation (formation.h).
 *
 * Opening blocks until all ranks are there or the deadline has passed. After
 * that a job belongs to the holder of the engine's token.
 */
#ifndef RUEDA_JOB_JOB_H
#define RUEDA_JOB_JOB_H

#include <rueda/rueda.h>

#include <pthread.h>

#include "auth/key.h"
#include "base/config.h"
#include "base/text.h"
#include "job/formation.h"
#include "job/introduce.h"
#include "job/seat.h"
#include "job/set_text.h"
#include "job/store/client.h"
#include "segment/segment.h"
#include "transport/transport.h"

/* Of the key under which the store has a failure. */
#define RUEDA_FAILURE_KEY_BYTES 32

struct rueda_job {
    struct rueda_config config;
    struct rueda_formation *formation; /* in force; while the job opens, the
                                          one that it makes */
    char sets[RUEDA_SET_WORD_BYTES];   /* that it starts with (set_text.h) */

    /* A job of several hosts: the store, which stays. */
    int *ranks; /* of this host, if there is a topology */
    struct rueda_contact contact;
    struct rueda_client
        *client; /* with what follows, under failure_lock once we run */
    struct rueda_text over;    /* why the term ended before it began; or "" */
    struct rueda_text failure; /* of another host (failure_report.h) */
    struct rueda_text told;    /* of this rank, and until when the store may
                                  take to answer (0: it does not have to) */
    int64_t telling_until_ns;
    char failure_key[RUEDA_FAILURE_KEY_BYTES];
    pthread_mutex_t failure_lock;

    const struct rueda_council_ops
        *council; /* how ranks agree on the next term (council.h), or NULL: they
                     do not */
    struct rueda_store_council *store_council; /* or NULL: it needs no store */
    bool is_removed; /* the others go on without this rank */

    struct rueda_segment *segment; /* of the ranks of this host */
    struct rueda_hub *threads;     /* messages between ranks that are threads,
                                      or NULL */
    struct rueda_hub *network;     /* messages to other hosts, or NULL */

    struct rueda_key object_key; /* of objects that are unpickled */
};

/* How many ranks run collectives: the first ones. The others are servers. */
static inline int rueda_job_workers(const struct rueda_job *job)
{
    return job->formation->size - job->config.servers;
}

/* What the caller of rueda_init() says. */
struct rueda_job_args {
    struct rueda_seat_query query;
    int (*exchange)(void *arg, void *bytes, size_t len); /* or NULL */
    void *exchange_arg;
    const char *sets; /* process sets from the start, as text (set_text.h), the
                         same on all ranks; NULL: none */
};

/*
 * Join the job in which we have a seat. On failure error has the words and
 * nothing is left.
 */
rueda_status rueda_job_open(const struct rueda_config *config,
                            const struct rueda_job_args *args,
                            struct rueda_job **out, struct rueda_text *error);

/* All ranks of a job as threads: out[size]. */
rueda_status rueda_job_open_threads(const struct rueda_config *config, int size,
                                    struct rueda_job **out,
                                    struct rueda_text *error);

void rueda_job_close(struct rueda_job *job);

/* The next formation, which has met and is taken, is in force; the one before
 * lives on as long as others hold it. */
void rueda_job_follow(struct rueda_job *job, struct rueda_formation *next);

/* In the child of a fork: close descriptors and touch nothing else. */
void rueda_job_forked(struct rueda_job *job);

/* Where a rank runs; "?" if it is none, or the start has not found out yet.
 * Valid as long as the job. */
const char *rueda_job_host(const struct rueda_job *job, int rank);

/* Is it known here why the connection with a rank is lost, so that no other
 * rank can tell more? */
bool rueda_job_is_certain(const struct rueda_job *job, int rank);

/* Words for that: "host b has been silent for 10.0 s, and with it rank 3". */
void rueda_job_why_lost(const struct rueda_job *job, int rank,
                        struct rueda_text *words);

/* This rank has failed: ranks of other hosts, which may wait for it, see their
 * connections end, and get these words, which may be empty. */
void rueda_job_hang_up(struct rueda_job *job, const char *words);

#endif /* RUEDA_JOB_JOB_H */
