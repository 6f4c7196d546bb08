/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of control messages: a buffer that grows as they are written, and a
 * reader that cannot run over its end. Numbers are little-endian.
 */
#ifndef RUEDA_NEGOTIATE_WIRE_H
#define RUEDA_NEGOTIATE_WIRE_H

#include <rueda/rueda.h>

#include "base/bytes.h"
#include "op/request.h"

struct rueda_out {
    unsigned char *bytes;
    size_t len;
    size_t room;
    bool has_failed; /* no memory: nothing more is written */
};

void rueda_out_fini(struct rueda_out *out);

/* Make room for len more bytes; false without memory. */
bool rueda_out_grow(struct rueda_out *out, size_t len);

/* The next len bytes, to be written by the caller, or NULL. */
static inline unsigned char *rueda_out_extend(struct rueda_out *out, size_t len)
{
    if ((out->room - out->len < len || out->has_failed) &&
        !rueda_out_grow(out, len))
        return NULL;
    out->len += len;
    return out->bytes + out->len - len;
}

static inline void rueda_out_u8(struct rueda_out *out, uint8_t value)
{
    unsigned char *at = rueda_out_extend(out, 1);

    if (at != NULL)
        *at = value;
}

static inline void rueda_out_u32(struct rueda_out *out, uint32_t value)
{
    unsigned char *at = rueda_out_extend(out, 4);

    if (at != NULL)
        rueda_put_u32(at, value);
}

static inline void rueda_out_u64(struct rueda_out *out, uint64_t value)
{
    unsigned char *at = rueda_out_extend(out, 8);

    if (at != NULL)
        rueda_put_u64(at, value);
}

/* The last record of ids that was written, if it is the last of all: one more
 * id may make it longer. */
struct rueda_id_run {
    size_t end; /* where it ends in the buffer; 0: there is none */
    uint32_t next;
};

/* A kind, an id, and how many consecutive ids are meant: steps that repeat use
 * ids in the order in which they were given out. All of a run are of one kind.
 */
static inline void rueda_out_id(struct rueda_out *out, struct rueda_id_run *run,
                                uint8_t kind, uint32_t id)
{
    if (run->end == out->len && run->end > 0 && run->next == id &&
        !out->has_failed) {
        unsigned char *count = out->bytes + out->len - 4;

        rueda_put_u32(count, rueda_get_u32(count) + 1);
    } else {
        rueda_out_u8(out, kind);
        rueda_out_u32(out, id);
        rueda_out_u32(out, 1);
        run->end = out->len;
    }
    run->next = id + 1;
}

void rueda_out_bytes(struct rueda_out *out, const void *bytes, size_t len);

/* Up to RUEDA_OUT_TEXT_MOST characters, cut there. */
#define RUEDA_OUT_TEXT_MOST ((size_t)65535)
void rueda_out_text(struct rueda_out *out, const char *text);

/* A name, or a number if that is NULL. */
void rueda_out_label(struct rueda_out *out, const char *name, uint64_t number);

/* A request, its label included. */
void rueda_out_request(struct rueda_out *out,
                       const struct rueda_request *request);

struct rueda_in {
    const unsigned char *at;
    const unsigned char *end;
    bool has_failed; /* it had too few bytes, or a value that cannot be;
                        everything after that is zero */
};

/* The next `len` bytes, where they are, or NULL. */
static inline const unsigned char *rueda_in_bytes(struct rueda_in *in,
                                                  size_t len)
{
    const unsigned char *at = in->at;

    if (in->has_failed || (size_t)(in->end - in->at) < len) {
        in->has_failed = true;
        return NULL;
    }
    in->at += len;
    return at;
}

static inline uint8_t rueda_in_u8(struct rueda_in *in)
{
    const unsigned char *at = rueda_in_bytes(in, 1);

    return at != NULL ? *at : 0;
}

static inline uint32_t rueda_in_u32(struct rueda_in *in)
{
    const unsigned char *at = rueda_in_bytes(in, 4);

    return at != NULL ? rueda_get_u32(at) : 0;
}

static inline uint64_t rueda_in_u64(struct rueda_in *in)
{
    const unsigned char *at = rueda_in_bytes(in, 8);

    return at != NULL ? rueda_get_u64(at) : 0;
}

/* A copy of its own, or NULL. */
char *rueda_in_text(struct rueda_in *in);

/* A request that has nothing but a label, whose name is a copy of its own, to
 * be freed with free((char *)label->name). After a failure there is none. */
void rueda_in_label(struct rueda_in *in, struct rueda_request *label);

/*
 * A request; its values are checked to be ones that a rank may send. The name
 * is a copy of its own, to be freed with free((char *)request->name); after a
 * failure there is none.
 */
void rueda_in_request(struct rueda_in *in, struct rueda_request *request);

#endif /* RUEDA_NEGOTIATE_WIRE_H */
