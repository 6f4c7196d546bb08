/* SPDX-License-Identifier: Apache-2.0 */
#include "job/rollcall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"

/* The first byte of "job", and what follows a table's. */
#define IS_TABLE  't'
#define IS_WORDS  'w' /* then minus the status, then words */
#define AT_NONCE  1
#define AT_LENGTH (AT_NONCE + RUEDA_NONCE_BYTES)
#define AT_TABLE  (AT_LENGTH + 4)

/* Rank 0 gives up a little sooner, so that the others hear why: a tenth of the
 * time, at most this. */
#define SOONER_NS ((int64_t)500000000)

/* A lease is given up with its session; its own time plays no part. */
#define LEASE_MS ((uint32_t)24 * 3600 * 1000)

/* Between two looks for a store that takes us. */
#define PAUSE_NS ((int64_t)10000000)

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

/* One request whose answer's value is lent until the next. */
static rueda_status ask(struct rueda_client *client, rueda_store_kind kind,
                        const char *key, int64_t deadline_ns,
                        struct rueda_store_reply *reply,
                        struct rueda_text *error)
{
    return rueda_client_ask(
        client,
        &(struct rueda_store_request){
            .kind = kind, .key = key, .key_bytes = strlen(key)},
        deadline_ns, reply, error);
}

/* The name of this rank at the store, as long as its session lasts: should it
 * die and be started again, it finds its name free. RUEDA_ERR_MISMATCH: there
 * is one of this rank. */
static rueda_status take_name(struct rueda_client *client,
                              const struct rueda_rollcall_args *args,
                              struct rueda_text *error)
{
    unsigned char value[2 + RUEDA_CONTACT_BYTES + RUEDA_TOPOLOGY_RECORD_BYTES];
    struct rueda_topology_record record;
    struct rueda_store_reply reply;
    size_t bytes = strlen(args->contact);
    rueda_status status;
    char key[32];

    self_record(args->seat, &record);
    rank_key(key, sizeof(key), args->seat->rank);
    rueda_put_u16(value, (uint16_t)bytes);
    memcpy(value + 2, args->contact, bytes);
    bytes += 2;
    bytes += rueda_topology_record_pack(&record, value + bytes);
    status = rueda_client_ask(
        client,
        &(struct rueda_store_request){.kind = RUEDA_STORE_LEASE_OPEN,
                                      .time_ms = LEASE_MS},
        args->deadline_ns, &reply, error);
    if (status != RUEDA_OK)
        return status;
    return rueda_client_ask(
        client,
        &(struct rueda_store_request){.kind = RUEDA_STORE_CAS,
                                      .key = key,
                                      .key_bytes = strlen(key),
                                      .value = value,
                                      .value_bytes = bytes,
                                      .id = reply.id},
        args->deadline_ns, &reply, error);
}

/* RUEDA_IN_PROGRESS: this store is that of a job that has started, an earlier
 * one of ours perhaps, or there is another of my rank; try again later. */
static rueda_status say_where(struct rueda_client *client,
                              const struct rueda_rollcall_args *args,
                              struct rueda_text *error)
{
    struct rueda_store_reply reply;
    rueda_status status =
        ask(client, RUEDA_STORE_GET, "job", args->deadline_ns, &reply, error);

    if (status != RUEDA_OK)
        return status;
    if (reply.revision > 0) {
        rueda_text_set(error,
                       "the store has the ranks of a job that has started "
                       "already; is another job running there?");
        return RUEDA_IN_PROGRESS;
    }
    status = take_name(client, args, error);
    if (status != RUEDA_ERR_MISMATCH)
        return status;
    rueda_text_set(error,
                   "there is a rank %d at the store already; was it started "
                   "twice, or is another job running there?",
                   args->seat->rank);
    return RUEDA_IN_PROGRESS;
}

/* ---- Rank 0 ------------------------------------------------------------- */

/* What ranks have said of themselves. */
struct roll {
    struct rueda_topology_record *records; /* [size] */
    char *contacts;                        /* of all, each with its end */
    size_t bytes;
};

static rueda_status note(struct roll *roll, int rank,
                         const struct rueda_store_reply *reply)
{
    const unsigned char *value = reply->value;
    size_t bytes = reply->value_bytes;
    size_t len = bytes >= 2 ? rueda_get_u16(value) : bytes;

    if (len >= RUEDA_CONTACT_BYTES || len + 2 > bytes ||
        rueda_topology_record_unpack(value + 2 + len, bytes - 2 - len,
                                     &roll->records[rank]) != RUEDA_OK)
        return RUEDA_ERR_INVALID;
    memcpy(roll->contacts + roll->bytes, value + 2, len);
    roll->bytes += len;
    roll->contacts[roll->bytes++] = '\0';
    return RUEDA_OK;
}

static rueda_status ask_for(struct rueda_client *client, int rank,
                            int64_t deadline_ns, struct roll *roll)
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
    return status == RUEDA_OK ? note(roll, rank, &reply) : status;
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
        if (ask(client, RUEDA_STORE_GET, key, soon, &reply, &ignored) !=
            RUEDA_OK)
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
                           int64_t deadline_ns, struct roll *roll,
                           struct rueda_text *error)
{
    int64_t left = deadline_ns - rueda_clock_ns();
    int64_t sooner = left / 10 < SOONER_NS ? left / 10 : SOONER_NS;
    rueda_status status = RUEDA_OK;

    for (int rank = 0; rank < size && status == RUEDA_OK; rank++)
        status = ask_for(client, rank, deadline_ns - sooner, roll);
    if (status == RUEDA_ERR_TIMEOUT) {
        rueda_text_set(error, "of %d ranks these did not come in time: ", size);
        name_missing(client, size, error);
        rueda_text_add(error, "; are they running, and can their hosts reach "
                              "rank 0? Or raise RUEDA_START_TIMEOUT");
    }
    return status;
}

/* Tell all: the nonce, the length of the table, the table, and where everybody
 * can be reached. */
static rueda_status announce(struct rueda_client *client,
                             const struct rueda_rollcall *call,
                             int64_t deadline_ns, struct rueda_text *error)
{
    size_t table = rueda_topology_bytes(call->topology);
    size_t bytes = AT_TABLE + table + call->contacts_bytes;
    unsigned char *value = malloc(bytes);
    struct rueda_store_reply reply;
    rueda_status status;

    if (value == NULL)
        return RUEDA_ERR_NOMEM;
    value[0] = IS_TABLE;
    memcpy(value + AT_NONCE, call->nonce, RUEDA_NONCE_BYTES);
    rueda_put_u32(value + AT_LENGTH, (uint32_t)table);
    rueda_topology_pack(call->topology, value + AT_TABLE);
    memcpy(value + AT_TABLE + table, call->contacts, call->contacts_bytes);
    status =
        rueda_client_ask(client,
                         &(struct rueda_store_request){.kind = RUEDA_STORE_SET,
                                                       .key = "job",
                                                       .key_bytes = 3,
                                                       .value = value,
                                                       .value_bytes = bytes},
                         deadline_ns, &reply, error);
    free(value);
    return status;
}

/* Tell all why there is no job. */
static void call_off(struct rueda_client *client, rueda_status status,
                     const struct rueda_text *why, int64_t deadline_ns)
{
    unsigned char value[2 + RUEDA_TEXT_BYTES] = {IS_WORDS,
                                                 (unsigned char)-status};
    struct rueda_text ignored = {{0}};
    struct rueda_store_reply reply;
    size_t len = strlen(why->chars);

    memcpy(value + 2, why->chars, len);
    rueda_client_ask(client,
                     &(struct rueda_store_request){.kind = RUEDA_STORE_SET,
                                                   .key = "job",
                                                   .key_bytes = 3,
                                                   .value = value,
                                                   .value_bytes = 2 + len},
                     deadline_ns, &reply, &ignored);
}

/* Until all have heard, or the deadline passes. */
static rueda_status await_heard(struct rueda_client *client,
                                const struct rueda_rollcall_args *args,
                                struct rueda_text *error)
{
    uint64_t others = (uint64_t)args->seat->size - 1;
    struct rueda_store_reply reply = {.revision = 0};
    uint64_t heard = 0;

    while (heard < others) {
        rueda_status status = rueda_client_ask(
            client,
            &(struct rueda_store_request){.kind = RUEDA_STORE_WAIT,
                                          .key = "heard",
                                          .key_bytes = 5,
                                          .revision = reply.revision},
            args->deadline_ns, &reply, error);

        if (status != RUEDA_OK)
            return status;
        if (reply.value_bytes != 8)
            return RUEDA_ERR_INVALID;
        heard = rueda_get_u64(reply.value);
    }
    return RUEDA_OK;
}

static rueda_status call_roll(struct rueda_client *client,
                              const struct rueda_rollcall_args *args,
                              struct rueda_rollcall *out,
                              struct rueda_text *error)
{
    size_t size = (size_t)args->seat->size;
    struct roll roll = {.records = calloc(size, sizeof(*roll.records)),
                        .contacts = malloc(size * RUEDA_CONTACT_BYTES)};
    struct rueda_rollcall call = {.topology = NULL};
    rueda_status status = RUEDA_ERR_NOMEM;

    if (roll.records != NULL && roll.contacts != NULL)
        status = rueda_random_fill(call.nonce, RUEDA_NONCE_BYTES);
    if (status == RUEDA_OK)
        status =
            gather(client, args->seat->size, args->deadline_ns, &roll, error);
    if (status == RUEDA_OK)
        status = rueda_topology_new(roll.records, args->seat->size,
                                    &call.topology, error);
    call.contacts = roll.contacts;
    call.contacts_bytes = roll.bytes;
    if (status == RUEDA_OK) {
        status = announce(client, &call, args->deadline_ns, error);
        if (status == RUEDA_OK)
            status = await_heard(client, args, error);
    } else
        call_off(client, status, error, args->deadline_ns);
    free(roll.records);
    if (status == RUEDA_OK)
        *out = call;
    else
        rueda_rollcall_fini(&call);
    return status;
}

/* ---- The others --------------------------------------------------------- */

static rueda_status garbled(struct rueda_text *error)
{
    rueda_text_set(error, "what rank 0 says of the ranks makes no sense; do "
                          "all run the same version of Rueda?");
    return RUEDA_ERR_INVALID;
}

static rueda_status understand(const struct rueda_store_reply *reply, int size,
                               struct rueda_rollcall *out,
                               struct rueda_text *error)
{
    const unsigned char *value = reply->value;
    struct rueda_rollcall call = {.topology = NULL};
    size_t bytes = reply->value_bytes;
    rueda_status status;
    size_t table;

    if (bytes >= 2 && value[0] == IS_WORDS && value[1] > 0) {
        rueda_text_set(error, "rank 0 says: %.*s", (int)bytes - 2,
                       (const char *)value + 2);
        return (rueda_status) - (int)value[1];
    }
    if (bytes < AT_TABLE || value[0] != IS_TABLE)
        return garbled(error);
    table = rueda_get_u32(value + AT_LENGTH);
    if (table > bytes - AT_TABLE)
        return garbled(error);
    memcpy(call.nonce, value + AT_NONCE, RUEDA_NONCE_BYTES);
    status =
        rueda_topology_unpack(value + AT_TABLE, table, &call.topology, error);
    if (status != RUEDA_OK)
        return status;
    call.contacts_bytes = bytes - AT_TABLE - table;
    call.contacts = malloc(call.contacts_bytes + 1);
    if (call.contacts == NULL || call.topology->size != size) {
        rueda_rollcall_fini(&call);
        return garbled(error);
    }
    memcpy(call.contacts, value + AT_TABLE + table, call.contacts_bytes);
    *out = call;
    return RUEDA_OK;
}

/* Rank 0, which keeps the store, stays until all have said so. */
static rueda_status say_heard(struct rueda_client *client, int64_t deadline_ns,
                              struct rueda_rollcall *call,
                              struct rueda_text *error)
{
    struct rueda_store_reply reply;
    rueda_status status =
        rueda_client_ask(client,
                         &(struct rueda_store_request){.kind = RUEDA_STORE_ADD,
                                                       .key = "heard",
                                                       .key_bytes = 5,
                                                       .count = 1},
                         deadline_ns, &reply, error);

    if (status != RUEDA_OK)
        rueda_rollcall_fini(call);
    return status;
}

static rueda_status hear_roll(struct rueda_client *client,
                              const struct rueda_rollcall_args *args,
                              struct rueda_rollcall *out,
                              struct rueda_text *error)
{
    struct rueda_text late = {{0}};
    struct rueda_store_reply reply;
    rueda_status status;

    status =
        ask(client, RUEDA_STORE_WAIT, "job", args->deadline_ns, &reply, &late);
    if (status == RUEDA_ERR_TIMEOUT)
        rueda_text_set(error,
                       "rank 0 did not call all %d ranks together in time; "
                       "some are missing or slow",
                       args->seat->size);
    if (status != RUEDA_OK) {
        rueda_text_set(error, "%s", late.chars);
        return status;
    }
    status = understand(&reply, args->seat->size, out, error);
    if (status == RUEDA_OK)
        status = say_heard(client, args->deadline_ns, out, error);
    return status;
}

/* ---- Everybody ---------------------------------------------------------- */

rueda_status rueda_rollcall(struct rueda_client *client,
                            const struct rueda_rollcall_args *args,
                            struct rueda_rollcall *out,
                            struct rueda_text *error)
{
    for (;;) {
        rueda_status status;

        error->chars[0] = '\0';
        status = say_where(client, args, error);
        if (status == RUEDA_OK)
            status = args->seat->rank == 0
                         ? call_roll(client, args, out, error)
                         : hear_roll(client, args, out, error);
        /* A store that was started anew knows nothing of us. */
        if (status != RUEDA_IN_PROGRESS && status != RUEDA_ERR_CLOSED)
            return status;
        if (rueda_clock_ns() + PAUSE_NS >= args->deadline_ns)
            return RUEDA_ERR_TIMEOUT;
        rueda_sleep_ns(PAUSE_NS);
        if (status == RUEDA_IN_PROGRESS)
            rueda_client_renew(client);
    }
}

void rueda_rollcall_fini(struct rueda_rollcall *call)
{
    rueda_topology_free(call->topology);
    free(call->contacts);
    *call = (struct rueda_rollcall){.topology = NULL};
}
