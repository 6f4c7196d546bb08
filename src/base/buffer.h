/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are added at the end and taken from the beginning. All zero is an
 * empty one. Pure; one thread at a time.
 *
 *     bytes   | taken | there ........... | free |
 *             0       at                 end   room
 *
 * Adding may move the bytes to the beginning, or into larger memory, so
 * pointers into the buffer hold only until the next reserve or add. The memory
 * grows by doubling, and shrinks only by rueda_buffer_fini().
 */
#ifndef RUEDA_BASE_BUFFER_H
#define RUEDA_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct rueda_buffer {
    unsigned char *bytes; /* those from `at` to `end` are there */
    size_t at;
    size_t end;
    size_t room;
};

static inline size_t rueda_buffer_len(const struct rueda_buffer *buffer)
{
    return buffer->end - buffer->at;
}

/* The first of them; valid until something is added. */
static inline unsigned char *rueda_buffer_front(struct rueda_buffer *buffer)
{
    return buffer->bytes + buffer->at;
}

/* Room for this many bytes, which rueda_buffer_added() then adds; NULL without
 * memory. */
unsigned char *rueda_buffer_reserve(struct rueda_buffer *buffer, size_t len);
void rueda_buffer_added(struct rueda_buffer *buffer, size_t len);

/* Both, for bytes that exist elsewhere. False without memory. */
bool rueda_buffer_add(struct rueda_buffer *buffer, const void *bytes,
                      size_t len);

/* Remove this many from the front, of those that are there. */
void rueda_buffer_drop(struct rueda_buffer *buffer, size_t len);

/* Free the bytes; the buffer is empty, and may be used again. */
void rueda_buffer_fini(struct rueda_buffer *buffer);

#endif /* RUEDA_BASE_BUFFER_H */
