/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/tail.h"

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

/* After "Traceback ..." come lines with blanks before them, and then one
 * without: the exception. Chained ones come one after another; the last is
 * what the program died of. */
static bool find_exception(struct rueda_tail *tail, const char *line)
{
    static const char head[] = "Traceback (most recent call last)";

    if (strncmp(line, head, strlen(head)) == 0) {
        tail->is_in_traceback = true;
        return false;
    }
    if (!tail->is_in_traceback || line[0] == ' ' || line[0] == '\t' ||
        line[0] == '\0')
        return false;
    tail->is_in_traceback = false;
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

const char *rueda_tail_line(const struct rueda_tail *tail, unsigned i)
{
    const unsigned kept =
        tail->count < RUEDA_TAIL_LINES ? tail->count : RUEDA_TAIL_LINES;

    if (i >= kept)
        return NULL;
    return tail->lines[(tail->count - kept + i) % RUEDA_TAIL_LINES];
}
