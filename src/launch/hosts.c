/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts with their slots: the text of -H, hostfiles, and this host. */
#include "launch/hosts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "launch/user_file.h"

#define FILE_MIB 4

#define LETTERS                                                                \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

/* A piece of a text. */
struct list_piece {
    const char *start;
    size_t len;
};

static bool is_name(struct list_piece name)
{
    return name.len > 0 && name.len < RUEDA_LAUNCH_HOST_BYTES &&
           name.start[0] != '-' && strspn(name.start, LETTERS) >= name.len;
}

/* In brackets, perhaps with the name of an interface. A name that begins with a
 * dash would be an option to ssh. */
static bool is_ipv6(struct list_piece name)
{
    return name.len >= 4 && name.len < RUEDA_LAUNCH_HOST_BYTES &&
           name.start[0] == '[' && name.start[name.len - 1] == ']' &&
           memchr(name.start, ':', name.len) != NULL &&
           strchr("0123456789abcdefABCDEF:", name.start[1]) != NULL &&
           strspn(name.start + 1, LETTERS "%:") == name.len - 2;
}

/* Add slots to a host; one that was named before is the same host again. */
static bool add(struct rueda_hosts *hosts, struct list_piece name, int slots,
                struct rueda_text *words)
{
    struct rueda_hosts_entry *bigger;

    if (name.start[0] == '[')
        name = (struct list_piece){name.start + 1, name.len - 2};
    for (int i = 0; i < hosts->count; i++) {
        struct rueda_hosts_entry *host = &hosts->list[i];

        if (strlen(host->name) == name.len &&
            memcmp(host->name, name.start, name.len) == 0) {
            host->slots += slots;
            return host->slots <= RUEDA_HOSTS_MOST_SLOTS;
        }
    }
    bigger = realloc(hosts->list, (size_t)(hosts->count + 1) * sizeof(*bigger));
    if (bigger == NULL || hosts->count == RUEDA_HOSTS_MOST) {
        rueda_text_set(words, "too many hosts");
        if (bigger != NULL)
            hosts->list = bigger;
        return false;
    }
    hosts->list = bigger;
    bigger = &hosts->list[hosts->count++];
    memset(bigger, 0, sizeof(*bigger));
    memcpy(bigger->name, name.start, name.len);
    bigger->slots = slots;
    return true;
}

static const char *remedy_for(struct list_piece name)
{
    if (memchr(name.start, '@', name.len) != NULL)
        return "; say the user in ~/.ssh/config";
    if (memchr(name.start, ':', name.len) != NULL)
        return "; an address of IPv6 stands in brackets: [fd00::1]:4";
    return "; write a:4,b:4, or \"a slots=4\" in a file";
}

/* A name and the text of its slots, whose end is that of the item. */
static bool add_item(struct rueda_hosts *hosts, struct list_piece name,
                     struct list_piece slots, struct rueda_text *words)
{
    char digits[16] = "";
    uint64_t count;

    if (!is_name(name) && !is_ipv6(name)) {
        rueda_text_set(words, "'%.*s' is not a host name%s",
                       (int)(name.len < 64 ? name.len : 64), name.start,
                       remedy_for(name));
        return false;
    }
    if (slots.len < sizeof(digits))
        memcpy(digits, slots.start, slots.len);
    if (!rueda_parse_whole(digits, RUEDA_HOSTS_MOST_SLOTS, &count) ||
        count == 0) {
        rueda_text_set(words,
                       "host '%.*s' has '%.*s' slots; a number from 1 to %d "
                       "is expected",
                       (int)(name.len < 64 ? name.len : 64), name.start,
                       (int)(slots.len < 32 ? slots.len : 32), slots.start,
                       RUEDA_HOSTS_MOST_SLOTS);
        return false;
    }
    if (add(hosts, name, (int)count, words))
        return true;
    if (rueda_text_is_empty(words))
        rueda_text_set(words, "host '%.*s' has more than %d slots",
                       (int)(name.len < 64 ? name.len : 64), name.start,
                       RUEDA_HOSTS_MOST_SLOTS);
    return false;
}

bool rueda_hosts_add(struct rueda_hosts *hosts, const char *name,
                     const char *slots, struct rueda_text *words)
{
    return add_item(hosts, (struct list_piece){name, strlen(name)},
                    (struct list_piece){slots, strlen(slots)}, words);
}

/* "a:4" or "[fd00::1]:4". */
static bool add_colon_item(struct rueda_hosts *hosts, struct list_piece item,
                           struct rueda_text *words)
{
    const char *colon = NULL;

    if (item.len == 0) {
        rueda_text_set(words, "a host is missing at a comma; write a:4,b:4");
        return false;
    }
    if (item.start[item.len - 1] != ']')
        colon = memrchr(item.start, ':', item.len);
    if (colon == NULL) {
        rueda_text_set(words,
                       "host '%.*s' has no number of slots; write '%.*s:4' "
                       "for four",
                       (int)(item.len < 64 ? item.len : 64), item.start,
                       (int)(item.len < 64 ? item.len : 64), item.start);
        return false;
    }
    return add_item(
        hosts, (struct list_piece){item.start, (size_t)(colon - item.start)},
        (struct list_piece){colon + 1,
                            (size_t)(item.start + item.len - colon) - 1},
        words);
}

/* The list of -H: "a:2,b:4", an IPv6 address in brackets. */
bool rueda_hosts_parse(const char *text, struct rueda_hosts *out,
                       struct rueda_text *words)
{
    struct rueda_hosts hosts = {NULL, 0};

    for (const char *at = text;; at++) {
        const size_t len = strcspn(at, ",");

        if (!add_colon_item(&hosts, (struct list_piece){at, len}, words)) {
            rueda_hosts_fini(&hosts);
            return false;
        }
        at += len;
        if (*at == '\0')
            break;
    }
    *out = hosts;
    return true;
}

/* ---- Files -------------------------------------------------------------- */

#define BLANKS " \t\r"

/* A line without its remark and without blanks at its end. */
static struct list_piece trimmed(const char *line, size_t len)
{
    struct list_piece piece = {line, len};
    const char *remark = memchr(line, '#', len);

    if (remark != NULL)
        piece.len = (size_t)(remark - line);
    while (piece.len > 0 && strchr(BLANKS, piece.start[0]) != NULL) {
        piece.start++;
        piece.len--;
    }
    while (piece.len > 0 && strchr(BLANKS, piece.start[piece.len - 1]) != NULL)
        piece.len--;
    return piece;
}

/* One line of a host file: "name slots=N" as Open MPI has it, or "name:N". */
static bool add_line(struct rueda_hosts *hosts, struct list_piece line,
                     struct rueda_text *words)
{
    static const char mark[] = "slots=";
    size_t name = 0;
    size_t rest;

    while (name < line.len && strchr(BLANKS, line.start[name]) == NULL)
        name++;
    if (name == line.len)
        return add_colon_item(hosts, line, words);
    rest = name;
    while (strchr(BLANKS, line.start[rest]) != NULL)
        rest++;
    if (line.len - rest <= strlen(mark) ||
        strncmp(line.start + rest, mark, strlen(mark)) != 0) {
        rueda_text_set(words, "'%.*s': a line is \"host slots=4\"",
                       (int)(line.len < 64 ? line.len : 64), line.start);
        return false;
    }
    rest += strlen(mark);
    return add_item(hosts, (struct list_piece){line.start, name},
                    (struct list_piece){line.start + rest, line.len - rest},
                    words);
}

/* The text of a host file. Comments and empty lines are skipped; an error names
 * the line. */
bool rueda_hosts_parse_file(const char *path, const char *text,
                            struct rueda_hosts *out, struct rueda_text *words)
{
    struct rueda_hosts hosts = {NULL, 0};
    struct rueda_text why = {{0}};
    int number = 1;

    for (const char *at = text; *at != '\0'; number++) {
        const size_t len = strcspn(at, "\n");
        struct list_piece line = trimmed(at, len);

        if (line.len > 0 && !add_line(&hosts, line, &why)) {
            rueda_text_set(words, "%.200s:%d: %s", path, number, why.chars);
            rueda_hosts_fini(&hosts);
            return false;
        }
        at += len + (at[len] == '\n');
    }
    if (hosts.count == 0) {
        rueda_text_set(
            words, "%.200s names no host; a line is \"host slots=4\"", path);
        return false;
    }
    *out = hosts;
    return true;
}

bool rueda_hosts_read(const char *path, struct rueda_hosts *out,
                      struct rueda_text *words)
{
    char *text = rueda_user_file_read("the hostfile", path, FILE_MIB, words);
    const bool is_good =
        text != NULL && rueda_hosts_parse_file(path, text, out, words);

    free(text);
    return is_good;
}

bool rueda_hosts_local(int slots, struct rueda_hosts *out)
{
    struct rueda_text words = {{0}};

    *out = (struct rueda_hosts){NULL, 0};
    return add(out, (struct list_piece){"localhost", 9}, slots, &words);
}

bool rueda_hosts_find(const char *list, const char *file, int slots,
                      struct rueda_hosts *out, struct rueda_text *words)
{
    if (list != NULL)
        return rueda_hosts_parse(list, out, words);
    if (file != NULL)
        return rueda_hosts_read(file, out, words);
    return rueda_hosts_local(slots, out);
}

/* The list as -H takes it, with or without slots. The caller frees it; NULL
 * without memory. */
char *rueda_hosts_text(const struct rueda_hosts *hosts, bool has_slots)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (file == NULL)
        return NULL;
    for (int i = 0; i < hosts->count; i++) {
        const char *name = hosts->list[i].name;
        const bool is_ipv6 = strchr(name, ':') != NULL;

        fprintf(file, "%s%s%s%s", i == 0 ? "" : ",", is_ipv6 ? "[" : "", name,
                is_ipv6 ? "]" : "");
        if (has_slots)
            fprintf(file, ":%d", hosts->list[i].slots);
    }
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

int rueda_hosts_slots(const struct rueda_hosts *hosts)
{
    int64_t slots = 0;

    for (int i = 0; i < hosts->count; i++)
        slots += hosts->list[i].slots;
    return slots < INT32_MAX ? (int)slots : INT32_MAX;
}

bool rueda_hosts_append(struct rueda_hosts *hosts,
                        const struct rueda_hosts_entry *host)
{
    struct rueda_hosts_entry *grown = reallocarray(
        hosts->list, (size_t)hosts->count + 1, sizeof(*hosts->list));

    if (grown == NULL)
        return false;
    hosts->list = grown;
    grown[hosts->count++] = *host;
    return true;
}

bool rueda_hosts_copy(const struct rueda_hosts *hosts, struct rueda_hosts *out)
{
    *out = (struct rueda_hosts){.list = NULL};
    for (int i = 0; i < hosts->count; i++)
        if (!rueda_hosts_append(out, &hosts->list[i])) {
            rueda_hosts_fini(out);
            return false;
        }
    return true;
}

void rueda_hosts_fini(struct rueda_hosts *hosts)
{
    free(hosts->list);
    *hosts = (struct rueda_hosts){NULL, 0};
}
