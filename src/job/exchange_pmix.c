/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PMIx, through the library that the site has; no header of it is needed. All
 * meet in fences that carry what was put before to all ranks.
 *
 * No call of PMIx can be trusted to end: PMIx_Init waits for ever for a
 * launcher that is stopped, and some launchers ignore the timeout that they are
 * given. So a thread of our own makes all calls, and those that wait for other
 * ranks are of the non-blocking kind, so that it can still finalize in good
 * order when a rank is missing. The caller waits for the thread, but not beyond
 * the deadline.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "auth/key.h"
#include "base/duration.h"
#include "job/exchange.h"
#include "job/pmix.h"
#include "os/clock.h"
#include "os/thread.h"

#define SECOND RUEDA_S(1)

/* How long before the deadline we stop waiting for other ranks, to have time to
 * take leave; a tenth of the time if that is less. */
#define LEAVE_NS (SECOND / 4)

/*
 * Shared by the caller, our thread and threads of the library. The last two
 * may hold on to it for ever if something is stuck; then it is never freed.
 */
struct session {
    struct rueda_pmix_functions pmix;
    struct rueda_pmix_proc me;
    struct rueda_business_card_exchange exchange; /* its arg is not used */
    size_t bytes;
    int64_t deadline_ns; /* a little earlier than the caller's */
    bool has_put;        /* something that is not committed */

    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* The call in flight. The library keeps pointers to who and info until it
     * answers; the rest is guarded by lock. */
    struct rueda_pmix_proc who;
    struct rueda_pmix_info info[2];
    bool is_lent;
    int answer;
    size_t value_bytes; /* more than fit: the rest is missing */
    char value[RUEDA_BUSINESS_CARD_BYTES];

    /* Our thread's until is_over, guarded by lock; then the caller's. */
    bool is_over;
    rueda_status result;
    struct rueda_text error;
    char card[RUEDA_BUSINESS_CARD_BYTES];
};

/* ---- Calls that answer later --------------------------------------------- */

static void set_key(struct rueda_pmix_info *info, const char *key)
{
    memset(info, 0, sizeof(*info));
    memcpy(info->key, key, strlen(key));
}

/* Prepare for a call about rank. The library is asked to give up when we do,
 * so that it cleans up. */
static void lend(struct session *session, uint32_t rank)
{
    int64_t left = session->deadline_ns - rueda_clock_ns();

    session->who = session->me;
    session->who.rank = rank;
    set_key(&session->info[0], "pmix.timeout");
    session->info[0].value.type = RUEDA_PMIX_INT;
    session->info[0].value.data.integer =
        left > 0 ? (int)(left / SECOND) + 1 : 1;
    set_key(&session->info[1], "pmix.collect");
    session->info[1].value.type = RUEDA_PMIX_BOOL;
    session->info[1].value.data.flag = true;
    session->is_lent = true;
}

/* On a thread of the library. */
static void on_value(int status, struct rueda_pmix_value *value, void *arg)
{
    struct session *session = arg;

    pthread_mutex_lock(&session->lock);
    /* A value that comes after the end would not be wiped. */
    if (!session->is_over && status == RUEDA_PMIX_SUCCESS && value != NULL &&
        value->type == RUEDA_PMIX_BYTES && value->data.object.bytes != NULL) {
        size_t size = value->data.object.size;

        session->value_bytes = size;
        memcpy(session->value, value->data.object.bytes,
               size < sizeof(session->value) ? size : sizeof(session->value));
    }
    session->answer = status;
    session->is_lent = false;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

static void on_fence(int status, void *arg)
{
    on_value(status, NULL, arg);
}

/* The answer to a call that the library took with this status. */
static int await(struct session *session, int taken)
{
    int answer;

    pthread_mutex_lock(&session->lock);
    if (taken != RUEDA_PMIX_SUCCESS) {
        session->is_lent = false;
        session->answer =
            taken == RUEDA_PMIX_DONE_NOW ? RUEDA_PMIX_SUCCESS : taken;
    }
    while (session->is_lent && rueda_clock_ns() < session->deadline_ns)
        rueda_condition_wait(&session->changed, &session->lock,
                             session->deadline_ns);
    answer = session->is_lent ? RUEDA_PMIX_TIMED_OUT : session->answer;
    pthread_mutex_unlock(&session->lock);
    return answer;
}

/* ---- The exchange, on our thread -------------------------------------- */

/* Words for a status of PMIx's. */
static rueda_status refused(struct session *session, const char *what,
                            int status)
{
    if (status == RUEDA_PMIX_TIMED_OUT) {
        rueda_launcher_exchange_late(session->exchange.rank,
                                     session->exchange.size, &session->error);
        return RUEDA_ERR_TIMEOUT;
    }
    rueda_text_set(&session->error,
                   "%s failed: %s (%d); do the launcher and %s fit together?",
                   what, session->pmix.error_string(status), status,
                   RUEDA_PMIX_LIBRARY);
    return status == RUEDA_PMIX_UNREACHED ? RUEDA_ERR_PEER_LOST
                                          : RUEDA_ERR_INVALID;
}

static rueda_status check_seat(struct session *session)
{
    if (session->me.rank == (uint32_t)session->exchange.rank)
        return RUEDA_OK;
    rueda_text_set(&session->error,
                   "the launcher takes us for rank %u, the settings say rank "
                   "%d; set neither RUEDA_RANK nor RUEDA_SIZE under a launcher",
                   (unsigned)session->me.rank, session->exchange.rank);
    return RUEDA_ERR_MISMATCH;
}

static rueda_status put(void *arg, const char *name, const void *bytes,
                        size_t len)
{
    struct session *session = arg;
    struct rueda_pmix_value value = {.type = RUEDA_PMIX_BYTES};
    int status;

    value.data.object.bytes = (char *)bytes; /* which PMIx only reads */
    value.data.object.size = len;
    status = session->pmix.put(RUEDA_PMIX_GLOBAL, name, &value);
    if (status != RUEDA_PMIX_SUCCESS)
        return refused(session, "PMIx_Put", status);
    session->has_put = true;
    return RUEDA_OK;
}

static rueda_status meet(void *arg)
{
    struct session *session = arg;
    int status = RUEDA_PMIX_SUCCESS;

    if (session->has_put)
        status = session->pmix.commit();
    if (status != RUEDA_PMIX_SUCCESS)
        return refused(session, "PMIx_Commit", status);
    session->has_put = false;
    lend(session, RUEDA_PMIX_ANY_RANK);
    status = session->pmix.fence_nb(&session->who, 1, session->info, 2,
                                    on_fence, session);
    status = await(session, status);
    return status == RUEDA_PMIX_SUCCESS
               ? RUEDA_OK
               : refused(session, "PMIx_Fence", status);
}

static rueda_status get(void *arg, int rank, const char *name, void *out,
                        size_t len)
{
    struct session *session = arg;
    int status;

    session->value_bytes = 0;
    lend(session, (uint32_t)rank);
    status = session->pmix.get_nb(&session->who, name, session->info, 1,
                                  on_value, session);
    status = await(session, status);
    if (status != RUEDA_PMIX_SUCCESS && status != RUEDA_PMIX_NOT_FOUND)
        return refused(session, "PMIx_Get", status);
    if (status == RUEDA_PMIX_NOT_FOUND || session->value_bytes != len)
        return RUEDA_ERR_MISMATCH;
    memcpy(out, session->value, len);
    return RUEDA_OK;
}

static rueda_status converse(struct session *session)
{
    static const struct rueda_business_card_ops ops = {
        .put = put, .meet = meet, .get = get};
    rueda_status status;
    int failed = session->pmix.init(&session->me, NULL, 0);

    if (failed != RUEDA_PMIX_SUCCESS)
        return refused(session, "PMIx_Init", failed);
    status = check_seat(session);
    if (status == RUEDA_OK)
        status = rueda_business_card_pass(&session->exchange, &ops, session,
                                          session->card, session->bytes,
                                          &session->error);
    /* A process that leaves without it is taken for one that crashed. */
    (void)session->pmix.finalize(NULL, 0);
    return status;
}

static void *run(void *arg)
{
    struct session *session = arg;

    session->result = converse(session);
    pthread_mutex_lock(&session->lock);
    session->is_over = true;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

/* ---- The caller ------------------------------------------------------- */

static struct session *
session_new(const struct rueda_business_card_exchange *exchange,
            const void *card, size_t bytes)
{
    struct session *session = calloc(1, sizeof(*session));
    int64_t left = exchange->deadline_ns - rueda_clock_ns();
    int64_t rest = left / 10 < LEAVE_NS ? left / 10 : LEAVE_NS;

    if (session == NULL)
        return NULL;
    session->exchange = *exchange;
    session->bytes = bytes;
    session->deadline_ns = exchange->deadline_ns - (rest > 0 ? rest : 0);
    memcpy(session->card, card, bytes);
    pthread_mutex_init(&session->lock, NULL);
    rueda_condition_init(&session->changed);
    return session;
}

static void session_free(struct session *session)
{
    pthread_cond_destroy(&session->changed);
    pthread_mutex_destroy(&session->lock);
    rueda_secret_wipe(session->card, sizeof(session->card));
    rueda_secret_wipe(session->value, sizeof(session->value));
    free(session);
}

/* False: the deadline has passed, and the thread is stuck. */
static bool await_end(struct session *session, int64_t deadline_ns)
{
    bool is_over;

    pthread_mutex_lock(&session->lock);
    while (!session->is_over && rueda_clock_ns() < deadline_ns)
        rueda_condition_wait(&session->changed, &session->lock, deadline_ns);
    is_over = session->is_over;
    pthread_mutex_unlock(&session->lock);
    return is_over;
}

rueda_status rueda_launcher_exchange_pmix(
    const struct rueda_business_card_exchange *exchange, void *card,
    size_t bytes, struct rueda_text *error)
{
    struct session *session;
    rueda_status status;
    pthread_t thread;
    bool is_lent;

    assert(bytes > 0 && bytes <= RUEDA_BUSINESS_CARD_BYTES);
    if (exchange->size == 1)
        return RUEDA_OK;
    session = session_new(exchange, card, bytes);
    if (session == NULL)
        return RUEDA_ERR_NOMEM;
    status = rueda_pmix_load(exchange, &session->pmix, error);
    if (status == RUEDA_OK)
        status = rueda_thread_start(&thread, run, session);
    if (status != RUEDA_OK) {
        session_free(session);
        return status;
    }
    if (!await_end(session, exchange->deadline_ns)) {
        rueda_text_set(error,
                       "the launcher did not answer through %s in time; "
                       "is it stopped?",
                       RUEDA_PMIX_LIBRARY);
        return RUEDA_ERR_TIMEOUT;
    }
    rueda_thread_join(thread);
    status = session->result;
    rueda_text_set(error, "%s", session->error.chars);
    if (status == RUEDA_OK)
        memcpy(card, session->card, bytes);
    rueda_secret_wipe(session->card, sizeof(session->card));
    pthread_mutex_lock(&session->lock);
    rueda_secret_wipe(session->value, sizeof(session->value));
    is_lent = session->is_lent;
    pthread_mutex_unlock(&session->lock);
    if (!is_lent)
        session_free(session);
    return status;
}
