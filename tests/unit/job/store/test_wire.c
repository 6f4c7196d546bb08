/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the store: there and back, cut short, and changed on the way. */
#include "base/bytes.h"
#include "job/store/wire.h"
#include "unit/unit.h"

#define FRAME_MOST 512

struct frame {
    unsigned char bytes[FRAME_MOST];
    size_t len;
};

/* ---- Samples ------------------------------------------------------------ */

#define NAME  .key = "name", .key_bytes = 4
#define VALUE .value = "a value", .value_bytes = 7

static const struct rueda_store_request requests[] = {
    {.kind = RUEDA_STORE_ATTACH,
     .number = 1,
     .key = "0123456789abcdef",
     .key_bytes = 16},
    {.kind = RUEDA_STORE_BYE, .number = UINT64_MAX},
    {.kind = RUEDA_STORE_GET, .number = 2, NAME},
    {.kind = RUEDA_STORE_WAIT,
     .number = 3,
     NAME,
     .revision = 0x0102030405060708,
     .time_ms = 0xfffefdfc},
    {.kind = RUEDA_STORE_SET, .number = 4, NAME, VALUE, .id = 77},
    {.kind = RUEDA_STORE_CAS, .number = 5, NAME, VALUE, .revision = 8},
    {.kind = RUEDA_STORE_SET, .number = 6, NAME},
    {.kind = RUEDA_STORE_ADD, .number = 7, NAME, .count = INT64_MIN},
    {.kind = RUEDA_STORE_DELETE, .number = 8, NAME},
    {.kind = RUEDA_STORE_WATCH, .number = 9, .revision = UINT64_MAX},
    {.kind = RUEDA_STORE_WATCH, .number = 10, NAME},
    {.kind = RUEDA_STORE_UNWATCH, .number = 11, .id = 9},
    {.kind = RUEDA_STORE_LEASE_OPEN, .number = 12, .time_ms = 1000},
    {.kind = RUEDA_STORE_LEASE_RENEW, .number = 13, .id = UINT64_MAX},
    {.kind = RUEDA_STORE_LEASE_CLOSE, .number = 14, .id = 1},
    {.kind = RUEDA_STORE_WILL, .number = 15, NAME, VALUE, .time_ms = 100},
};

static const struct rueda_store_reply replies[] = {
    {.kind = RUEDA_STORE_ATTACH, .number = 1, .revision = 5, .count = 1},
    {.kind = RUEDA_STORE_BYE, .status = RUEDA_ERR_CLOSED},
    {.kind = RUEDA_STORE_GET, .number = 2, .revision = 3, VALUE},
    {.kind = RUEDA_STORE_WAIT, .number = 3, .status = RUEDA_ERR_TIMEOUT},
    {.kind = RUEDA_STORE_CAS,
     .number = 4,
     .status = RUEDA_ERR_MISMATCH,
     .revision = UINT64_MAX,
     VALUE},
    {.kind = RUEDA_STORE_ADD, .number = 5, .revision = 1, .count = -2},
    {.kind = RUEDA_STORE_LEASE_OPEN, .number = 6, .id = 0x1122334455667788},
    {.kind = RUEDA_STORE_SET, .number = 7, .status = RUEDA_ERR_CANCELLED},
    {.kind = RUEDA_STORE_EVENT_SET, .number = 8, .revision = 2, NAME, VALUE},
    {.kind = RUEDA_STORE_EVENT_DELETE, .number = 8, .revision = 3, NAME},
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))
#define REPLIES  (sizeof(replies) / sizeof(replies[0]))

static void add_value(struct frame *frame, const void *value, size_t bytes)
{
    if (bytes > 0)
        memcpy(frame->bytes + frame->len, value, bytes);
    frame->len += bytes;
}

static struct frame request_frame(const struct rueda_store_request *request)
{
    struct frame frame = {{0}, 0};

    frame.len = rueda_store_request_encode(request, frame.bytes);
    add_value(&frame, request->value, request->value_bytes);
    return frame;
}

static struct frame reply_frame(const struct rueda_store_reply *reply)
{
    struct frame frame = {{0}, 0};

    frame.len = rueda_store_reply_encode(reply, frame.bytes);
    add_value(&frame, reply->value, reply->value_bytes);
    return frame;
}

/* ---- There and back ----------------------------------------------------- */

static void a_frame_has_the_documented_layout(void **state)
{
    static const unsigned char expected[] = {
        59,  0,   0,   0,   6,   4,   0,   0,   8,   7,   6,   5,
        7,   0,   0,   0,   1,   2,   3,   4,   5,   6,   7,   8,
        9,   10,  11,  12,  13,  14,  15,  16,  17,  18,  19,  20,
        21,  22,  23,  24,  254, 255, 255, 255, 255, 255, 255, 255,
        'n', 'a', 'm', 'e', 'a', ' ', 'v', 'a', 'l', 'u', 'e'};
    struct rueda_store_request request = {
        .kind = RUEDA_STORE_CAS,
        .number = 0x0807060504030201,
        NAME,
        VALUE,
        .revision = 0x100f0e0d0c0b0a09,
        .id = 0x1817161514131211,
        .count = -2,
        .time_ms = 0x05060708,
    };
    struct frame frame = request_frame(&request);
    struct rueda_store_reply reply = {
        .kind = RUEDA_STORE_SET, .number = 1, .status = RUEDA_ERR_LIMIT};

    (void)state;
    assert_int_equal(frame.len, sizeof(expected));
    assert_memory_equal(frame.bytes, expected, sizeof(expected));
    frame = reply_frame(&reply);
    assert_int_equal(frame.bytes[6], 0xf4);
    assert_int_equal(frame.bytes[7], 0xff);
}

static void requests_survive_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        const struct rueda_store_request *sent = &requests[i];
        struct frame frame = request_frame(sent);
        struct rueda_store_request got;
        size_t bytes = 0;

        assert_int_equal(
            rueda_store_request_decode(frame.bytes, FRAME_MOST, &got, &bytes),
            RUEDA_OK);
        assert_int_equal(bytes, frame.len);
        assert_int_equal(got.kind, sent->kind);
        assert_int_equal(got.number, sent->number);
        assert_int_equal(got.revision, sent->revision);
        assert_int_equal(got.id, sent->id);
        assert_int_equal(got.count, sent->count);
        assert_int_equal(got.time_ms, sent->time_ms);
        assert_int_equal(got.key_bytes, sent->key_bytes);
        assert_int_equal(got.value_bytes, sent->value_bytes);
        if (sent->key_bytes > 0)
            assert_memory_equal(got.key, sent->key, sent->key_bytes);
        if (sent->value_bytes > 0)
            assert_memory_equal(got.value, sent->value, sent->value_bytes);
    }
}

static void replies_survive_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < REPLIES; i++) {
        const struct rueda_store_reply *sent = &replies[i];
        struct frame frame = reply_frame(sent);
        struct rueda_store_reply got;
        size_t bytes = 0;

        assert_int_equal(
            rueda_store_reply_decode(frame.bytes, FRAME_MOST, &got, &bytes),
            RUEDA_OK);
        assert_int_equal(bytes, frame.len);
        assert_int_equal(got.kind, sent->kind);
        assert_int_equal(got.number, sent->number);
        assert_int_equal(got.status, sent->status);
        assert_int_equal(got.revision, sent->revision);
        assert_int_equal(got.id, sent->id);
        assert_int_equal(got.count, sent->count);
        assert_int_equal(got.key_bytes, sent->key_bytes);
        assert_int_equal(got.value_bytes, sent->value_bytes);
        assert_null(got.owner);
        if (sent->key_bytes > 0)
            assert_memory_equal(got.key, sent->key, sent->key_bytes);
        if (sent->value_bytes > 0)
            assert_memory_equal(got.value, sent->value, sent->value_bytes);
    }
}

/* ---- Cut short and changed ---------------------------------------------- */

/* Decode a copy that ends where its memory ends, as request or as reply. */
static rueda_status decode_copy(const struct frame *frame, size_t len,
                                bool as_reply, size_t *out_bytes)
{
    unsigned char *copy = malloc(len > 0 ? len : 1);
    struct rueda_store_request request;
    struct rueda_store_reply reply;
    rueda_status status;

    assert_non_null(copy);
    memcpy(copy, frame->bytes, len);
    if (as_reply)
        status = rueda_store_reply_decode(copy, len, &reply, out_bytes);
    else
        status = rueda_store_request_decode(copy, len, &request, out_bytes);
    if (status == RUEDA_OK && as_reply) {
        assert_true(reply.key_bytes <= RUEDA_STORE_KEY_BYTES);
        assert_true((const unsigned char *)reply.value + reply.value_bytes ==
                    copy + *out_bytes);
    } else if (status == RUEDA_OK) {
        assert_int_equal(rueda_store_request_check(&request), RUEDA_OK);
        assert_true((const unsigned char *)request.value +
                        request.value_bytes ==
                    copy + *out_bytes);
    }
    free(copy);
    return status;
}

static void check_cuts(const struct frame *frame, bool as_reply)
{
    for (size_t len = 0; len < frame->len; len++) {
        size_t bytes = 0;

        assert_int_equal(decode_copy(frame, len, as_reply, &bytes),
                         RUEDA_IN_PROGRESS);
        assert_int_equal(bytes, len < RUEDA_STORE_HEAD_BYTES
                                    ? RUEDA_STORE_HEAD_BYTES
                                    : frame->len);
    }
}

static void a_frame_cut_short_needs_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        struct frame frame = request_frame(&requests[i]);

        check_cuts(&frame, false);
    }
    for (size_t i = 0; i < REPLIES; i++) {
        struct frame frame = reply_frame(&replies[i]);

        check_cuts(&frame, true);
    }
}

/* Whatever a frame is turned into, it is refused or within the limits, and
 * never asks for more than the longest frame. */
static void check_changes(const struct frame *frame, bool as_reply)
{
    for (size_t at = 0; at < frame->len; at++)
        for (unsigned flip = 1; flip < 256; flip++) {
            struct frame other = *frame;
            size_t bytes = 0;
            rueda_status status;

            other.bytes[at] ^= (unsigned char)flip;
            status = decode_copy(&other, other.len, as_reply, &bytes);
            assert_true(status == RUEDA_OK || status == RUEDA_IN_PROGRESS ||
                        status == RUEDA_ERR_INVALID);
            assert_true(bytes <= RUEDA_STORE_FRAME_BYTES);
            /* The lengths are said twice. */
            if (at < 4 || at == 5 || (at >= 12 && at < 16))
                assert_int_equal(status, RUEDA_ERR_INVALID);
        }
}

static void a_changed_frame_is_refused_or_within_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        struct frame frame = request_frame(&requests[i]);

        check_changes(&frame, false);
        check_changes(&frame, true);
    }
    for (size_t i = 0; i < REPLIES; i++) {
        struct frame frame = reply_frame(&replies[i]);

        check_changes(&frame, true);
        check_changes(&frame, false);
    }
}

/* ---- What a head alone tells -------------------------------------------- */

/* The head of a SET, or of an event, with lengths of its own. */
static struct frame head_with(bool as_reply, uint8_t key, uint32_t value)
{
    struct frame frame =
        as_reply ? reply_frame(&replies[8]) : request_frame(&requests[4]);

    rueda_put_u32(frame.bytes, RUEDA_STORE_HEAD_BYTES + key + value);
    frame.bytes[5] = key;
    rueda_put_u32(frame.bytes + 12, value);
    frame.len = RUEDA_STORE_HEAD_BYTES;
    return frame;
}

static void the_longest_frame_is_asked_for_and_no_longer_one(void **state)
{
    (void)state;
    for (int as_reply = 0; as_reply < 2; as_reply++) {
        struct frame frame = head_with(as_reply, 255, RUEDA_STORE_VALUE_BYTES);
        size_t bytes = 0;

        assert_int_equal(decode_copy(&frame, frame.len, as_reply, &bytes),
                         RUEDA_IN_PROGRESS);
        assert_int_equal(bytes, RUEDA_STORE_FRAME_BYTES);
        frame = head_with(as_reply, 0, 1);
        assert_int_equal(decode_copy(&frame, frame.len, as_reply, &bytes),
                         RUEDA_ERR_INVALID);
        frame = head_with(as_reply, 1, RUEDA_STORE_VALUE_BYTES + 1);
        assert_int_equal(decode_copy(&frame, frame.len, as_reply, &bytes),
                         RUEDA_ERR_INVALID);
        /* The sum of these wraps round. */
        frame = head_with(as_reply, 255, UINT32_MAX - 200);
        assert_int_equal(decode_copy(&frame, frame.len, as_reply, &bytes),
                         RUEDA_ERR_INVALID);
        assert_int_equal(bytes, RUEDA_STORE_FRAME_BYTES);
    }
}

static void check_refused(struct frame frame, size_t at, unsigned char byte,
                          bool as_reply)
{
    size_t bytes;

    frame.bytes[at] = byte;
    assert_int_equal(decode_copy(&frame, frame.len, as_reply, &bytes),
                     RUEDA_ERR_INVALID);
}

static void what_is_no_request_or_reply_is_refused(void **state)
{
    struct frame get = request_frame(&requests[2]);
    struct frame got = reply_frame(&replies[2]);
    size_t bytes;

    (void)state;
    for (int kind = 15; kind < 256; kind++) {
        check_refused(get, 4, (unsigned char)kind, false);
        check_refused(got, 4, (unsigned char)kind, true);
    }
    check_refused(get, 4, 0, false);
    check_refused(got, 4, 0, true);
    check_refused(get, 6, 1, false);
    check_refused(get, 16, 0, false);
    check_refused(got, 6, 1, true);
    check_refused(got, 6, 2, true);
    check_refused(got, 8, 1, true);
    for (int status = 0; status < 256; status++) {
        got.bytes[6] = (unsigned char)status;
        got.bytes[7] = 0xff;
        assert_int_equal(decode_copy(&got, got.len, true, &bytes),
                         status >= 256 + RUEDA_ERR_STALLED ? RUEDA_OK
                                                           : RUEDA_ERR_INVALID);
    }
}

static void nothing_at_all_needs_a_head(void **state)
{
    struct rueda_store_request request;
    struct rueda_store_reply reply;
    size_t bytes = 0;

    (void)state;
    assert_int_equal(rueda_store_request_decode(NULL, 0, &request, &bytes),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(bytes, RUEDA_STORE_HEAD_BYTES);
    assert_int_equal(rueda_store_reply_decode(NULL, 0, &reply, &bytes),
                     RUEDA_IN_PROGRESS);
    assert_int_equal(bytes, RUEDA_STORE_HEAD_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_has_the_documented_layout),
        cmocka_unit_test(requests_survive_the_way),
        cmocka_unit_test(replies_survive_the_way),
        cmocka_unit_test(a_frame_cut_short_needs_more),
        cmocka_unit_test(a_changed_frame_is_refused_or_within_limits),
        cmocka_unit_test(the_longest_frame_is_asked_for_and_no_longer_one),
        cmocka_unit_test(what_is_no_request_or_reply_is_refused),
        cmocka_unit_test(nothing_at_all_needs_a_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
