/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/tail.h"

#include <stdio.h>
#include <string.h>

/* What a terminal would obey is not shown. */
static void copy_line(char *out, const char *line, size_t len)
{
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        len--;
    if (len >= RUEDA_TAIL_COLUMNS)
        len = RUEDA_TAIL_COLUMNS - 1;
    memcpy(out, line, len);
    out[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)out[i] < ' ' && out[i] != '\t')
            out[i] = '?';
}

/* Files of Python and of what is installed are not the user's. */
static bool is_of_user(const char *line)
{
    static const char *const others[] = {"/site-packages/", "/dist-packages/",
                                         "/lib/python", "/lib64/python",
                                         "\"<frozen "};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strstr(line, others[i]) != NULL)
            return false;
    return true;
}

/* A line within a traceback: a frame, or the source of one. */
static void note_frame(struct rueda_tail *tail, const char *line)
{
    static const char head[] = "  File \"";

    if (strncmp(line, head, strlen(head)) == 0) {
        tail->is_in_frame = is_of_user(line);
        if (tail->is_in_frame) {
            memcpy(tail->frame[0], line, RUEDA_TAIL_COLUMNS);
            tail->frame[1][0] = '\0';
        }
    } else if (tail->is_in_frame && strncmp(line, "    ", 4) == 0) {
        memcpy(tail->frame[1], line, RUEDA_TAIL_COLUMNS);
        tail->is_in_frame = false;
    }
}

/* A message that ends with a colon is not complete: "Missing ranks:". */
static void continue_exception(struct rueda_tail *tail, const char *line)
{
    const size_t len = strlen(tail->exception);

    tail->is_in_exception = tail->is_in_exception && line[0] != '\0' &&
                            len > 0 && tail->exception[len - 1] == ':' &&
                            len + 2 < RUEDA_TAIL_COLUMNS;
    if (!tail->is_in_exception)
        return;
    snprintf(tail->exception + len, RUEDA_TAIL_COLUMNS - len, " %.*s",
             (int)(RUEDA_TAIL_COLUMNS - len - 2), line);
}

/* After "Traceback ..." come lines with blanks before them, and then one
 * without: the exception. Chained ones come one after another; the last is
 * what the program died of. */
static bool find_exception(struct rueda_tail *tail, const char *line)
{
    static const char head[] = "Traceback (most recent call last)";

    if (strncmp(line, head, strlen(head)) == 0) {
        tail->is_in_traceback = true;
        tail->is_in_exception = false;
        return false;
    }
    if (!tail->is_in_traceback) {
        continue_exception(tail, line);
        return false;
    }
    if (line[0] == ' ' || line[0] == '\t' || line[0] == '\0') {
        note_frame(tail, line);
        return false;
    }
    tail->is_in_traceback = false;
    tail->is_in_exception = true;
    tail->exception_at = tail->count - 1;
    memcpy(tail->exception, line, RUEDA_TAIL_COLUMNS);
    return true;
}

bool rueda_tail_add(struct rueda_tail *tail, const char *line, size_t len)
{
    char copy[RUEDA_TAIL_COLUMNS] = "";

    copy_line(copy, line, len);
    if (copy[0] != '\0')
        memcpy(tail->lines[tail->count++ % RUEDA_TAIL_LINES], copy,
               sizeof(copy));
    return find_exception(tail, copy);
}

unsigned rueda_tail_first(const struct rueda_tail *tail)
{
    const unsigned kept =
        tail->count < RUEDA_TAIL_LINES ? tail->count : RUEDA_TAIL_LINES;
    const unsigned oldest = tail->count - kept;

    if (tail->frame[0][0] == '\0' || tail->exception[0] == '\0' ||
        tail->exception_at < oldest)
        return 0;
    return tail->exception_at - oldest;
}

const char *rueda_tail_line(const struct rueda_tail *tail, unsigned i)
{
    const unsigned kept =
        tail->count < RUEDA_TAIL_LINES ? tail->count : RUEDA_TAIL_LINES;

    if (i >= kept)
        return NULL;
    return tail->lines[(tail->count - kept + i) % RUEDA_TAIL_LINES];
}
