/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing and reading what members say: numbers, texts, labels and requests, in
 * the order in which the message has them. Writing fails once, when memory
 * ends, and the writer remembers it; reading checks every length and every
 * enumeration, so that bytes from outside cannot make it read beyond their end.
 */
#include "negotiate/wire.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 256

/* ---- Writing ------------------------------------------------------------ */

void rueda_out_fini(struct rueda_out *out)
{
    free(out->bytes);
    memset(out, 0, sizeof(*out));
}

bool rueda_out_grow(struct rueda_out *out, size_t len)
{
    size_t room = out->room > 0 ? out->room : FIRST_ROOM;
    unsigned char *bytes;

    if (out->has_failed)
        return false;
    while (room - out->len < len)
        room *= 2;
    bytes = realloc(out->bytes, room);
    if (bytes == NULL) {
        out->has_failed = true;
        return false;
    }
    out->bytes = bytes;
    out->room = room;
    return true;
}

void rueda_out_bytes(struct rueda_out *out, const void *bytes, size_t len)
{
    unsigned char *at = len > 0 ? rueda_out_extend(out, len) : NULL;

    if (at != NULL)
        memcpy(at, bytes, len);
}

void rueda_out_text(struct rueda_out *out, const char *text)
{
    size_t len = strnlen(text, RUEDA_OUT_TEXT_MOST);

    rueda_out_u32(out, (uint32_t)len);
    rueda_out_bytes(out, text, len);
}

static void out_double(struct rueda_out *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    rueda_out_u64(out, bits);
}

void rueda_out_label(struct rueda_out *out, const char *name, uint64_t number)
{
    rueda_out_u8(out, name != NULL);
    if (name != NULL)
        rueda_out_text(out, name);
    else
        rueda_out_u64(out, number);
}

void rueda_out_request(struct rueda_out *out,
                       const struct rueda_request *request)
{
    rueda_out_label(out, request->name, request->number);
    rueda_out_u8(out, (uint8_t)request->kind);
    rueda_out_u8(out, (uint8_t)request->dtype);
    rueda_out_u8(out, (uint8_t)request->reduction);
    rueda_out_u8(out, (uint8_t)request->compression);
    rueda_out_u32(out, (uint32_t)request->root);
    rueda_out_u32(out, (uint32_t)request->device);
    rueda_out_u32(out, (uint32_t)request->priority);
    rueda_out_u32(out, request->flags);
    out_double(out, request->prescale);
    out_double(out, request->postscale);
    rueda_out_u64(out, request->group);
    rueda_out_u32(out, request->group_count);
    rueda_out_u8(out, (uint8_t)request->dims);
    for (uint32_t i = 0; i < request->dims; i++)
        rueda_out_u64(out, request->shape[i]);
}

/* ---- Reading ------------------------------------------------------------ */

static double in_double(struct rueda_in *in)
{
    uint64_t bits = rueda_in_u64(in);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

char *rueda_in_text(struct rueda_in *in)
{
    uint32_t len = rueda_in_u32(in);
    const unsigned char *at;
    char *text;

    if (len > RUEDA_OUT_TEXT_MOST)
        in->has_failed = true;
    at = rueda_in_bytes(in, len);
    if (at == NULL)
        return NULL;
    text = malloc(len + 1);
    if (text == NULL || memchr(at, '\0', len) != NULL) {
        in->has_failed = true;
        free(text);
        return NULL;
    }
    memcpy(text, at, len);
    text[len] = '\0';
    return text;
}

/* May a rank say this? */
static bool is_sane(const struct rueda_request *request)
{
    return request->kind >= 0 && request->kind <= RUEDA_SET_CLOSE &&
           rueda_dtype_size(request->dtype) > 0 &&
           (unsigned)request->reduction < RUEDA_REDUCTION_COUNT &&
           (unsigned)request->compression < RUEDA_COMPRESSION_COUNT &&
           request->dims <= RUEDA_MAX_DIMS;
}

/* Do the dimensions fit an address space? */
static bool fits(const struct rueda_request *request)
{
    size_t bytes = rueda_dtype_size(request->dtype);

    if (request->kind == RUEDA_SET_ADD || request->kind == RUEDA_SET_DROP)
        return true; /* they are something else */
    for (uint32_t i = 0; i < request->dims; i++)
        if (__builtin_mul_overflow(bytes, request->shape[i], &bytes))
            return false;
    return true;
}

void rueda_in_label(struct rueda_in *in, struct rueda_request *label)
{
    memset(label, 0, sizeof(*label));
    if (rueda_in_u8(in) != 0)
        label->name = rueda_in_text(in);
    else
        label->number = rueda_in_u64(in);
}

void rueda_in_request(struct rueda_in *in, struct rueda_request *request)
{
    rueda_in_label(in, request);
    request->kind = rueda_in_u8(in);
    request->dtype = (rueda_dtype)rueda_in_u8(in);
    request->reduction = (rueda_reduction)rueda_in_u8(in);
    request->compression = (rueda_compression)rueda_in_u8(in);
    request->root = (int)rueda_in_u32(in);
    request->device = (int)rueda_in_u32(in);
    request->priority = (int)rueda_in_u32(in);
    request->flags = rueda_in_u32(in);
    request->prescale = in_double(in);
    request->postscale = in_double(in);
    request->group = rueda_in_u64(in);
    request->group_count = rueda_in_u32(in);
    request->dims = rueda_in_u8(in);
    if (!is_sane(request))
        in->has_failed = true;
    for (uint32_t i = 0; i < request->dims && !in->has_failed; i++)
        request->shape[i] = rueda_in_u64(in);
    if (in->has_failed || !fits(request)) {
        in->has_failed = true;
        free((char *)request->name);
        memset(request, 0, sizeof(*request));
    }
}
