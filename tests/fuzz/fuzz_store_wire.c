/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's frames, one behind the other, read as requests and as replies. A
 * frame that is accepted is written in no other way, and no part of it is one.
 */
#include "fuzz/fuzz.h"
#include "job/store/wire.h"

/* What the two decoders share: they differ in the struct that they fill. */
struct message {
    rueda_status status;
    size_t bytes;
    size_t key_bytes;
    size_t value_bytes;
    size_t start; /* what the encoder wrote of it */
    unsigned char again[RUEDA_STORE_START_BYTES];
};

typedef struct message (*reader)(const uint8_t *data, size_t size);

static struct message read_request(const uint8_t *data, size_t size)
{
    struct message message = {.bytes = SIZE_MAX};
    struct rueda_store_request request;

    message.status =
        rueda_store_request_decode(data, size, &request, &message.bytes);
    if (message.status != RUEDA_OK)
        return message;
    must(rueda_store_request_check(&request) == RUEDA_OK);
    must(request.key == data + RUEDA_STORE_HEAD_BYTES);
    message.key_bytes = request.key_bytes;
    message.value_bytes = request.value_bytes;
    message.start = rueda_store_request_encode(&request, message.again);
    return message;
}

static struct message read_reply(const uint8_t *data, size_t size)
{
    struct message message = {.bytes = SIZE_MAX};
    struct rueda_store_reply reply;

    message.status =
        rueda_store_reply_decode(data, size, &reply, &message.bytes);
    if (message.status != RUEDA_OK)
        return message;
    must(reply.status <= 0 && reply.owner == NULL);
    must(reply.key == data + RUEDA_STORE_HEAD_BYTES);
    message.key_bytes = reply.key_bytes;
    message.value_bytes = reply.value_bytes;
    message.start = rueda_store_reply_encode(&reply, message.again);
    return message;
}

/* Of a frame that is not all there, more is wanted, and never too much. */
static void check_part(reader read, const uint8_t *data, size_t size)
{
    const struct message part = read(data, size);

    must(part.status == RUEDA_IN_PROGRESS);
    must(part.bytes > size && part.bytes <= RUEDA_STORE_FRAME_BYTES);
}

static void walk(reader read, const uint8_t *data, size_t size)
{
    struct message message = read(data, size);

    while (message.status == RUEDA_OK) {
        must(message.bytes <= size);
        must(message.start == RUEDA_STORE_HEAD_BYTES + message.key_bytes);
        must(message.start + message.value_bytes == message.bytes);
        must(memcmp(message.again, data, message.start) == 0);
        check_part(read, data, message.bytes - 1);
        check_part(read, data, message.bytes / 2);
        data += message.bytes;
        size -= message.bytes;
        message = read(data, size);
    }
    if (message.status == RUEDA_IN_PROGRESS)
        check_part(read, data, size);
    else
        must(message.status == RUEDA_ERR_INVALID && message.bytes == SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk(read_request, data, size);
    walk(read_reply, data, size);
    return 0;
}
