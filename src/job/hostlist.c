/* SPDX-License-Identifier: Apache-2.0 */
#include "job/hostlist.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* No host has a longer name (POSIX: 255 and its end). */
#define NAME_BYTES 256

static const char digits[] = "0123456789";

/* What may stand in a name; not isalnum(), which asks the locale. */
static bool is_name_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

/*
 * Of "[01-03,7]" take the number that comes first. Returns what follows the
 * bracket, or NULL.
 */
static const char *first_of_bracket(const char *at, size_t *out_digits)
{
    size_t inside = strspn(at + 1, "0123456789,-");
    size_t count = strspn(at + 1, digits);

    if (count == 0 || at[1 + inside] != ']')
        return NULL;
    *out_digits = count;
    return at + 1 + inside + 1;
}

/* The first host of Slurm's compressed list, such as "node[07-12],login". */
bool rueda_hostlist_first(const char *list, char *out, size_t bytes)
{
    char name[NAME_BYTES];
    const char *at = list;
    size_t used = 0;

    while (*at != '\0' && *at != ',') {
        const char *from = at;
        size_t count = 1;

        if (*at == '[') {
            from = at + 1;
            at = first_of_bracket(at, &count);
            if (at == NULL)
                return false;
        } else if (is_name_char(*at)) {
            at++;
        } else {
            return false;
        }
        if (count >= sizeof(name) - used)
            return false;
        memcpy(name + used, from, count);
        used += count;
    }
    if (used == 0 || used >= bytes)
        return false;
    memcpy(out, name, used);
    out[used] = '\0';
    return true;
}

/* A number of 1 to 2^31-1; returns what follows it, or NULL. */
static const char *read_count(const char *at, int *out)
{
    int64_t number = 0;

    if (*at < '1' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (*at - '0');
        if (number > INT32_MAX)
            return NULL;
    }
    *out = (int)number;
    return at;
}

/* How many tasks the node has, from "4(x2),3": the counts of one node after the
 * other. */
int rueda_hostlist_tasks(const char *list, int node)
{
    const char *at = list;

    if (node < 0)
        return -1;
    for (;;) {
        int tasks;
        int times = 1;

        at = read_count(at, &tasks);
        if (at != NULL && strncmp(at, "(x", 2) == 0) {
            at = read_count(at + 2, &times);
            if (at != NULL)
                at = *at == ')' ? at + 1 : NULL;
        }
        if (at == NULL || (*at != ',' && *at != '\0'))
            return -1;
        if (node < times)
            return tasks;
        node -= times;
        if (*at == '\0')
            return -1;
        at++;
    }
}
