/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests and replies of the store as frames: a head of 48 bytes, the key, the
 * value. Decoding accepts only what encoding writes: lengths that add up, known
 * kinds, zeros in the fields that a kind does not use.
 */
#include "job/store/wire.h"

#include <string.h>

#include "base/bytes.h"

/* The fields of a head, whatever it is the head of. */
struct frame_head {
    uint32_t frame_bytes;
    uint8_t kind;
    uint8_t key_bytes;
    int16_t status;
    uint32_t time_ms;
    uint32_t value_bytes;
    uint64_t number;
    uint64_t revision;
    uint64_t id;
    int64_t count;
};

static size_t write_start(const struct frame_head *head, const void *key,
                          unsigned char *out)
{
    size_t start = RUEDA_STORE_HEAD_BYTES + head->key_bytes;

    rueda_put_u32(out, (uint32_t)start + head->value_bytes);
    out[4] = head->kind;
    out[5] = head->key_bytes;
    rueda_put_u16(out + 6, (uint16_t)head->status);
    rueda_put_u32(out + 8, head->time_ms);
    rueda_put_u32(out + 12, head->value_bytes);
    rueda_put_u64(out + 16, head->number);
    rueda_put_u64(out + 24, head->revision);
    rueda_put_u64(out + 32, head->id);
    rueda_put_u64(out + 40, (uint64_t)head->count);
    if (head->key_bytes > 0)
        memcpy(out + RUEDA_STORE_HEAD_BYTES, key, head->key_bytes);
    return start;
}

static struct frame_head read_head(const unsigned char *in)
{
    return (struct frame_head){
        .frame_bytes = rueda_get_u32(in),
        .kind = in[4],
        .key_bytes = in[5],
        .status = (int16_t)rueda_get_u16(in + 6),
        .time_ms = rueda_get_u32(in + 8),
        .value_bytes = rueda_get_u32(in + 12),
        .number = rueda_get_u64(in + 16),
        .revision = rueda_get_u64(in + 24),
        .id = rueda_get_u64(in + 32),
        .count = (int64_t)rueda_get_u64(in + 40),
    };
}

static const unsigned char *key_in(const void *frame)
{
    return (const unsigned char *)frame + RUEDA_STORE_HEAD_BYTES;
}

/* Is the length of the frame that of its parts? */
static bool adds_up(const struct frame_head *head)
{
    return (uint64_t)head->frame_bytes == (uint64_t)RUEDA_STORE_HEAD_BYTES +
                                              head->key_bytes +
                                              head->value_bytes;
}

size_t rueda_store_request_encode(const struct rueda_store_request *request,
                                  unsigned char out[RUEDA_STORE_START_BYTES])
{
    struct frame_head head = {
        .kind = (uint8_t)request->kind,
        .key_bytes = (uint8_t)request->key_bytes,
        .time_ms = request->time_ms,
        .value_bytes = (uint32_t)request->value_bytes,
        .number = request->number,
        .revision = request->revision,
        .id = request->id,
        .count = request->count,
    };

    return write_start(&head, request->key, out);
}

size_t rueda_store_reply_encode(const struct rueda_store_reply *reply,
                                unsigned char out[RUEDA_STORE_START_BYTES])
{
    struct frame_head head = {
        .kind = (uint8_t)reply->kind,
        .key_bytes = (uint8_t)reply->key_bytes,
        .status = (int16_t)reply->status,
        .value_bytes = (uint32_t)reply->value_bytes,
        .number = reply->number,
        .revision = reply->revision,
        .id = reply->id,
        .count = reply->count,
    };

    return write_start(&head, reply->key, out);
}

rueda_status rueda_store_request_decode(const void *bytes, size_t len,
                                        struct rueda_store_request *out_request,
                                        size_t *out_bytes)
{
    struct rueda_store_request request;
    struct frame_head head;

    if (len < RUEDA_STORE_HEAD_BYTES) {
        *out_bytes = RUEDA_STORE_HEAD_BYTES;
        return RUEDA_IN_PROGRESS;
    }
    head = read_head(bytes);
    request = (struct rueda_store_request){
        .kind = (rueda_store_kind)head.kind,
        .number = head.number,
        .key_bytes = head.key_bytes,
        .value_bytes = head.value_bytes,
        .revision = head.revision,
        .id = head.id,
        .count = head.count,
        .time_ms = head.time_ms,
    };
    if (!adds_up(&head) || head.status != 0 ||
        rueda_store_request_check(&request) != RUEDA_OK)
        return RUEDA_ERR_INVALID;
    *out_bytes = head.frame_bytes;
    if (len < head.frame_bytes)
        return RUEDA_IN_PROGRESS;
    request.key = key_in(bytes);
    request.value = key_in(bytes) + head.key_bytes;
    *out_request = request;
    return RUEDA_OK;
}

/* ---- Replies ------------------------------------------------------------ */

static bool is_final_status(int status)
{
    switch (status) {
#define X(name, value, text) case RUEDA_##name:
        RUEDA_STATUS_MAP(X)
#undef X
        return status != RUEDA_IN_PROGRESS;
    default:
        return false;
    }
}

static bool is_reply_kind(unsigned kind)
{
    switch (kind) {
#define X(name, number, key_least, key_most, value_most)                       \
    case RUEDA_STORE_##name:
        RUEDA_STORE_KIND_MAP(X)
#undef X
    case RUEDA_STORE_EVENT_SET:
    case RUEDA_STORE_EVENT_DELETE:
        return true;
    default:
        return false;
    }
}

static bool is_reply(const struct frame_head *head)
{
    bool is_event = head->kind == RUEDA_STORE_EVENT_SET ||
                    head->kind == RUEDA_STORE_EVENT_DELETE;

    return adds_up(head) && head->time_ms == 0 && is_reply_kind(head->kind) &&
           is_final_status(head->status) &&
           head->value_bytes <= RUEDA_STORE_VALUE_BYTES &&
           is_event == (head->key_bytes > 0);
}

rueda_status rueda_store_reply_decode(const void *bytes, size_t len,
                                      struct rueda_store_reply *out_reply,
                                      size_t *out_bytes)
{
    struct frame_head head;

    if (len < RUEDA_STORE_HEAD_BYTES) {
        *out_bytes = RUEDA_STORE_HEAD_BYTES;
        return RUEDA_IN_PROGRESS;
    }
    head = read_head(bytes);
    if (!is_reply(&head))
        return RUEDA_ERR_INVALID;
    *out_bytes = head.frame_bytes;
    if (len < head.frame_bytes)
        return RUEDA_IN_PROGRESS;
    *out_reply = (struct rueda_store_reply){
        .kind = (rueda_store_kind)head.kind,
        .number = head.number,
        .status = (rueda_status)head.status,
        .revision = head.revision,
        .id = head.id,
        .count = head.count,
        .key = key_in(bytes),
        .key_bytes = head.key_bytes,
        .value = key_in(bytes) + head.key_bytes,
        .value_bytes = head.value_bytes,
    };
    return RUEDA_OK;
}
