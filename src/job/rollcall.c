/* SPDX-License-Identifier: Apache-2.0 */
#include "job/rollcall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"

/* The first byte of "job". */
#define IS_TABLE 't'
#define IS_WORDS 'w'

/* Rank 0 gives up a little sooner, so that the others hear why. */
#define SOONER_NS ((int64_t)500000000)

static void rank_key(char *out, size_t bytes, int rank)
{
    snprintf(out, bytes, "rank/%d", rank);
}

static void self_record(const struct rueda_seat *seat,
                        struct rueda_topology_record *out)
{
    memset(out, 0, sizeof(*out));
    _Static_assert(RUEDA_PROCESS_HOST_ID == RUEDA_HOST_ID_BYTES,
                   "a host id has one length");
    rueda_process_host_id(out->host);
    rueda_process_host(out->name, sizeof(out->name));
    out->local_rank = seat->local_rank;
    out->local_size = seat->local_size;
}

static rueda_status say_where(struct rueda_client *client,
                              const struct rueda_seat *seat,
                              int64_t deadline_ns, struct rueda_text *error)
{
    unsigned char bytes[RUEDA_TOPOLOGY_RECORD_BYTES];
    struct rueda_topology_record record;
    struct rueda_store_reply reply;
    rueda_status status;
    char key[32];

    self_record(seat, &record);
    rank_key(key, sizeof(key), seat->rank);
    status = rueda_client_ask(
        client,
        &(struct rueda_store_request){
            .kind = RUEDA_STORE_CAS,
            .key = key,
            .key_bytes = strlen(key),
            .value = bytes,
            .value_bytes = rueda_topology_record_pack(&record, bytes)},
        deadline_ns, &reply, error);
    if (status == RUEDA_ERR_MISMATCH)
        rueda_text_set(error,
                       "rank %d came twice; is another job running at the same "
                       "store?",
                       seat->rank);
    return status;
}

/* ---- Rank 0 ------------------------------------------------------------- */

static rueda_status ask_for(struct rueda_client *client, int rank,
                            int64_t deadline_ns,
                            struct rueda_topology_record *out)
{
    struct rueda_text ignored = {{0}};
    struct rueda_store_reply reply;
    rueda_status status;
    char key[32];

    rank_key(key, sizeof(key), rank);
    status = rueda_client_ask(
        client,
        &(struct rueda_store_request){
            .kind = RUEDA_STORE_WAIT, .key = key, .key_bytes = strlen(key)},
        deadline_ns, &reply, &ignored);
    if (status == RUEDA_OK)
        status =
            rueda_topology_record_unpack(reply.value, reply.value_bytes, out);
    return status;
}

/* Who has not come, in words. */
static void name_missing(struct rueda_client *client, int size,
                         struct rueda_text *error)
{
    int64_t soon = rueda_clock_ns() + SOONER_NS / 2;
    int missing = 0;

    for (int rank = 0; rank < size && missing <= 8; rank++) {
        struct rueda_text ignored = {{0}};
        struct rueda_store_reply reply;
        char key[32];

        rank_key(key, sizeof(key), rank);
        if (rueda_client_ask(
                client,
                &(struct rueda_store_request){.kind = RUEDA_STORE_GET,
                                              .key = key,
                                              .key_bytes = strlen(key)},
                soon, &reply, &ignored) != RUEDA_OK)
            break;
        if (reply.revision > 0)
            continue;
        if (missing == 8)
            rueda_text_add(error, " and others");
        else
            rueda_text_add(error, "%s%d", missing > 0 ? ", " : "", rank);
        missing++;
    }
}

static rueda_status gather(struct rueda_client *client, int size,
                           int64_t deadline_ns, struct rueda_topology **out,
                           struct rueda_text *error)
{
    struct rueda_topology_record *records =
        calloc((size_t)size, sizeof(*records));
    rueda_status status = records != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;

    for (int rank = 0; rank < size && status == RUEDA_OK; rank++)
        status = ask_for(client, rank, deadline_ns - SOONER_NS, &records[rank]);
    if (status == RUEDA_ERR_TIMEOUT) {
        rueda_text_set(error, "of %d ranks these did not come in time: ", size);
        name_missing(client, size, error);
        rueda_text_add(error, "; are they running, and can their hosts reach "
                              "rank 0? Or raise RUEDA_START_TIMEOUT");
    }
    if (status == RUEDA_OK)
        status = rueda_topology_new(records, size, out, error);
    free(records);
    return status;
}

/* Tell all, the table or the words. */
static rueda_status announce(struct rueda_client *client,
                             const struct rueda_rollcall *call,
                             const struct rueda_text *words,
                             int64_t deadline_ns, struct rueda_text *error)
{
    size_t table =
        call->topology != NULL
            ? RUEDA_NONCE_BYTES + rueda_topology_bytes(call->topology)
            : strlen(words->chars);
    unsigned char *value = malloc(1 + table);
    struct rueda_store_reply reply;
    rueda_status status;

    if (value == NULL)
        return RUEDA_ERR_NOMEM;
    value[0] = call->topology != NULL ? IS_TABLE : IS_WORDS;
    if (call->topology != NULL) {
        memcpy(value + 1, call->nonce, RUEDA_NONCE_BYTES);
        rueda_topology_pack(call->topology, value + 1 + RUEDA_NONCE_BYTES);
    } else {
        memcpy(value + 1, words->chars, table);
    }
    status = rueda_client_ask(
        client,
        &(struct rueda_store_request){.kind = RUEDA_STORE_SET,
                                      .key = "job",
                                      .key_bytes = 3,
                                      .value = value,
                                      .value_bytes = 1 + table},
        deadline_ns, &reply, error);
    free(value);
    return status;
}

static rueda_status call_roll(struct rueda_client *client, int size,
                              int64_t deadline_ns, struct rueda_rollcall *out,
                              struct rueda_text *error)
{
    struct rueda_rollcall call = {.topology = NULL};
    rueda_status status = rueda_random_fill(call.nonce, RUEDA_NONCE_BYTES);
    rueda_status told;

    if (status == RUEDA_OK)
        status = gather(client, size, deadline_ns, &call.topology, error);
    told = announce(client, &call, error, deadline_ns, error);
    if (status == RUEDA_OK)
        status = told;
    if (status == RUEDA_OK)
        *out = call;
    else
        rueda_topology_free(call.topology);
    return status;
}

/* ---- The others --------------------------------------------------------- */

static rueda_status understand(const struct rueda_store_reply *reply,
                               const struct rueda_seat *seat,
                               struct rueda_rollcall *out,
                               struct rueda_text *error)
{
    const unsigned char *value = reply->value;
    rueda_status status;

    if (reply->value_bytes > 0 && value[0] == IS_WORDS) {
        rueda_text_set(error, "rank 0 says: %.*s", (int)reply->value_bytes - 1,
                       (const char *)value + 1);
        return RUEDA_ERR_TIMEOUT;
    }
    if (reply->value_bytes < 1 + RUEDA_NONCE_BYTES || value[0] != IS_TABLE)
        return RUEDA_ERR_INVALID;
    memcpy(out->nonce, value + 1, RUEDA_NONCE_BYTES);
    status = rueda_topology_unpack(value + 1 + RUEDA_NONCE_BYTES,
                                   reply->value_bytes - 1 - RUEDA_NONCE_BYTES,
                                   &out->topology, error);
    if (status == RUEDA_OK && out->topology->size != seat->size) {
        rueda_topology_free(out->topology);
        status = RUEDA_ERR_MISMATCH;
    }
    return status;
}

static rueda_status hear_roll(struct rueda_client *client,
                              const struct rueda_seat *seat,
                              int64_t deadline_ns, struct rueda_rollcall *out,
                              struct rueda_text *error)
{
    struct rueda_text late = {{0}};
    struct rueda_store_reply reply;
    rueda_status status;

    status = rueda_client_ask(
        client,
        &(struct rueda_store_request){
            .kind = RUEDA_STORE_WAIT, .key = "job", .key_bytes = 3},
        deadline_ns, &reply, &late);
    if (status == RUEDA_ERR_TIMEOUT)
        rueda_text_set(error,
                       "rank 0 did not call all %d ranks together in "
                       "time; some are missing or slow",
                       seat->size);
    if (status != RUEDA_OK) {
        rueda_text_set(error, "%s", late.chars);
        return status;
    }
    return understand(&reply, seat, out, error);
}

rueda_status rueda_rollcall(struct rueda_client *client,
                            const struct rueda_seat *seat, int64_t deadline_ns,
                            struct rueda_rollcall *out,
                            struct rueda_text *error)
{
    rueda_status status = say_where(client, seat, deadline_ns, error);

    if (status != RUEDA_OK)
        return status;
    if (seat->rank == 0)
        return call_roll(client, seat->size, deadline_ns, out, error);
    return hear_roll(client, seat, deadline_ns, out, error);
}
