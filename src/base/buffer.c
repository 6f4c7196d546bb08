/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)4096)

/* What was taken from the front is free again before the buffer grows. Where
 * realloc() fails the bytes are still there, and valid. */
unsigned char *rueda_buffer_reserve(struct rueda_buffer *buffer, size_t len)
{
    const size_t needed = rueda_buffer_len(buffer) + len;
    size_t room = buffer->room != 0 ? buffer->room : FIRST_ROOM;
    unsigned char *bigger;

    if (buffer->room - buffer->end >= len && buffer->bytes != NULL)
        return buffer->bytes + buffer->end;
    if (buffer->at > 0 && buffer->bytes != NULL) {
        memmove(buffer->bytes, buffer->bytes + buffer->at,
                rueda_buffer_len(buffer));
        buffer->end -= buffer->at;
        buffer->at = 0;
    }
    while (room < needed)
        room *= 2;
    if (room > buffer->room) {
        bigger = realloc(buffer->bytes, room);
        if (bigger == NULL)
            return NULL;
        buffer->bytes = bigger;
        buffer->room = room;
    }
    return buffer->bytes + buffer->end;
}

void rueda_buffer_added(struct rueda_buffer *buffer, size_t len)
{
    buffer->end += len;
}

bool rueda_buffer_add(struct rueda_buffer *buffer, const void *bytes,
                      size_t len)
{
    unsigned char *place = rueda_buffer_reserve(buffer, len);

    if (place == NULL)
        return false;
    memcpy(place, bytes, len);
    rueda_buffer_added(buffer, len);
    return true;
}

/* Empty, it begins at 0 again, which costs no memmove() later. */
void rueda_buffer_drop(struct rueda_buffer *buffer, size_t len)
{
    buffer->at += len;
    if (buffer->at < buffer->end)
        return;
    buffer->at = 0;
    buffer->end = 0;
}

void rueda_buffer_fini(struct rueda_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct rueda_buffer){.bytes = NULL};
}
