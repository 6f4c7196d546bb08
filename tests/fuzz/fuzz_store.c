/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store with a few connections, on which requests of all kinds come, also
 * senseless ones, while time passes and connections are lost. Checked: every
 * request has one reply, a WAIT at most one and then later; every reply can be
 * sent; the store's figures stay within its limits, and follow what it said.
 *
 * A step is eight bytes, so that few of them say much: what happens on which
 * connection, kind, key, value, number, revision, id or count, and time.
 */
#include "fuzz/fuzz.h"
#include "job/store/wire.h"

#define MS          ((int64_t)1000000)
#define CONNECTIONS 4
#define STEP_BYTES  8
#define MOST_BYTES  2048 /* of keys and values; little, to get there */

struct desk {
    struct rueda_store *store;
    int64_t now_ns;
    uint64_t last_number;
    uint64_t revision;
    const struct rueda_store_request *request; /* being asked, or NULL */
    uint64_t connection;                       /* on which it came */
    int replies;                               /* that it had */
    rueda_status status;                       /* of that reply */
    size_t waiting[CONNECTIONS];
    struct rueda_store_value *kept;
};

/* ---- What the store says ------------------------------------------------ */

/* A store can send this reply, and a client understands it. */
static void check_frame(const struct rueda_store_reply *reply)
{
    unsigned char frame[RUEDA_STORE_START_BYTES + MOST_BYTES];
    struct rueda_store_reply back;
    size_t start = rueda_store_reply_encode(reply, frame);
    size_t bytes = 0;

    must(reply->value_bytes <= MOST_BYTES);
    if (reply->value_bytes > 0)
        memcpy(frame + start, reply->value, reply->value_bytes);
    must(rueda_store_reply_decode(frame, start + reply->value_bytes, &back,
                                  &bytes) == RUEDA_OK);
    must(bytes == start + reply->value_bytes);
}

static void hear(void *arg, uint64_t connection,
                 const struct rueda_store_reply *reply)
{
    struct desk *desk = arg;
    const struct rueda_store_request *request = desk->request;
    const bool is_own = request != NULL && connection == desk->connection &&
                        reply->kind == request->kind &&
                        reply->number == request->number;

    must(connection < CONNECTIONS);
    /* No client can have sent a request of an unknown kind. */
    if (reply->status != RUEDA_ERR_INVALID)
        check_frame(reply);
    if (reply->owner != NULL) {
        rueda_store_value_keep(reply->owner);
        rueda_store_value_drop(desk->kept);
        desk->kept = reply->owner;
    }
    if (reply->kind == RUEDA_STORE_EVENT_SET ||
        reply->kind == RUEDA_STORE_EVENT_DELETE) {
        if (!is_own) /* an unknown kind comes back as it was */
            must(reply->status == RUEDA_OK && reply->revision > 0);
    } else if (reply->kind == RUEDA_STORE_WAIT &&
               (request == NULL || request->kind != RUEDA_STORE_WAIT)) {
        must(desk->waiting[connection] > 0);
        desk->waiting[connection]--;
    } else if (reply->kind == RUEDA_STORE_BYE && reply->number == 0 &&
               reply->status == RUEDA_ERR_CLOSED) {
        /* Taken over by another connection. */
        must(request != NULL && request->kind == RUEDA_STORE_ATTACH);
        desk->waiting[connection] = 0;
        return;
    } else {
        must(is_own);
    }
    if (is_own) {
        desk->replies++;
        desk->status = reply->status;
    }
}

/* ---- What happens ------------------------------------------------------- */

static uint32_t time_of(uint8_t byte)
{
    static const uint32_t times[] = {0, 1, 20, 300, 4000, 50000, UINT32_MAX};

    return times[byte % 7];
}

static void fill_key(const uint8_t *step, struct rueda_store_request *request)
{
    static const char *const keys[] = {"a", "aa", "ab", "b", "ba", "c", ""};
    static const char chars[256] = "long and then zeros";
    static const char sessions[] = "1111111111111111222222222222222233333333"
                                   "333333334444444444444444";

    if (request->kind == RUEDA_STORE_ATTACH && step[2] < 0xf0) {
        request->key = sessions + (size_t)16 * (step[2] % 4);
        request->key_bytes = RUEDA_STORE_SESSION_BYTES;
    } else if (step[2] % 16 < 14) {
        request->key = keys[step[2] % 7];
        request->key_bytes = strlen(keys[step[2] % 7]);
    } else {
        request->key = chars;
        request->key_bytes = 241u + step[2] % 16;
    }
}

static void ask(struct desk *desk, uint64_t connection, const uint8_t *step)
{
    static const size_t lengths[] = {0, 1, 8, 100, MOST_BYTES};
    static const int64_t counts[] = {1, -1, INT64_MAX, INT64_MIN};
    unsigned char value[MOST_BYTES];
    struct rueda_store_request request = {
        .kind = (rueda_store_kind)(step[1] % 40),
        .number = step[4] % 128,
        .value = value,
        .value_bytes = lengths[step[3] % 5],
        .revision = step[5] < 0xff ? step[5] : UINT64_MAX,
        .id = step[6],
        .count = counts[step[6] % 4],
        .time_ms = time_of(step[7]),
    };

    memset(value, step[3], sizeof(value));
    /* Half of the numbers are new, the others may be known. */
    if (step[4] < 128)
        request.number = ++desk->last_number;
    if (request.kind != RUEDA_STORE_SET && request.kind != RUEDA_STORE_CAS &&
        step[3] < 0xf0)
        request.value_bytes = 0;
    fill_key(step, &request);
    desk->request = &request;
    desk->connection = connection;
    desk->replies = 0;
    rueda_store_ask(desk->store, connection, &request, desk->now_ns);
    desk->request = NULL;
    if (desk->replies == 0) {
        must(request.kind == RUEDA_STORE_WAIT);
        desk->waiting[connection]++;
        return;
    }
    must(desk->replies == 1);
    if (desk->status == RUEDA_OK &&
        (request.kind == RUEDA_STORE_ATTACH || request.kind == RUEDA_STORE_BYE))
        desk->waiting[connection] = 0;
}

static void check_figures(struct desk *desk)
{
    struct rueda_store_stats stats;
    size_t waits = 0;

    rueda_store_stats(desk->store, &stats);
    for (int i = 0; i < CONNECTIONS; i++)
        waits += desk->waiting[i];
    must(stats.waits == waits);
    must(stats.revision >= desk->revision);
    must(stats.bytes <= MOST_BYTES);
    must(stats.keys <= stats.bytes);
    must(stats.sessions <= RUEDA_STORE_MOST_SESSIONS);
    must(stats.waits <= stats.sessions * RUEDA_STORE_MOST_WAITS);
    must(stats.watches <= stats.sessions * RUEDA_STORE_MOST_WATCHES);
    must(stats.leases <= stats.sessions * RUEDA_STORE_MOST_LEASES);
    desk->revision = stats.revision;
}

static void happen(struct desk *desk, const uint8_t *step)
{
    const uint64_t connection = (step[0] >> 4) % CONNECTIONS;

    switch (step[0] % 16) {
    case 0:
        desk->now_ns += (int64_t)time_of(step[7]) * MS;
        rueda_store_tick(desk->store, desk->now_ns);
        must(rueda_store_next_ns(desk->store) > desk->now_ns);
        break;
    case 1:
        rueda_store_detach(desk->store, connection, step[1] % 2 != 0,
                           desk->now_ns);
        desk->waiting[connection] = 0;
        break;
    default:
        ask(desk, connection, step);
        break;
    }
    check_figures(desk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct desk desk = {.now_ns = 1};
    struct rueda_store_options options = {.seed = 5,
                                          .most_bytes = MOST_BYTES,
                                          .grace_ms = 1000,
                                          .patience_ms = 5000,
                                          .emit = hear,
                                          .arg = &desk};
    const uint8_t *step;

    must(rueda_store_open(&options, &desk.store) == RUEDA_OK);
    while (fuzz_take(&input, STEP_BYTES, &step) == STEP_BYTES)
        happen(&desk, step);
    rueda_store_close(desk.store);
    rueda_store_value_drop(desk.kept);
    return 0;
}
