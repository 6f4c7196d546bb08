/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a rank of another host has failed, in its own words. They travel through
 * the store of a job of several hosts, under the key "failed"; every rank
 * watches it, so the words are on their way before the failing rank has gone.
 * For a rank that dies without a word the store publishes the will that every
 * rank leaves there. The first words stay. If the store is lost, that is
 * reported, too; words then come with the end of a pulse (a hub's last_words).
 *
 * Reporting and waiting for reports are begun by one call and continued by
 * another, which is called until it returns that it is done. Neither waits, so
 * that the holder of the engine's token can do both between other duties; it
 * calls again within RUEDA_FAILURE_POLL_NS, or when a socket wakes it.
 */
#ifndef RUEDA_JOB_FAILURE_REPORT_H
#define RUEDA_JOB_FAILURE_REPORT_H

#include "base/duration.h"
#include "job/job.h"

/* Begin to watch, and leave a will. */
rueda_status rueda_failure_open(struct rueda_job *job, int64_t deadline_ns,
                                struct rueda_text *error);

/* How soon to call again for what is not done yet. */
#define RUEDA_FAILURE_POLL_NS RUEDA_MS(2)

/* Begin to report to the other hosts why this rank has failed, unless another
 * rank has reported before. Does nothing in a job of one host. For the first
 * failure of a context only. Any thread. */
void rueda_failure_tell(struct rueda_job *job, const char *why);

/* Begin to report to all ranks that a rank is lost, in these words, unless
 * another rank has reported before; not where the store is on the same silent
 * host. As rueda_failure_tell(). */
void rueda_failure_spread(struct rueda_job *job, int lost, const char *words);

/* Continue to report. True: the store has the words, or it did not take them in
 * 300 ms, or there are none. Any thread. */
bool rueda_failure_is_told(struct rueda_job *job);

/* Wait until they are told. Any thread that does not hold the engine's token.
 */
void rueda_failure_await_told(struct rueda_job *job);

/* Has another rank reported? Does not wait. The holder of the engine's token.
 */
bool rueda_failure_has_come(struct rueda_job *job);

/* What a rank that has lost a peer waits for. */
typedef enum rueda_hearing_stage {
    RUEDA_HEARING_WORDS,  /* of the rank that failed */
    RUEDA_HEARING_ANSWER, /* of the store, to a question */
    RUEDA_HEARING_HUB,    /* of our hub, about the store's silent host */
} rueda_hearing_stage;

struct rueda_hearing {
    rueda_hearing_stage stage;
    int64_t begin_ns;
    int64_t until_ns; /* of the stage */
};

/* A peer is lost: begin to wait for the words of the rank that failed. */
void rueda_failure_hear(struct rueda_hearing *hearing);

/*
 * Continue to wait for words. True: it is over, after 300 ms without words and
 * after 1.3 s where the store does not answer, because it may be on a host that
 * is about to be found silent; *peer is then a rank of that host. If a rank has
 * reported, its words are added: "rank 3 (pid 71 on host b) failed: ...". The
 * holder of the engine's token.
 */
bool rueda_failure_has_heard(struct rueda_job *job,
                             struct rueda_hearing *hearing, int *peer,
                             struct rueda_text *words);

/* The watch's callback; arg is the job. */
void rueda_failure_event(void *arg, const struct rueda_store_reply *event);

#endif /* RUEDA_JOB_FAILURE_REPORT_H */
