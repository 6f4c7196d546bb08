/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a rank of another host has failed, in its own words. They travel through
 * the store of a job of several hosts, under the key "failed"; every rank
 * watches it, so the words are on their way before the failing rank has gone.
 * For a rank that goes without a word the store says so: every rank leaves it a
 * will. The first words stay. If the store is lost, that is reported too; words
 * then come with the end of a pulse (a hub's last_words).
 */
#ifndef RUEDA_JOB_FAILURE_REPORT_H
#define RUEDA_JOB_FAILURE_REPORT_H

#include "job/job.h"

/* Begin to watch, and leave a will. */
rueda_status rueda_failure_open(struct rueda_job *job, int64_t deadline_ns,
                                struct rueda_text *error);

/* Tell the other hosts why this rank has failed, unless somebody has told
 * before. Takes a moment at most; does nothing in a job of one host. Any
 * thread. */
void rueda_failure_tell(struct rueda_job *job, const char *why);

/* Tell all that a rank is lost, in these words, unless somebody has told
 * before; not where the store is on a silent host with it. As
 * rueda_failure_tell(). */
void rueda_failure_spread(struct rueda_job *job, int lost, const char *words);

/* Has another rank told? Does not wait. The holder of the engine's token. */
bool rueda_failure_has_come(struct rueda_job *job);

/*
 * The same after a moment's wait; then its words are added: "rank 3 (pid 71 on
 * host b) failed: ...". If the store does not answer, the wait is longer, for
 * it may be on a host that is about to be found silent; *peer is then a rank of
 * that host. The holder of the engine's token.
 */
bool rueda_failure_hear(struct rueda_job *job, int *peer,
                        struct rueda_text *words);

/* The watch's callback; arg is the job. */
void rueda_failure_event(void *arg, const struct rueda_store_reply *event);

#endif /* RUEDA_JOB_FAILURE_REPORT_H */
