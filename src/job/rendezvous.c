/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of an elastic job asks for its place in the next term, waits for the
 * answer, and listens for changes that wait. */
#define RUEDA_LOG_TAG "job"

#include "job/rendezvous.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "job/store/keeper.h"
#include "os/clock.h"
#include "os/interface.h"
#include "os/process.h"

#define IS_RANKS   'p'
#define IS_REFUSAL 'r' /* then words */

#define MOST_RANKS 65536

/* Starts in a row that fail without the fault of this process. */
#define MOST_FAILURES 50

/* For the store to be reached. */
#define REACH_NS ((int64_t)30000000000)

/* ---- Bytes ------------------------------------------------------------ */

void rueda_rendezvous_write(const struct rueda_rendezvous_ranks *place,
                            unsigned char out[RUEDA_RENDEZVOUS_BYTES])
{
    const int numbers[] = {place->rank,       place->size,
                           place->local_rank, place->local_size,
                           place->cross_rank, place->cross_size};

    out[0] = IS_RANKS;
    rueda_put_u32(out + 1, place->term);
    for (int i = 0; i < 6; i++)
        rueda_put_u32(out + 5 + (size_t)4 * i, (uint32_t)numbers[i]);
}

size_t rueda_rendezvous_write_refusal(const char *words,
                                      unsigned char out[1 + RUEDA_TEXT_BYTES])
{
    const size_t len = strnlen(words, RUEDA_TEXT_BYTES);

    out[0] = IS_REFUSAL;
    memcpy(out + 1, words, len);
    return 1 + len;
}

static bool is_part(int part, int whole, int most)
{
    return whole >= 1 && whole <= most && part >= 0 && part < whole;
}

rueda_status rueda_rendezvous_read(const void *bytes, size_t len,
                                   struct rueda_rendezvous_ranks *out,
                                   struct rueda_text *words)
{
    const unsigned char *at = bytes;
    struct rueda_rendezvous_ranks place;
    int numbers[6];

    if (len >= 1 && at[0] == IS_REFUSAL) {
        rueda_text_set(words, "%.*s", (int)len - 1, (const char *)at + 1);
        return RUEDA_ERR_CLOSED;
    }
    if (len != RUEDA_RENDEZVOUS_BYTES || at[0] != IS_RANKS)
        return RUEDA_ERR_INVALID;
    for (int i = 0; i < 6; i++)
        numbers[i] = (int)rueda_get_u32(at + 5 + (size_t)4 * i);
    place = (struct rueda_rendezvous_ranks){.term = rueda_get_u32(at + 1),
                                            .rank = numbers[0],
                                            .size = numbers[1],
                                            .local_rank = numbers[2],
                                            .local_size = numbers[3],
                                            .cross_rank = numbers[4],
                                            .cross_size = numbers[5]};
    if (place.term == 0 || !is_part(place.rank, place.size, MOST_RANKS) ||
        !is_part(place.local_rank, place.local_size, place.size) ||
        !is_part(place.cross_rank, place.cross_size, place.size))
        return RUEDA_ERR_INVALID;
    *out = place;
    return RUEDA_OK;
}

void rueda_rendezvous_change_write(
    const struct rueda_rendezvous_change *change,
    unsigned char out[RUEDA_RENDEZVOUS_CHANGE_BYTES])
{
    rueda_put_u32(out, change->term);
    rueda_put_u32(out + 4, change->flags);
}

bool rueda_rendezvous_change_read(const void *bytes, size_t len,
                                  struct rueda_rendezvous_change *out)
{
    if (len != RUEDA_RENDEZVOUS_CHANGE_BYTES)
        return false;
    out->term = rueda_get_u32(bytes);
    out->flags = rueda_get_u32((const unsigned char *)bytes + 4);
    return true;
}

/* ---- What this process knows ------------------------------------------ */

/* Written by the thread that takes a place; a process takes one at a time. */
static struct rueda_key job_key;
static struct rueda_address ways[RUEDA_KEEPER_MOST_ADDRESSES];
static int way_count;
static uint64_t ranks_revision; /* of the last place */

static atomic_uint present_term;
static atomic_int present_worker;
static atomic_bool is_refused;
static atomic_uint_least64_t present_progress;
static atomic_int failures; /* of starts, in a row */

/* The listener's; the thread that waits for change. */
static struct rueda_client *change_client;
static uint64_t change_revision;

unsigned rueda_rendezvous_term(void)
{
    return atomic_load(&present_term);
}

int rueda_rendezvous_worker(void)
{
    return atomic_load(&present_worker);
}

bool rueda_rendezvous_is_refused(void)
{
    return atomic_load(&is_refused);
}

bool rueda_rendezvous_may_retry(rueda_status status)
{
    if (status == RUEDA_OK)
        atomic_store(&failures, 0);
    if ((status != RUEDA_ERR_PEER_LOST && status != RUEDA_ERR_CANCELLED) ||
        rueda_rendezvous_term() == 0)
        return false;
    return atomic_fetch_add(&failures, 1) < MOST_FAILURES;
}

void rueda_rendezvous_set_progress(uint64_t progress)
{
    atomic_store(&present_progress, progress);
}

/* ---- Asking ----------------------------------------------------------- */

static rueda_status find_store(const struct rueda_seat *seat,
                               const struct rueda_key *key,
                               struct rueda_text *error)
{
    if (!key->present || seat->store[0] == '\0') {
        rueda_text_set(error, "a process of an elastic job needs the store and "
                              "the key of its launcher (RUEDA_STORE, "
                              "RUEDA_KEY_FD); start it with ruedarun");
        return RUEDA_ERR_INVALID;
    }
    if (way_count == 0)
        way_count = rueda_address_find(seat->store, ways,
                                       RUEDA_KEEPER_MOST_ADDRESSES, error);
    job_key = *key;
    return way_count > 0 ? RUEDA_OK : RUEDA_ERR_INVALID;
}

rueda_status rueda_rendezvous_reach(int worker, struct rueda_client **out,
                                    struct rueda_text *error)
{
    const struct rueda_client_args args = {.rank = worker,
                                           .size = worker + 1,
                                           .addresses = ways,
                                           .address_count = way_count,
                                           .key = &job_key};

    return rueda_client_open(&args, rueda_clock_ns() + REACH_NS, out, error);
}

/* Ask, and wait for the answer as long as the store is there: the launcher ends
 * us if the job ends. */
static rueda_status ask_launcher(struct rueda_client *client, int worker,
                                 struct rueda_rendezvous_ranks *out,
                                 struct rueda_text *error)
{
    unsigned char progress[8];
    struct rueda_store_request request = {.kind = RUEDA_STORE_SET,
                                          .value = progress,
                                          .value_bytes = sizeof(progress)};
    struct rueda_store_reply reply;
    rueda_status status;
    char key[48];

    rueda_put_u64(progress, atomic_load(&present_progress));
    request.key = key;
    request.key_bytes =
        (size_t)snprintf(key, sizeof(key), RUEDA_RENDEZVOUS_READY "%d", worker);
    status = rueda_client_ask(client, &request, rueda_clock_ns() + REACH_NS,
                              &reply, error);
    if (status != RUEDA_OK)
        return status;
    request = (struct rueda_store_request){
        .kind = RUEDA_STORE_WAIT, .key = key, .revision = ranks_revision};
    request.key_bytes =
        (size_t)snprintf(key, sizeof(key), RUEDA_RENDEZVOUS_RANKS "%d", worker);
    status = rueda_client_ask(client, &request, INT64_MAX, &reply, error);
    if (status != RUEDA_OK)
        return status;
    ranks_revision = reply.revision;
    status = rueda_rendezvous_read(reply.value, reply.value_bytes, out, error);
    if (status == RUEDA_ERR_INVALID)
        rueda_text_set(error, "the launcher's answer makes no sense; is it of "
                              "the same version of Rueda?");
    return status;
}

rueda_status rueda_rendezvous_take(struct rueda_seat *seat,
                                   const struct rueda_key *key,
                                   struct rueda_text *error)
{
    struct rueda_client *client = NULL;
    struct rueda_rendezvous_ranks place;
    rueda_status status;

    status = find_store(seat, key, error);
    if (status == RUEDA_OK)
        status = rueda_rendezvous_reach(seat->worker, &client, error);
    if (status == RUEDA_OK)
        status = ask_launcher(client, seat->worker, &place, error);
    rueda_client_close(client);
    if (status == RUEDA_ERR_CLOSED)
        atomic_store(&is_refused, true);
    if (status != RUEDA_OK)
        return status;
    atomic_store(&present_worker, seat->worker);
    atomic_store(&present_term, place.term);
    seat->term = place.term;
    seat->rank = place.rank;
    seat->size = place.size;
    seat->local_rank = place.local_rank;
    seat->local_size = place.local_size;
    seat->cross_rank = place.cross_rank;
    seat->cross_size = place.cross_size;
    seat->introduction =
        place.size == 1 ? RUEDA_INTRODUCE_NONE : RUEDA_INTRODUCE_STORE;
    rueda_text_add(&seat->why, "; in term %u it is rank %d of %d", place.term,
                   place.rank, place.size);
    return RUEDA_OK;
}

/* ---- The end of a term ------------------------------------------------ */

rueda_status rueda_rendezvous_watch(struct rueda_client *client, uint32_t term,
                                    int64_t deadline_ns,
                                    struct rueda_text *error)
{
    struct rueda_store_request watch = {.kind = RUEDA_STORE_WATCH};
    struct rueda_store_reply reply;
    char key[32];

    watch.key = key;
    watch.key_bytes = (size_t)snprintf(key, sizeof(key), "%u/over", term);
    return rueda_client_ask(client, &watch, deadline_ns, &reply, error);
}

bool rueda_rendezvous_is_over(const struct rueda_store_reply *event)
{
    static const char end[] = "/over";
    const size_t len = sizeof(end) - 1;

    return event->kind == RUEDA_STORE_EVENT_SET && event->key_bytes > len &&
           memcmp((const char *)event->key + event->key_bytes - len, end,
                  len) == 0;
}

/* ---- News ------------------------------------------------------------- */

rueda_status rueda_rendezvous_wait(int timeout_ms,
                                   struct rueda_rendezvous_change *out)
{
    struct rueda_store_request wait = {.kind = RUEDA_STORE_WAIT,
                                       .key = RUEDA_RENDEZVOUS_CHANGES,
                                       .key_bytes =
                                           strlen(RUEDA_RENDEZVOUS_CHANGES),
                                       .revision = change_revision,
                                       .time_ms = (uint32_t)timeout_ms};
    struct rueda_text words = {{0}};
    struct rueda_store_reply reply;
    rueda_status status = RUEDA_OK;

    if (way_count == 0)
        return RUEDA_ERR_INVALID;
    if (change_client == NULL)
        status = rueda_rendezvous_reach(0, &change_client, &words);
    if (status == RUEDA_OK)
        status = rueda_client_ask(change_client, &wait,
                                  rueda_clock_ns() + timeout_ms * 1000000ll +
                                      REACH_NS,
                                  &reply, &words);
    if (status != RUEDA_OK)
        return status;
    change_revision = reply.revision;
    return rueda_rendezvous_change_read(reply.value, reply.value_bytes, out)
               ? RUEDA_OK
               : RUEDA_ERR_INVALID;
}
