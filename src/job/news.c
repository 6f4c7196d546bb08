/* SPDX-License-Identifier: Apache-2.0 */
#include "job/news.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/process.h"

/* How long a failing rank takes to say so, at most, and how long others wait
 * for it when they have lost somebody. */
#define TELL_NS   ((int64_t)300000000)
#define HEAR_NS   ((int64_t)300000000)
#define GLANCE_NS ((int64_t)2000000)

static size_t key_of(const struct rueda_job *job, char out[32])
{
    int len = job->contact.life > 0
                  ? snprintf(out, 32, "%u/failed", job->contact.life)
                  : snprintf(out, 32, "failed");

    return (size_t)len;
}

rueda_status rueda_news_open(struct rueda_job *job, int64_t deadline_ns,
                             struct rueda_text *error)
{
    struct rueda_store_request watch = {.kind = RUEDA_STORE_WATCH};
    struct rueda_store_reply reply;
    char key[32];

    watch.key_bytes = key_of(job, key);
    watch.key = key;
    return rueda_client_ask(job->client, &watch, deadline_ns, &reply, error);
}

void rueda_news_event(void *arg, const struct rueda_store_reply *event)
{
    struct rueda_job *job = arg;

    if (event->kind == RUEDA_STORE_EVENT_SET)
        rueda_text_set(&job->news, "%.*s",
                       (int)(event->value_bytes < RUEDA_TEXT_BYTES
                                 ? event->value_bytes
                                 : RUEDA_TEXT_BYTES - 1),
                       (const char *)event->value);
}

void rueda_news_tell(struct rueda_job *job, const char *why)
{
    struct rueda_store_request tell = {.kind = RUEDA_STORE_CAS};
    struct rueda_text ignored = {{0}};
    struct rueda_text words = {{0}};
    struct rueda_store_reply reply;
    char key[32];
    char host[64];

    if (job->client == NULL)
        return;
    rueda_process_host(host, sizeof(host));
    rueda_text_set(&words, "rank %d (pid %d on host %s) failed: %s", job->rank,
                   rueda_process_id(), host, why);
    tell.key_bytes = key_of(job, key);
    tell.key = key;
    tell.value = words.chars;
    tell.value_bytes = strlen(words.chars);
    pthread_mutex_lock(&job->news_lock);
    rueda_client_ask(job->client, &tell, rueda_clock_ns() + TELL_NS, &reply,
                     &ignored);
    pthread_mutex_unlock(&job->news_lock);
}

bool rueda_news_has_come(struct rueda_job *job)
{
    bool has_come;

    if (job->client == NULL)
        return false;
    pthread_mutex_lock(&job->news_lock);
    rueda_client_look(job->client);
    has_come = !rueda_text_is_empty(&job->news);
    pthread_mutex_unlock(&job->news_lock);
    return has_come;
}

/* Words and the end of a connection come by different ways. */
static bool await_news(struct rueda_job *job)
{
    int64_t until = rueda_clock_ns() + HEAR_NS;

    while (!rueda_news_has_come(job)) {
        if (job->client == NULL || rueda_clock_ns() >= until)
            return false;
        rueda_sleep_ns(GLANCE_NS);
    }
    return true;
}

bool rueda_news_hear(struct rueda_job *job, struct rueda_text *words)
{
    if (!await_news(job))
        return false;
    /* The first words stay as they are. */
    rueda_text_add(words, "%s", job->news.chars);
    return true;
}
