/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/lines.h"

#include <stdlib.h>
#include <string.h>

/* The length up to and with the first end of a line; 0: there is none. */
static size_t find_end(const char *bytes, size_t len)
{
    const char *feed = memchr(bytes, '\n', len);
    const size_t before = feed != NULL ? (size_t)(feed - bytes) : len;
    const char *back = memchr(bytes, '\r', before);

    if (back == NULL)
        return feed != NULL ? before + 1 : 0;
    return back + 1 == feed ? before + 1 : (size_t)(back - bytes) + 1;
}

static void deliver(struct rueda_lines *lines, const char *bytes, size_t len,
                    bool is_end, rueda_lines_fn call, void *arg)
{
    call(arg, bytes, len, !lines->is_within);
    lines->is_within = !is_end;
    lines->is_after_return = is_end && bytes[len - 1] == '\r';
}

static void deliver_kept(struct rueda_lines *lines, bool is_end,
                         rueda_lines_fn call, void *arg)
{
    const size_t len = lines->len;

    lines->len = 0;
    if (len > 0)
        deliver(lines, lines->bytes, len, is_end, call, arg);
}

/* False: there is no memory for it. */
static bool keep(struct rueda_lines *lines, const char *bytes, size_t len)
{
    size_t room = lines->room;
    char *bigger;

    while (room - lines->len < len)
        room = room == 0 ? 256 : room * 2;
    if (room > lines->room) {
        bigger = realloc(lines->bytes, room);
        if (bigger == NULL)
            return false;
        lines->bytes = bigger;
        lines->room = room;
    }
    memcpy(lines->bytes + lines->len, bytes, len);
    lines->len += len;
    return true;
}

/* A piece that has its end, or all that there is. */
static void take(struct rueda_lines *lines, const char *bytes, size_t len,
                 bool is_end, rueda_lines_fn call, void *arg)
{
    if (lines->len + len > RUEDA_LINES_MOST)
        deliver_kept(lines, false, call, arg);
    if (lines->len == 0 && (is_end || len > RUEDA_LINES_MOST)) {
        deliver(lines, bytes, len, is_end, call, arg);
    } else if (!keep(lines, bytes, len)) {
        deliver_kept(lines, false, call, arg);
        deliver(lines, bytes, len, is_end, call, arg);
    } else if (is_end) {
        deliver_kept(lines, true, call, arg);
    }
}

/* Cut bytes into lines and hand each piece over. "\r\n" that is cut in the
 * middle is still one end of a line. */
void rueda_lines_feed(struct rueda_lines *lines, const char *bytes, size_t len,
                      rueda_lines_fn call, void *arg)
{
    if (len > 0 && lines->is_after_return && bytes[0] == '\n') {
        call(arg, bytes, 1, false);
        lines->is_after_return = false;
        bytes++;
        len--;
    }
    while (len > 0) {
        const size_t end = find_end(bytes, len);
        const size_t piece = end > 0 ? end : len;

        take(lines, bytes, piece, end > 0, call, arg);
        bytes += piece;
        len -= piece;
    }
}

void rueda_lines_end(struct rueda_lines *lines, rueda_lines_fn call, void *arg)
{
    deliver_kept(lines, false, call, arg);
    free(lines->bytes);
    *lines = (struct rueda_lines){.bytes = NULL};
}
