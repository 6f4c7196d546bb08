/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding and decoding frames. Every length from outside is checked against
 * the bytes that are there.
 */
#include "launch/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* A whole environment for every rank may be large; nothing else is. */
#define MOST_START ((size_t)64 << 20)
#define MOST_OTHER ((size_t)1 << 20)

static size_t most_of(rueda_frame_kind kind)
{
    return kind == RUEDA_FRAME_START ? MOST_START : MOST_OTHER;
}

static bool is_kind(unsigned kind)
{
    return (kind >= RUEDA_FRAME_HELLO && kind <= RUEDA_FRAME_STOP) ||
           (kind >= RUEDA_FRAME_READY && kind <= RUEDA_FRAME_DRAIN);
}

/* Find the next frame in what has come. The head is checked first, so a hostile
 * length never makes a caller wait for gigabytes. */
rueda_status rueda_frame_next(const void *buf, size_t len,
                              struct rueda_frame *out, size_t *out_bytes)
{
    const unsigned char *bytes = buf;
    size_t body;

    if (len < RUEDA_FRAME_HEAD) {
        *out_bytes = RUEDA_FRAME_HEAD;
        return RUEDA_IN_PROGRESS;
    }
    body = rueda_get_u32(bytes);
    if (!is_kind(bytes[4]) || bytes[5] != 0 || bytes[6] != 0 || bytes[7] != 0 ||
        body > most_of(bytes[4]))
        return RUEDA_ERR_INVALID;
    *out_bytes = RUEDA_FRAME_HEAD + body;
    if (len < *out_bytes)
        return RUEDA_IN_PROGRESS;
    *out = (struct rueda_frame){
        .kind = bytes[4], .bytes = bytes + RUEDA_FRAME_HEAD, .len = body};
    return RUEDA_OK;
}

/* ---- Writing ------------------------------------------------------------ */

/* Add bytes; a packer that has run out of memory stays short, and its frame is
 * not sent. */
static void append(struct rueda_packer *packer, const void *bytes, size_t len)
{
    size_t room = packer->room;
    unsigned char *bigger;

    while (room - packer->len < len)
        room = room == 0 ? 256 : room * 2;
    if (packer->is_short || len == 0)
        return;
    if (room > packer->room) {
        bigger = realloc(packer->bytes, room);
        if (bigger == NULL) {
            packer->is_short = true;
            return;
        }
        packer->bytes = bigger;
        packer->room = room;
    }
    memcpy(packer->bytes + packer->len, bytes, len);
    packer->len += len;
}

void rueda_packer_begin(struct rueda_packer *packer, rueda_frame_kind kind)
{
    unsigned char head[RUEDA_FRAME_HEAD] = {0};

    *packer = (struct rueda_packer){.bytes = NULL};
    head[4] = (unsigned char)kind;
    append(packer, head, sizeof(head));
}

void rueda_frame_pack_number(struct rueda_packer *packer, uint32_t number)
{
    unsigned char bytes[4];

    rueda_put_u32(bytes, number);
    append(packer, bytes, sizeof(bytes));
}

void rueda_frame_pack_bytes(struct rueda_packer *packer, const void *bytes,
                            size_t len)
{
    if (len > MOST_START) {
        packer->is_short = true;
        return;
    }
    rueda_frame_pack_number(packer, (uint32_t)len);
    append(packer, bytes, len);
}

void rueda_frame_pack_text(struct rueda_packer *packer, const char *text)
{
    rueda_frame_pack_bytes(packer, text, strlen(text));
}

void rueda_frame_pack_list(struct rueda_packer *packer,
                           const struct rueda_strings *list)
{
    rueda_frame_pack_number(packer, (uint32_t)list->count);
    for (int i = 0; i < list->count; i++)
        rueda_frame_pack_text(packer, list->list[i]);
}

void rueda_packer_end(struct rueda_packer *packer)
{
    if (packer->is_short)
        return;
    if (packer->len - RUEDA_FRAME_HEAD > most_of(packer->bytes[4])) {
        packer->is_short = true;
        return;
    }
    rueda_put_u32(packer->bytes, (uint32_t)(packer->len - RUEDA_FRAME_HEAD));
}

void rueda_packer_fini(struct rueda_packer *packer)
{
    /* There may be a key in it, or other people's secrets. */
    if (packer->bytes != NULL)
        explicit_bzero(packer->bytes, packer->room);
    free(packer->bytes);
    *packer = (struct rueda_packer){.bytes = NULL};
}

/* ---- Reading ------------------------------------------------------------ */

void rueda_unpacker_begin(struct rueda_unpacker *unpacker,
                          const struct rueda_frame *frame)
{
    *unpacker = (struct rueda_unpacker){.at = frame->bytes, .left = frame->len};
}

static const unsigned char *step(struct rueda_unpacker *unpacker, size_t len)
{
    const unsigned char *here = unpacker->at;

    if (unpacker->is_bad || len > unpacker->left) {
        unpacker->is_bad = true;
        return NULL;
    }
    unpacker->at += len;
    unpacker->left -= len;
    return here;
}

uint32_t rueda_frame_unpack_number(struct rueda_unpacker *unpacker)
{
    const unsigned char *bytes = step(unpacker, 4);

    return bytes != NULL ? rueda_get_u32(bytes) : 0;
}

const void *rueda_frame_unpack_bytes(struct rueda_unpacker *unpacker,
                                     size_t *out_len)
{
    const size_t len = rueda_frame_unpack_number(unpacker);
    const unsigned char *bytes = step(unpacker, len);

    *out_len = bytes != NULL ? len : 0;
    return bytes != NULL ? bytes : (const unsigned char *)"";
}

void rueda_frame_unpack_text(struct rueda_unpacker *unpacker, char *out,
                             size_t bytes)
{
    size_t len;
    const char *text = rueda_frame_unpack_bytes(unpacker, &len);

    snprintf(out, bytes, "%.*s", (int)(len < bytes ? len : bytes), text);
}

/* A text takes 4 bytes at least, so a count that lies ends soon. Zero bytes are
 * in no text. */
void rueda_frame_unpack_list(struct rueda_unpacker *unpacker,
                             struct rueda_strings *out)
{
    const uint32_t count = rueda_frame_unpack_number(unpacker);

    for (uint32_t i = 0; i < count && !unpacker->is_bad; i++) {
        size_t len;
        const char *text = rueda_frame_unpack_bytes(unpacker, &len);

        if (memchr(text, '\0', len) != NULL)
            unpacker->is_bad = true;
        if (!unpacker->is_bad)
            rueda_strings_add_bytes(out, text, len);
    }
}

bool rueda_unpacker_is_done(const struct rueda_unpacker *unpacker)
{
    return !unpacker->is_bad && unpacker->left == 0;
}
