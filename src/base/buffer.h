/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are added at the end and taken from the beginning. All zero is an
 * empty one. Pure; one thread at a time.
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

/* Where so many bytes can be added, which rueda_buffer_added() then does;
 * NULL: there is no memory. */
unsigned char *rueda_buffer_reserve(struct rueda_buffer *buffer, size_t len);
void rueda_buffer_added(struct rueda_buffer *buffer, size_t len);

/* Both, for bytes that are somewhere. False: there is no memory. */
bool rueda_buffer_add(struct rueda_buffer *buffer, const void *bytes,
                      size_t len);

/* Take so many from the beginning. */
void rueda_buffer_drop(struct rueda_buffer *buffer, size_t len);

void rueda_buffer_fini(struct rueda_buffer *buffer);

#endif /* RUEDA_BASE_BUFFER_H */
