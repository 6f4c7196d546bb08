/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roll call over the store. Each rank writes a record of itself under its
 * number; rank 0 collects the records, builds the table of hosts, decides the
 * settings and announces all that under one key; the others read it and
 * confirm. If a rank is missing or records do not fit, rank 0 calls the job
 * off, and every rank gets the same message.
 */
#include "job/rollcall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/config.h"
#include "base/duration.h"
#include "job/clones.h"
#include "job/network.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/random.h"

/* The first byte of "job", and what follows a table's. */
#define IS_TABLE  't'
#define IS_WORDS  'w' /* then minus the status, then words */
#define AT_NONCE  1
#define AT_FUSION (AT_NONCE + RUEDA_NONCE_BYTES)
#define AT_CACHE  (AT_FUSION + 8)
#define AT_LENGTH (AT_CACHE + 4)
#define AT_SAID   (AT_LENGTH + 4) /* the length of the decision */
#define AT_TABLE  (AT_SAID + 2)

/* Rank 0 gives up a little sooner, so that the others hear why: a tenth of the
 * time, at most this. */
#define SOONER_NS RUEDA_MS(500)

/* A lease is given up with its session; its own time plays no part. */
#define LEASE_MS ((uint32_t)24 * 3600 * 1000)

/* Between two looks for a store that takes us. */
#define PAUSE_NS RUEDA_MS(10)

/* A rank at the store. */
struct desk {
    struct rueda_client *client;
    const struct rueda_rollcall_args *args;
    struct rueda_text *error;
};

/* Ask about a key of this life, by the deadline of the roll call. The answer's
 * value is lent until the next. */
static rueda_status ask_by(const struct desk *desk, const char *name,
                           struct rueda_store_request request,
                           int64_t deadline_ns, struct rueda_store_reply *reply)
{
    char key[48];

    if (desk->args->life > 0)
        snprintf(key, sizeof(key), "%u/%s", desk->args->life, name);
    else
        snprintf(key, sizeof(key), "%s", name);
    request.key = key;
    request.key_bytes = strlen(key);
    return rueda_client_ask(desk->client, &request, deadline_ns, reply,
                            desk->error);
}

static rueda_status ask(const struct desk *desk, const char *name,
                        struct rueda_store_request request,
                        struct rueda_store_reply *reply)
{
    return ask_by(desk, name, request, desk->args->deadline_ns, reply);
}

static const char *rank_name(int rank, char out[24])
{
    snprintf(out, 24, "rank/%d", rank);
    return out;
}

static void self_record(const struct rueda_seat *seat,
                        struct rueda_topology_record *out)
{
    memset(out, 0, sizeof(*out));
    _Static_assert(RUEDA_PROCESS_HOST_ID == RUEDA_TOPOLOGY_ID_BYTES,
                   "a host id has one length");
    rueda_process_host_id(out->host);
    rueda_process_host(out->name, sizeof(out->name));
    out->local_rank = seat->local_rank;
    out->local_size = seat->local_size;
}

/* The name of this rank at the store, as long as its session lasts: should it
 * die and be started again, it finds its name free. RUEDA_ERR_MISMATCH: there
 * is one of this rank. */
static rueda_status take_name(const struct desk *desk)
{
    const struct rueda_rollcall_args *args = desk->args;
    unsigned char value[RUEDA_SELF_BYTES];
    struct rueda_store_request lease = {.kind = RUEDA_STORE_LEASE_OPEN,
                                        .time_ms = LEASE_MS};
    struct rueda_self self = {.contact = args->contact,
                              .contact_bytes = strlen(args->contact)};
    struct rueda_store_reply reply;
    rueda_status status;
    size_t bytes;
    char name[24];

    self_record(args->seat, &self.record);
    snprintf(self.sets, sizeof(self.sets), "%s", args->sets);
    self.encrypt = args->encrypt;
    bytes = rueda_rollcall_write_rank(&self, value);
    status = rueda_client_ask(desk->client, &lease, args->deadline_ns, &reply,
                              desk->error);
    if (status != RUEDA_OK)
        return status;
    return ask(desk, rank_name(args->seat->rank, name),
               (struct rueda_store_request){.kind = RUEDA_STORE_CAS,
                                            .value = value,
                                            .value_bytes = bytes,
                                            .id = reply.id},
               &reply);
}

/* RUEDA_IN_PROGRESS: this store is that of a job that has started, an earlier
 * one of ours perhaps, or there is another of my rank; try again later. */
static rueda_status say_where(const struct desk *desk)
{
    const struct rueda_store_request get = {.kind = RUEDA_STORE_GET};
    struct rueda_store_reply reply;
    rueda_status status = ask(desk, "job", get, &reply);

    if (status != RUEDA_OK)
        return status;
    if (reply.revision > 0) {
        rueda_text_set(desk->error,
                       "the store has the ranks of a job that has started "
                       "already; is another job running there?");
        return RUEDA_IN_PROGRESS;
    }
    status = take_name(desk);
    if (status != RUEDA_ERR_MISMATCH)
        return status;
    rueda_text_set(desk->error,
                   "there is a rank %d at the store already; was it started "
                   "twice, or is another job running there?",
                   desk->args->seat->rank);
    return RUEDA_IN_PROGRESS;
}

/* ---- Rank 0 ------------------------------------------------------------- */

size_t rueda_rollcall_write_rank(const struct rueda_self *self,
                                 unsigned char out[RUEDA_SELF_BYTES])
{
    const size_t sets = strlen(self->sets);
    unsigned char *at = out;

    rueda_put_u16(at, (uint16_t)self->contact_bytes);
    memcpy(at + 2, self->contact, self->contact_bytes);
    at += 2 + self->contact_bytes;
    *at = (unsigned char)sets;
    memcpy(at + 1, self->sets, sets);
    at += 1 + sets;
    *at++ = (unsigned char)self->encrypt;
    return (size_t)(at - out) + rueda_topology_record_pack(&self->record, at);
}

/* What ranks have said of themselves. */
struct roll {
    struct rueda_topology_record *records; /* [size] */
    char *contacts;                        /* of all, each with its end */
    size_t bytes;
    struct rueda_text difference; /* a rank with other sets than rank 0 */
    struct rueda_encrypt_vote vote;
};

rueda_status rueda_rollcall_read_rank(const void *said, size_t bytes,
                                      struct rueda_self *out)
{
    const unsigned char *value = said;
    size_t length = bytes >= 2 ? rueda_get_u16(value) : bytes;
    struct rueda_self self = {.contact = (const char *)value + 2,
                              .contact_bytes = length};
    size_t sets;

    if (length >= RUEDA_CONTACT_BYTES || length + 3 > bytes ||
        memchr(value + 2, '\0', length) != NULL)
        return RUEDA_ERR_INVALID;
    value += 2 + length;
    bytes -= 2 + length;
    sets = *value;
    if (sets >= RUEDA_SET_WORD_BYTES || sets + 2 > bytes ||
        memchr(value + 1, '\0', sets) != NULL ||
        value[1 + sets] >= RUEDA_ENCRYPT_CHOICES)
        return RUEDA_ERR_INVALID;
    memcpy(self.sets, value + 1, sets);
    self.encrypt = (rueda_config_encrypt)value[1 + sets];
    if (rueda_topology_record_unpack(value + 2 + sets, bytes - 2 - sets,
                                     &self.record) != RUEDA_OK)
        return RUEDA_ERR_INVALID;
    *out = self;
    return RUEDA_OK;
}

/* Count the rank's setting of encryption; its contact, the last of the list,
 * has the addresses at which it listens. */
static void hear_wish(struct roll *roll, int rank, rueda_config_encrypt setting)
{
    struct rueda_address addresses[RUEDA_NETWORK_ADDRESSES];
    const int count = rueda_network_read(roll->contacts + roll->bytes,
                                         addresses, RUEDA_NETWORK_ADDRESSES);

    rueda_encrypt_hear(&roll->vote, rank, setting, addresses, count);
}

/* Take in the record of one rank, and check what has to be the same on all
 * ranks. */
static rueda_status note(const struct desk *desk, struct roll *roll, int rank,
                         const struct rueda_store_reply *reply)
{
    const char *sets = desk->args->sets;
    struct rueda_self self;
    rueda_status status =
        rueda_rollcall_read_rank(reply->value, reply->value_bytes, &self);

    if (status != RUEDA_OK)
        return status;
    roll->records[rank] = self.record;
    memcpy(roll->contacts + roll->bytes, self.contact, self.contact_bytes);
    roll->contacts[roll->bytes + self.contact_bytes] = '\0';
    hear_wish(roll, rank, self.encrypt);
    roll->bytes += self.contact_bytes + 1;
    if (rueda_text_is_empty(&roll->difference) &&
        !rueda_set_word_is_same(sets, self.sets))
        rueda_set_word_explain(0, sets, rank, self.sets, &roll->difference);
    return RUEDA_OK;
}

/* List the ranks that have not come. */
static void name_missing(const struct desk *desk)
{
    const struct rueda_store_request get = {.kind = RUEDA_STORE_GET};
    int64_t soon = rueda_clock_ns() + SOONER_NS / 2;
    int missing = 0;

    for (int rank = 0; rank < desk->args->seat->size && missing <= 8; rank++) {
        struct rueda_store_reply reply;
        char name[24];

        if (ask_by(desk, rank_name(rank, name), get, soon, &reply) != RUEDA_OK)
            break;
        if (reply.revision > 0)
            continue;
        if (missing == 8)
            rueda_text_add(desk->error, " and others");
        else
            rueda_text_add(desk->error, "%s%d", missing > 0 ? ", " : "", rank);
        missing++;
    }
}

/* Collect the records. If some ranks are late, stop a moment before the
 * deadline, so that the missing ones can still be named to the others. */
static rueda_status gather(const struct desk *desk, struct roll *roll)
{
    const struct rueda_store_request wait = {.kind = RUEDA_STORE_WAIT};
    int64_t left = desk->args->deadline_ns - rueda_clock_ns();
    int64_t sooner = left / 10 < SOONER_NS ? left / 10 : SOONER_NS;
    int size = desk->args->seat->size;
    rueda_status status = RUEDA_OK;

    for (int rank = 0; rank < size && status == RUEDA_OK; rank++) {
        struct rueda_store_reply reply;
        char name[24];

        status = ask_by(desk, rank_name(rank, name), wait,
                        desk->args->deadline_ns - sooner, &reply);
        if (status == RUEDA_OK)
            status = note(desk, roll, rank, &reply);
    }
    if (status == RUEDA_ERR_TIMEOUT) {
        desk->error->chars[0] = '\0';
        rueda_text_set(desk->error,
                       "of %d ranks these did not come in time: ", size);
        name_missing(desk);
        rueda_text_add(desk->error, "; are they running, and can their hosts "
                                    "reach rank 0? Or raise "
                                    "RUEDA_START_TIMEOUT");
    }
    return status;
}

/* Send to all: the nonce, settings, the lengths of the table and of the
 * decision, these two, and where each rank can be reached. */
static rueda_status announce(const struct desk *desk,
                             const struct rueda_rollcall *call)
{
    size_t table = rueda_topology_bytes(call->topology);
    size_t said = strlen(call->decision);
    size_t bytes = AT_TABLE + table + said + call->contacts_bytes;
    unsigned char *value = malloc(bytes);
    struct rueda_store_reply reply;
    rueda_status status;

    if (value == NULL)
        return RUEDA_ERR_NOMEM;
    value[0] = IS_TABLE;
    memcpy(value + AT_NONCE, call->nonce, RUEDA_NONCE_BYTES);
    rueda_put_u64(value + AT_FUSION, call->settings.fusion_bytes);
    rueda_put_u32(value + AT_CACHE, call->settings.cache_capacity);
    rueda_put_u32(value + AT_LENGTH, (uint32_t)table);
    rueda_put_u16(value + AT_SAID, (uint16_t)said);
    rueda_topology_pack(call->topology, value + AT_TABLE);
    memcpy(value + AT_TABLE + table, call->decision, said);
    memcpy(value + AT_TABLE + table + said, call->contacts,
           call->contacts_bytes);
    status =
        ask(desk, "job",
            (struct rueda_store_request){
                .kind = RUEDA_STORE_SET, .value = value, .value_bytes = bytes},
            &reply);
    free(value);
    return status;
}

/* Until all have heard, or the deadline passes. */
static rueda_status await_heard(const struct desk *desk)
{
    uint64_t others = (uint64_t)desk->args->seat->size - 1;
    struct rueda_store_request wait = {.kind = RUEDA_STORE_WAIT};
    uint64_t heard = 0;

    while (heard < others) {
        struct rueda_store_reply reply;
        rueda_status status = ask(desk, "heard", wait, &reply);

        if (status != RUEDA_OK)
            return status;
        if (reply.value_bytes != 8)
            return RUEDA_ERR_INVALID;
        heard = rueda_get_u64(reply.value);
        wait.revision = reply.revision;
    }
    return RUEDA_OK;
}

/* Announce why there is no job; the ranks that have come read it. */
static void call_off(const struct desk *desk, rueda_status status,
                     bool have_come)
{
    struct rueda_text ignored = {{0}};
    const struct desk quiet = {desk->client, desk->args, &ignored};
    unsigned char value[2 + RUEDA_TEXT_BYTES] = {IS_WORDS,
                                                 (unsigned char)-status};
    struct rueda_store_reply reply;
    size_t len = strlen(desk->error->chars);

    memcpy(value + 2, desk->error->chars, len);
    ask(&quiet, "job",
        (struct rueda_store_request){
            .kind = RUEDA_STORE_SET, .value = value, .value_bytes = 2 + len},
        &reply);
    if (have_come)
        await_heard(&quiet);
}

/* Rank 0's part: collect, decide, announce, and wait until all have heard. */
static rueda_status call_roll(const struct desk *desk,
                              struct rueda_rollcall *out)
{
    int size = desk->args->seat->size;
    struct roll roll = {
        .records = calloc((size_t)size, sizeof(*roll.records)),
        .contacts = malloc((size_t)size * RUEDA_CONTACT_BYTES),
    };
    struct rueda_rollcall call = {.settings = desk->args->settings};
    rueda_status status = RUEDA_ERR_NOMEM;
    bool have_come;

    if (roll.records != NULL && roll.contacts != NULL)
        status = rueda_random_fill(call.nonce, RUEDA_NONCE_BYTES);
    if (status == RUEDA_OK)
        status = gather(desk, &roll);
    have_come = status == RUEDA_OK;
    if (have_come && !rueda_text_is_empty(&roll.difference)) {
        rueda_text_set(desk->error, "%s", roll.difference.chars);
        status = RUEDA_ERR_MISMATCH;
    }
    if (status == RUEDA_OK && desk->args->decide != NULL)
        status = desk->args->decide(desk->args->arg, &roll.vote, call.decision,
                                    desk->error);
    if (status == RUEDA_OK)
        status = rueda_clones_part(roll.records, size, roll.contacts);
    if (status == RUEDA_OK)
        status =
            rueda_topology_new(roll.records, size, &call.topology, desk->error);
    call.contacts = roll.contacts;
    call.contacts_bytes = roll.bytes;
    if (status == RUEDA_OK)
        status = announce(desk, &call);
    else
        call_off(desk, status, have_come);
    if (status == RUEDA_OK)
        status = await_heard(desk);
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

rueda_status rueda_rollcall_read(const void *announced, size_t bytes, int size,
                                 struct rueda_rollcall *out,
                                 struct rueda_text *error)
{
    const unsigned char *value = announced;
    struct rueda_rollcall call = {.topology = NULL};
    rueda_status status;
    size_t table;
    size_t said;

    if (bytes >= 2 && value[0] == IS_WORDS && value[1] > 0) {
        rueda_text_set(error, "rank 0 says: %.*s", (int)bytes - 2,
                       (const char *)value + 2);
        return (rueda_status) - (int)value[1];
    }
    if (bytes < AT_TABLE || value[0] != IS_TABLE)
        return garbled(error);
    table = rueda_get_u32(value + AT_LENGTH);
    said = rueda_get_u16(value + AT_SAID);
    call.settings.fusion_bytes = rueda_get_u64(value + AT_FUSION);
    call.settings.cache_capacity = rueda_get_u32(value + AT_CACHE);
    if (table > bytes - AT_TABLE || said > bytes - AT_TABLE - table ||
        said >= RUEDA_ROLLCALL_DECISION_BYTES ||
        memchr(value + AT_TABLE + table, '\0', said) != NULL ||
        call.settings.fusion_bytes > RUEDA_FUSION_MOST ||
        call.settings.cache_capacity > RUEDA_CACHE_MOST)
        return garbled(error);
    memcpy(call.nonce, value + AT_NONCE, RUEDA_NONCE_BYTES);
    status =
        rueda_topology_unpack(value + AT_TABLE, table, &call.topology, error);
    if (status != RUEDA_OK)
        return status;
    memcpy(call.decision, value + AT_TABLE + table, said);
    call.contacts_bytes = bytes - AT_TABLE - table - said;
    call.contacts = malloc(call.contacts_bytes + 1);
    if (call.contacts == NULL || call.topology->size != size) {
        rueda_rollcall_fini(&call);
        return garbled(error);
    }
    memcpy(call.contacts, value + AT_TABLE + table + said, call.contacts_bytes);
    *out = call;
    return RUEDA_OK;
}

/* The part of all other ranks: wait for the announcement, and confirm it. */
static rueda_status hear_roll(const struct desk *desk,
                              struct rueda_rollcall *out)
{
    const struct rueda_store_request wait = {.kind = RUEDA_STORE_WAIT};
    /* Rank 0, which may keep the store, stays until all have confirmed. */
    const struct rueda_store_request heard = {.kind = RUEDA_STORE_ADD,
                                              .count = 1};
    struct rueda_text ignored = {{0}};
    const struct desk quiet = {desk->client, desk->args, &ignored};
    int size = desk->args->seat->size;
    struct rueda_rollcall call = {.topology = NULL};
    struct rueda_store_reply reply;
    rueda_status status = ask(desk, "job", wait, &reply);

    if (status == RUEDA_ERR_TIMEOUT) {
        desk->error->chars[0] = '\0';
        rueda_text_set(desk->error,
                       "rank 0 did not call all %d ranks together in time; "
                       "some are missing or slow",
                       size);
    }
    if (status != RUEDA_OK)
        return status;
    status = rueda_rollcall_read(reply.value, reply.value_bytes, size, &call,
                                 desk->error);
    if (status != RUEDA_OK) {
        ask(&quiet, "heard", heard, &reply);
        return status;
    }
    status = ask(desk, "heard", heard, &reply);
    if (status == RUEDA_OK)
        *out = call;
    else
        rueda_rollcall_fini(&call);
    return status;
}

/* ---- Every rank --------------------------------------------------------- */

/* Once more if the store was restarted in between. */
rueda_status rueda_rollcall(struct rueda_client *client,
                            const struct rueda_rollcall_args *args,
                            struct rueda_rollcall *out,
                            struct rueda_text *error)
{
    const struct desk desk = {client, args, error};

    for (;;) {
        rueda_status status;

        error->chars[0] = '\0';
        status = say_where(&desk);
        if (status == RUEDA_OK)
            status = args->seat->rank == 0 ? call_roll(&desk, out)
                                           : hear_roll(&desk, out);
        /* A store that was restarted knows nothing of us. */
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
    call->topology = NULL;
    call->contacts = NULL;
}
