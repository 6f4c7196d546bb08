/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a rank of another host has failed, in its own words. They travel through
 * the store of a job of several hosts, under the key "failed"; every rank
 * watches it, so the words are on their way before the failing rank has gone.
 */
#ifndef RUEDA_JOB_NEWS_H
#define RUEDA_JOB_NEWS_H

#include "job/job.h"

/* Begin to watch. */
rueda_status rueda_news_open(struct rueda_job *job, int64_t deadline_ns,
                             struct rueda_text *error);

/* Tell the other hosts why this rank has failed, unless somebody has told
 * before. Takes a moment at most; does nothing in a job of one host. Any
 * thread. */
void rueda_news_tell(struct rueda_job *job, const char *why);

/* Has another rank told? Does not wait. Any thread. */
bool rueda_news_has_come(struct rueda_job *job);

/* The same after a moment's wait; then its words are added: "rank 3 (pid 71 on
 * host b) failed: ...". Any thread. */
bool rueda_news_hear(struct rueda_job *job, struct rueda_text *words);

/* The watch's callback; arg is the job. */
void rueda_news_event(void *arg, const struct rueda_store_reply *event);

#endif /* RUEDA_JOB_NEWS_H */
