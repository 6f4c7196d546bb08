/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/discovery_parse.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES 320

/* The words of a line, without blanks around them and without a remark. */
static void trim(const char *line, size_t len, char out[LINE_BYTES])
{
    static const char blanks[] = " \t\r";

    for (size_t i = 0; i < len; i++)
        if (line[i] == '#')
            len = i;
    while (len > 0 && strchr(blanks, line[0]) != NULL) {
        line++;
        len--;
    }
    while (len > 0 && strchr(blanks, line[len - 1]) != NULL)
        len--;
    snprintf(out, LINE_BYTES, "%.*s", (int)len, line);
}

/* "host" or "host:slots" */
static bool add_line(const char *line, int default_slots,
                     struct rueda_hosts *out, struct rueda_text *words)
{
    const char *bracket = strrchr(line, ']');
    const char *colon = strchr(bracket != NULL ? bracket : line, ':');
    struct rueda_hosts one = {.list = NULL};
    char whole[LINE_BYTES + 16];
    char slots[16];
    bool is_ipv6;
    bool is_good;

    if (colon == NULL && default_slots > 0)
        snprintf(whole, sizeof(whole), "%s:%d", line, default_slots);
    else
        snprintf(whole, sizeof(whole), "%s", line);
    if (strpbrk(line, " \t,") != NULL) {
        rueda_text_set(words, "'%.80s' is not of the form HOST or HOST:SLOTS",
                       line);
        return false;
    }
    if (!rueda_hosts_parse(whole, &one, words))
        return false;
    /* An address of IPv6 gets its brackets again. */
    is_ipv6 = strchr(one.list[0].name, ':') != NULL;
    snprintf(slots, sizeof(slots), "%d", one.list[0].slots);
    snprintf(whole, sizeof(whole), "%s%s%s", is_ipv6 ? "[" : "",
             one.list[0].name, is_ipv6 ? "]" : "");
    is_good = rueda_hosts_add(out, whole, slots, words);
    rueda_hosts_fini(&one);
    return is_good;
}

bool rueda_discovery_parse(const char *text, int default_slots,
                           struct rueda_hosts *out, struct rueda_text *words)
{
    struct rueda_hosts hosts = {.list = NULL};
    char line[LINE_BYTES];

    while (*text != '\0') {
        const size_t len = strcspn(text, "\n");

        trim(text, len, line);
        text += len + (text[len] == '\n');
        if (line[0] == '\0')
            continue;
        if (!add_line(line, default_slots, &hosts, words)) {
            rueda_hosts_fini(&hosts);
            return false;
        }
    }
    if (hosts.count == 0) {
        rueda_text_set(words, "there is no host in what it printed");
        return false;
    }
    *out = hosts;
    return true;
}
