/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How this rank reports its failure to ranks of other hosts, and learns why one
 * of theirs failed. The first failing rank writes its message under one key of
 * the store, which all ranks watch. For a rank that dies without a word the
 * store publishes its will. Nothing waits: requests are posted, and answers are
 * taken when they have come.
 */
#include "job/failure_report.h"

#include "job/council.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "os/clock.h"
#include "os/process.h"

/* How long a failing rank takes to say so, at most, and how long others wait
 * for it when they have lost a peer. */
#define TELL_NS RUEDA_MS(300)
#define HEAR_NS RUEDA_MS(300)

/* For the store to answer; and for a verdict about its host where it does not:
 * the hosts that ask it do so within a second of each other. */
#define ANSWER_NS RUEDA_MS(100)
#define DOUBT_NS  RUEDA_MS(1300)

/* How long a rank whose connection with the store has ended may be without one,
 * which it makes again if it can, until its will is carried out. (Where the
 * connection was cut the store is more patient.) */
#define ABSENT_MS 100

static size_t key_of(const struct rueda_job *job,
                     char out[RUEDA_FAILURE_KEY_BYTES])
{
    int len = job->contact.life > 0
                  ? snprintf(out, RUEDA_FAILURE_KEY_BYTES, "%u/failed",
                             job->contact.life)
                  : snprintf(out, RUEDA_FAILURE_KEY_BYTES, "failed");

    return (size_t)len;
}

/* Have the store publish this if our connection ends without a word. */
static rueda_status leave_will(struct rueda_job *job, int64_t deadline_ns,
                               struct rueda_text *error)
{
    struct rueda_store_request will = {.kind = RUEDA_STORE_WILL,
                                       .time_ms = ABSENT_MS};
    struct rueda_text words = {{0}};
    struct rueda_store_reply reply;
    char key[RUEDA_STORE_KEY_BYTES + 1];
    char host[64];

    rueda_process_host(host, sizeof(host));
    rueda_text_set(&words,
                   "rank %d (pid %d on host %s) is gone: its connection with "
                   "the store ended",
                   job->formation->rank, rueda_process_id(), host);
    will.key_bytes = job->store_council != NULL
                         ? rueda_store_council_will(job, key)
                         : key_of(job, key);
    will.key = key;
    will.value = words.chars;
    will.value_bytes = strlen(words.chars);
    return rueda_client_ask(job->client, &will, deadline_ns, &reply, error);
}

rueda_status rueda_failure_open(struct rueda_job *job, int64_t deadline_ns,
                                struct rueda_text *error)
{
    struct rueda_store_request watch = {.kind = RUEDA_STORE_WATCH};
    struct rueda_store_reply reply;
    rueda_status status;
    char key[RUEDA_FAILURE_KEY_BYTES];

    watch.key_bytes = key_of(job, key);
    watch.key = key;
    status = rueda_client_ask(job->client, &watch, deadline_ns, &reply, error);
    return status == RUEDA_OK ? leave_will(job, deadline_ns, error) : status;
}

void rueda_failure_event(void *arg, const struct rueda_store_reply *event)
{
    struct rueda_job *job = arg;

    if (event->kind != RUEDA_STORE_EVENT_SET)
        return;
    rueda_text_set(&job->failure, "%.*s",
                   (int)(event->value_bytes < RUEDA_TEXT_BYTES
                             ? event->value_bytes
                             : RUEDA_TEXT_BYTES - 1),
                   (const char *)event->value);
    rueda_text_clean(&job->failure);
}

/* Ask the store without waiting, under the lock. */
static void post(struct rueda_job *job, rueda_store_kind kind,
                 const char *words)
{
    struct rueda_store_request request = {.kind = kind};

    request.key_bytes = key_of(job, job->failure_key);
    request.key = job->failure_key;
    request.value = words;
    request.value_bytes = strlen(words);
    rueda_client_post(job->client, &request);
}

/* Only the first failure of a context is reported, so that the words are
 * written once, and the client may borrow them. */
static void say(struct rueda_job *job, const char *words)
{
    pthread_mutex_lock(&job->failure_lock);
    rueda_text_set(&job->told, "%s", words);
    job->telling_until_ns = rueda_clock_ns() + TELL_NS;
    post(job, RUEDA_STORE_CAS, job->told.chars);
    pthread_mutex_unlock(&job->failure_lock);
}

void rueda_failure_tell(struct rueda_job *job, const char *why)
{
    struct rueda_text words = {{0}};
    char host[64];

    if (job->client == NULL)
        return;
    rueda_process_host(host, sizeof(host));
    rueda_text_set(&words, "rank %d (pid %d on host %s) failed: %s",
                   job->formation->rank, rueda_process_id(), host, why);
    say(job, words.chars);
}

/* Of rank 0's host, where the store is. */
static bool has_store(const struct rueda_job *job, int rank)
{
    const struct rueda_topology *topology = job->formation->topology;

    return job->config.store_keeper == RUEDA_STORE_BY_RANK_0 && rank >= 0 &&
           topology->rows[rank].host == topology->rows[0].host;
}

void rueda_failure_spread(struct rueda_job *job, int lost, const char *words)
{
    if (job->client != NULL &&
        !(has_store(job, lost) && rueda_job_is_certain(job, lost)))
        say(job, words);
}

/* If the store itself is lost, report that: it is more useful than a timeout.
 */
static void miss_store(struct rueda_job *job)
{
    if (job->config.store_keeper == RUEDA_STORE_BY_LAUNCHER)
        rueda_text_set(&job->failure,
                       "the launcher, which keeps the store of the "
                       "job, is gone or cannot be reached");
    else
        rueda_text_set(&job->failure,
                       "rank 0 (on host %s) is gone or cannot be reached: the "
                       "connection with the store, which it keeps, ended",
                       rueda_job_host(job, 0));
}

/* Events, or the end of them. */
static void poll_now(struct rueda_job *job)
{
    if (rueda_client_reconnect(job->client) == RUEDA_ERR_PEER_LOST)
        miss_store(job);
}

bool rueda_failure_has_come(struct rueda_job *job)
{
    const char *words = NULL;
    bool has_come;

    if (job->client == NULL)
        return false;
    pthread_mutex_lock(&job->failure_lock);
    poll_now(job);
    if (job->network != NULL)
        words = job->network->ops->last_words(job->network);
    if (words != NULL)
        rueda_text_set(&job->failure, "%s", words);
    has_come = !rueda_text_is_empty(&job->failure);
    pthread_mutex_unlock(&job->failure_lock);
    return has_come;
}

bool rueda_failure_is_told(struct rueda_job *job)
{
    bool is_told;

    if (job->client == NULL)
        return true;
    pthread_mutex_lock(&job->failure_lock);
    if (job->telling_until_ns != 0) {
        poll_now(job);
        if (rueda_client_posted(job->client) != RUEDA_IN_PROGRESS ||
            rueda_clock_ns() >= job->telling_until_ns)
            job->telling_until_ns = 0;
    }
    is_told = job->telling_until_ns == 0;
    pthread_mutex_unlock(&job->failure_lock);
    return is_told;
}

void rueda_failure_await_told(struct rueda_job *job)
{
    while (!rueda_failure_is_told(job))
        rueda_sleep_ns(RUEDA_FAILURE_POLL_NS);
}

/* ---- Hearing ------------------------------------------------------------ */

void rueda_failure_hear(struct rueda_hearing *hearing)
{
    hearing->stage = RUEDA_HEARING_WORDS;
    hearing->begin_ns = rueda_clock_ns();
    hearing->until_ns = hearing->begin_ns + HEAR_NS;
}

/* The words of a failing rank and the end of its connection arrive by different
 * ways: have words come, or is a rank lost of which no rank knows more? */
static bool has_heard(struct rueda_job *job, int *peer,
                      struct rueda_text *words)
{
    struct rueda_hub *hub = job->network;
    int silent = -1;

    if (rueda_failure_has_come(job)) {
        pthread_mutex_lock(&job->failure_lock);
        rueda_text_add(words, "%s", job->failure.chars);
        pthread_mutex_unlock(&job->failure_lock);
        return true;
    }
    if (hub != NULL) {
        hub->ops->tend(hub);
        silent = hub->ops->first_silent(hub);
    }
    if (silent >= 0)
        silent = rueda_formation_rank_of(job->formation, silent);
    if (silent >= 0)
        *peer = silent;
    return silent >= 0;
}

/* Does the store answer at all? A report of this rank that is in flight serves
 * as the question. */
static void ask(struct rueda_job *job)
{
    pthread_mutex_lock(&job->failure_lock);
    if (rueda_client_posted(job->client) != RUEDA_IN_PROGRESS)
        post(job, RUEDA_STORE_GET, "");
    pthread_mutex_unlock(&job->failure_lock);
}

static bool is_answered(struct rueda_job *job)
{
    bool is_answered;

    pthread_mutex_lock(&job->failure_lock);
    is_answered = rueda_client_posted(job->client) == RUEDA_OK;
    pthread_mutex_unlock(&job->failure_lock);
    return is_answered;
}

/* Each stage has a limit of its own: the words of the rank, the answer of the
 * store, a verdict about the store's host. */
bool rueda_failure_has_heard(struct rueda_job *job,
                             struct rueda_hearing *hearing, int *peer,
                             struct rueda_text *words)
{
    if (job->client == NULL || has_heard(job, peer, words))
        return true;
    if (hearing->stage == RUEDA_HEARING_ANSWER && is_answered(job))
        return true;
    if (rueda_clock_ns() < hearing->until_ns)
        return false;
    switch (hearing->stage) {
    case RUEDA_HEARING_WORDS:
        if (rueda_job_is_certain(job, *peer))
            return true;
        ask(job);
        hearing->stage = RUEDA_HEARING_ANSWER;
        hearing->until_ns = rueda_clock_ns() + ANSWER_NS;
        return false;
    case RUEDA_HEARING_ANSWER:
        hearing->stage = RUEDA_HEARING_HUB;
        hearing->until_ns = hearing->begin_ns + DOUBT_NS;
        return false;
    case RUEDA_HEARING_HUB:
        break;
    }
    return true;
}
