/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The council of ranks of several hosts: what they say are keys of the store
 * below one prefix, which all watch, and each key is written once. The store
 * numbers changes, so that all read the same words in the same order.
 *
 * A rank says one word after the other, for a client has one question in flight
 * that it does not wait for. Words about ranks that are gone come first, as the
 * others can do nothing before they know.
 *
 * All under failure_lock, which the client is under.
 */
#define RUEDA_LOG_TAG "job"

#include "job/council.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "job/ballot.h"
#include "job/failure_report.h"
#include "os/clock.h"

/* How long a rank that leaves waits for the store to hear that. */
#define LEAVE_NS RUEDA_MS(300)

struct say {
    char key[RUEDA_STORE_KEY_BYTES + 1];
    size_t key_bytes;
    unsigned char value[RUEDA_BALLOT_VALUE_BYTES];
    size_t value_bytes;
};

struct rueda_store_council {
    struct rueda_ballot ballot;
    char prefix[32];
    size_t prefix_bytes;
    int seat;                /* this rank's */
    _Atomic uint32_t called; /* the latest term that members freeze for */
    bool *is_accused;        /* [size] this rank has said that it is gone */
    struct say *says;        /* [room], a ring; the first may be in flight */
    int room;
    int first;
    int count;
    bool is_sent;
    struct rueda_text lost; /* of the last rank that was gone without a word */
};

/* ---- Life --------------------------------------------------------------- */

static rueda_status watch(struct rueda_job *job, int64_t deadline_ns,
                          struct rueda_text *error)
{
    const struct rueda_store_council *council = job->store_council;
    struct rueda_store_request request = {.kind = RUEDA_STORE_WATCH,
                                          .key = council->prefix,
                                          .key_bytes = council->prefix_bytes};
    struct rueda_store_reply reply;

    return rueda_client_ask(job->client, &request, deadline_ns, &reply, error);
}

static void council_free(struct rueda_store_council *council)
{
    rueda_ballot_fini(&council->ballot);
    free(council->is_accused);
    free(council->says);
    free(council);
}

static struct rueda_store_council *council_new(const struct rueda_job *job)
{
    const size_t size = (size_t)job->formation->size;
    struct rueda_store_council *council = calloc(1, sizeof(*council));
    int len;

    if (council == NULL)
        return NULL;
    len = job->contact.life > 0
              ? snprintf(council->prefix, sizeof(council->prefix), "%u/repair/",
                         job->contact.life)
              : snprintf(council->prefix, sizeof(council->prefix), "repair/");
    council->prefix_bytes = (size_t)len;
    council->seat = job->formation->rank;
    /* One about each rank; and of each term two, the second after the first
     * has been heard. */
    council->room = job->formation->size + 4;
    council->is_accused = calloc(size, sizeof(bool));
    council->says = calloc((size_t)council->room, sizeof(struct say));
    if (rueda_ballot_init(&council->ballot, job->formation->size) == RUEDA_OK &&
        council->is_accused != NULL && council->says != NULL)
        return council;
    council_free(council);
    return NULL;
}

rueda_status rueda_store_council_open(struct rueda_job *job,
                                      int64_t deadline_ns,
                                      struct rueda_text *error)
{
    job->store_council = council_new(job);
    if (job->store_council == NULL) {
        rueda_text_set(error, "no memory to agree with %d ranks",
                       job->formation->size);
        return RUEDA_ERR_NOMEM;
    }
    rueda_client_hurry(job->client);
    return watch(job, deadline_ns, error);
}

void rueda_store_council_close(struct rueda_job *job)
{
    if (job->store_council != NULL)
        council_free(job->store_council);
    job->store_council = NULL;
}

/* ---- Words -------------------------------------------------------------- */

static size_t key_of(const struct rueda_store_council *council,
                     const struct rueda_ballot_word *word, char *out)
{
    memcpy(out, council->prefix, council->prefix_bytes);
    return council->prefix_bytes +
           rueda_ballot_write_key(word, out + council->prefix_bytes);
}

size_t rueda_store_council_will(const struct rueda_job *job, char *out)
{
    const struct rueda_store_council *council = job->store_council;
    const struct rueda_ballot_word word = {.kind = RUEDA_BALLOT_GONE,
                                           .member = council->seat,
                                           .speaker = council->seat};

    return key_of(council, &word, out);
}

/* There is always room: see council_new(). */
static void say(struct rueda_store_council *council,
                const struct rueda_ballot_word *word)
{
    struct say *at;

    if (council->count == council->room)
        return;
    at = &council->says[(council->first + council->count++) % council->room];
    at->key_bytes = key_of(council, word, at->key);
    at->value_bytes = rueda_ballot_write_value(word, at->value);
}

/* Send the next one when the one before has been heard. */
static void speak(struct rueda_job *job)
{
    struct rueda_store_council *council = job->store_council;
    const struct say *next;
    struct rueda_store_request request = {.kind = RUEDA_STORE_SET};
    const rueda_status status = rueda_client_posted(job->client);

    if (status == RUEDA_IN_PROGRESS || !rueda_text_is_empty(&job->failure))
        return;
    if (council->is_sent && status != RUEDA_OK) {
        rueda_text_set(&job->failure,
                       "rank %d cannot agree with the others on how to go on: "
                       "the store of the job is not the one that it was",
                       job->formation->rank);
        return;
    }
    if (council->is_sent) {
        council->first = (council->first + 1) % council->room;
        council->count--;
        council->is_sent = false;
    }
    if (council->count == 0)
        return;
    next = &council->says[council->first];
    request.key = next->key;
    request.key_bytes = next->key_bytes;
    request.value = next->value;
    request.value_bytes = next->value_bytes;
    council->is_sent = true;
    rueda_client_post(job->client, &request);
}

static void accuse(struct rueda_job *job, int rank)
{
    struct rueda_store_council *council = job->store_council;
    const struct rueda_ballot_word word = {.kind = RUEDA_BALLOT_GONE,
                                           .member =
                                               job->formation->seats[rank],
                                           .speaker = council->seat};

    if (council->is_accused[word.member] ||
        rueda_ballot_is_gone(&council->ballot, word.member))
        return;
    council->is_accused[word.member] = true;
    say(council, &word);
}

/* Processes that have ended, as their systems say, and hosts that are silent.
 * The store knows of the end of a process by that of its connection; but if it
 * was about to tell that rank something, the system there resets the
 * connection, and then it is patient, for a network may do that to a rank that
 * is there. */
static void see_ends(struct rueda_job *job)
{
    const struct rueda_formation *formation = job->formation;
    struct rueda_hub *hub = job->network;

    for (int rank = 0; rank < formation->size; rank++) {
        const int member = formation->members[rank];
        const int seat = formation->seats[rank];
        bool is_gone;

        if (member >= 0)
            is_gone = rueda_segment_is_gone(job->segment, member);
        else
            is_gone =
                hub->ops->is_silent(hub, seat) || hub->ops->is_gone(hub, seat);

        if (is_gone && rank != formation->rank)
            accuse(job, rank);
    }
}

/* ---- What the store says ------------------------------------------------ */

/* A rank that was lost: as it, or the store, or others say. */
static void note_loss(struct rueda_store_council *council,
                      const struct rueda_ballot_word *word,
                      const struct rueda_store_reply *event)
{
    council->lost = (struct rueda_text){{0}};
    if (word->speaker == word->member && event->value_bytes > 0)
        rueda_text_set(&council->lost, "%.*s",
                       (int)(event->value_bytes < RUEDA_TEXT_BYTES
                                 ? event->value_bytes
                                 : RUEDA_TEXT_BYTES - 1),
                       (const char *)event->value);
    else
        rueda_text_set(&council->lost, "rank %d is gone", word->member);
    rueda_text_clean(&council->lost);
}

bool rueda_store_council_event(struct rueda_job *job,
                               const struct rueda_store_reply *event)
{
    struct rueda_store_council *council = job->store_council;
    struct rueda_ballot *ballot;
    struct rueda_ballot_word word;

    if (council == NULL || event->key_bytes < council->prefix_bytes ||
        memcmp(event->key, council->prefix, council->prefix_bytes) != 0)
        return false;
    ballot = &council->ballot;
    if (event->kind != RUEDA_STORE_EVENT_SET ||
        !rueda_ballot_read((const char *)event->key + council->prefix_bytes,
                           event->key_bytes - council->prefix_bytes,
                           event->value, event->value_bytes, ballot->size,
                           &word)) {
        log_warn("the store has what no rank of this job says; it is left out");
        return true;
    }
    log_debug("the store has heard %.*s",
              (int)(event->key_bytes - council->prefix_bytes),
              (const char *)event->key + council->prefix_bytes);
    if (word.kind == RUEDA_BALLOT_GONE)
        note_loss(council, &word, event);
    rueda_ballot_count(ballot, &word);
    if (rueda_ballot_is_called(ballot, ballot->now.term - 1))
        atomic_store(&council->called, ballot->now.term);
    return true;
}

void rueda_store_council_poll(struct rueda_job *job)
{
    if (job->store_council == NULL)
        return;
    rueda_failure_has_come(job); /* takes in all events */
    pthread_mutex_lock(&job->failure_lock);
    speak(job);
    pthread_mutex_unlock(&job->failure_lock);
}

void rueda_store_council_leave(struct rueda_job *job)
{
    struct rueda_store_request request = {.kind = RUEDA_STORE_SET};
    struct rueda_text ignored = {{0}};
    struct rueda_store_reply reply;
    char key[RUEDA_STORE_KEY_BYTES + 1];

    if (job->store_council == NULL || job->client == NULL)
        return;
    request.key_bytes = rueda_store_council_will(job, key);
    request.key = key;
    pthread_mutex_lock(&job->failure_lock);
    rueda_client_ask(job->client, &request, rueda_clock_ns() + LEAVE_NS, &reply,
                     &ignored);
    pthread_mutex_unlock(&job->failure_lock);
}

/* ---- The council -------------------------------------------------------- */

static bool is_called(const struct rueda_formation *formation)
{
    return atomic_load_explicit(&formation->job->store_council->called,
                                memory_order_relaxed) > formation->term;
}

static bool is_spoilt(struct rueda_job *job)
{
    bool has_lost;

    pthread_mutex_lock(&job->failure_lock);
    has_lost = rueda_ballot_has_lost(&job->store_council->ballot);
    pthread_mutex_unlock(&job->failure_lock);
    return has_lost;
}

static void freeze(struct rueda_formation *from,
                   const struct rueda_standing *standing)
{
    struct rueda_job *job = from->job;
    struct rueda_hub *hub = job->network;
    struct rueda_ballot_word word = {.kind = RUEDA_BALLOT_FROZEN,
                                     .term = from->term + 1,
                                     .member = job->store_council->seat,
                                     .speaker = job->store_council->seat,
                                     .boundaries = standing->boundaries};

    memcpy(word.has, standing->has, sizeof(word.has));
    for (int rank = 0; rank < from->size; rank++)
        if (from->members[rank] < 0)
            hub->ops->await(hub, from->seats[rank]);
    pthread_mutex_lock(&job->failure_lock);
    see_ends(job);
    say(job->store_council, &word);
    pthread_mutex_unlock(&job->failure_lock);
    rueda_store_council_poll(job);
}

/* Has a rank of this host failed, and said so? The job ends then. */
static bool has_failed(const struct rueda_formation *formation)
{
    for (int rank = 0; rank < formation->size; rank++)
        if (formation->members[rank] >= 0 &&
            rueda_segment_has_failed(formation->segment,
                                     formation->members[rank]))
            return true;
    return false;
}

/* Is it over for this rank? Perhaps with words. Under the lock. */
static bool is_over(struct rueda_job *job)
{
    const struct rueda_store_council *council = job->store_council;

    job->is_removed = rueda_ballot_is_gone(&council->ballot, council->seat);
    if (job->is_removed)
        rueda_text_set(&job->failure,
                       "the other ranks go on without rank %d: its host was "
                       "silent for them",
                       job->formation->rank);
    return !rueda_text_is_empty(&job->failure) || has_failed(job->formation);
}

static void attend(struct rueda_job *job)
{
    job->network->ops->tend(job->network);
    pthread_mutex_lock(&job->failure_lock);
    see_ends(job);
    pthread_mutex_unlock(&job->failure_lock);
    rueda_store_council_poll(job);
}

/* A member of `from` that is there and has not frozen, or -1. */
static int find_awaited(const struct rueda_formation *from)
{
    const struct rueda_ballot *ballot = &from->job->store_council->ballot;

    for (int rank = 0; rank < from->size; rank++)
        if (!rueda_ballot_is_frozen(ballot, from->seats[rank]) &&
            !rueda_ballot_is_gone(ballot, from->seats[rank]))
            return rank;
    return -1;
}

static rueda_status decide(struct rueda_formation *from,
                           struct rueda_verdict *out, int *out_awaited)
{
    struct rueda_job *job = from->job;
    const struct rueda_ballot *ballot = &job->store_council->ballot;
    const uint32_t term = from->term + 1;
    const struct rueda_ballot_result *result;
    rueda_status status = RUEDA_OK;

    attend(job);
    pthread_mutex_lock(&job->failure_lock);
    result = rueda_ballot_vote(ballot, term);
    if (is_over(job)) {
        status = RUEDA_ERR_PEER_LOST;
    } else if (result == NULL) {
        *out_awaited = find_awaited(from);
        status = RUEDA_IN_PROGRESS;
    } else {
        memcpy(out->limits, result->limits, sizeof(out->limits));
        out->last_boundary = result->last_boundary;
        out->count = 0;
        for (int rank = 0; rank < from->size; rank++)
            if (rueda_ballot_survives(ballot, term, from->seats[rank]))
                out->survivors[out->count++] = rank;
    }
    pthread_mutex_unlock(&job->failure_lock);
    return status;
}

static void offer(struct rueda_formation *next)
{
    struct rueda_job *job = next->job;
    const struct rueda_ballot_word word = {.kind = RUEDA_BALLOT_OFFERED,
                                           .term = next->term,
                                           .member = job->store_council->seat,
                                           .speaker = job->store_council->seat};

    for (int rank = 0; rank < next->size; rank++)
        if (next->members[rank] < 0)
            job->network->ops->await(job->network, next->seats[rank]);
    pthread_mutex_lock(&job->failure_lock);
    say(job->store_council, &word);
    pthread_mutex_unlock(&job->failure_lock);
    rueda_store_council_poll(job);
}

static rueda_status meet(struct rueda_formation *next, struct rueda_text *error)
{
    struct rueda_job *job = next->job;
    rueda_status status;

    attend(job);
    pthread_mutex_lock(&job->failure_lock);
    status = is_over(job)
                 ? RUEDA_ERR_CLOSED
                 : rueda_ballot_begin(&job->store_council->ballot, next->term);
    pthread_mutex_unlock(&job->failure_lock);
    return status == RUEDA_OK ? rueda_formation_meet(next, error) : status;
}

/* What is known of the rank that was lost says more than that it was. */
static void refuse(struct rueda_job *job, const char *words)
{
    struct rueda_text why = {{0}};

    rueda_store_council_poll(job);
    pthread_mutex_lock(&job->failure_lock);
    why = job->store_council->lost;
    pthread_mutex_unlock(&job->failure_lock);
    rueda_text_set(&why, "a rank is lost");
    rueda_text_add(&why, ", and the others cannot go on without it: %s", words);
    rueda_failure_spread(job, -1, why.chars);
}

const struct rueda_council_ops rueda_council_by_store = {
    .takes_barriers = true,
    .is_called = is_called,
    .is_spoilt = is_spoilt,
    .freeze = freeze,
    .decide = decide,
    .offer = offer,
    .meet = meet,
    .refuse = refuse,
};
