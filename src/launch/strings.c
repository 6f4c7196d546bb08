/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing list of strings, and how a text is split into words as a shell
 * does.
 */
#include "launch/strings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes text, which is NULL if memory ran out. */
static void take(struct rueda_strings *strings, char *text)
{
    char **list = NULL;

    if (text != NULL)
        list = realloc(strings->list,
                       ((size_t)strings->count + 2) * sizeof(*list));
    if (list == NULL) {
        strings->is_short = true;
        free(text);
        return;
    }
    list[strings->count++] = text;
    list[strings->count] = NULL;
    strings->list = list;
}

void rueda_strings_add(struct rueda_strings *strings, const char *text)
{
    take(strings, strdup(text));
}

void rueda_strings_add_bytes(struct rueda_strings *strings, const char *bytes,
                             size_t len)
{
    take(strings, strndup(bytes, len));
}

#define BLANKS " \t\n"

/* Does the backslash here quote the next character? */
static bool is_escape(const char *at, char quote)
{
    if (at[0] != '\\' || at[1] == '\0')
        return false;
    return quote == '\0' || (quote == '"' && strchr("\"\\$`", at[1]) != NULL);
}

/* The first word without its quotes. Returns where it ends; NULL: none. */
static const char *take_word(const char *at, char *out, size_t *out_len)
{
    char quote = '\0';
    size_t len = 0;

    at += strspn(at, BLANKS);
    if (*at == '\0')
        return NULL;
    for (; *at != '\0'; at++) {
        if (quote == '\0' && strchr(BLANKS, *at) != NULL)
            break;
        if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (*at == quote) {
            quote = '\0';
        } else {
            at += is_escape(at, quote) ? 1 : 0;
            out[len++] = *at;
        }
    }
    *out_len = len;
    return at;
}

void rueda_strings_add_split(struct rueda_strings *strings, const char *text)
{
    char *word = malloc(strlen(text) + 1);
    size_t len;

    if (word == NULL) {
        strings->is_short = true;
        return;
    }
    for (text = take_word(text, word, &len); text != NULL;
         text = take_word(text, word, &len))
        rueda_strings_add_bytes(strings, word, len);
    free(word);
}

void rueda_strings_add_all(struct rueda_strings *strings, char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        rueda_strings_add(strings, *list);
}

/* Where NAME=... is, the name being the first len letters; -1: nowhere. */
static int find(const struct rueda_strings *strings, const char *name,
                size_t len)
{
    for (int i = 0; i < strings->count; i++)
        if (strncmp(strings->list[i], name, len) == 0 &&
            strings->list[i][len] == '=')
            return i;
    return -1;
}

/* Takes a whole "NAME=value". */
static void put(struct rueda_strings *strings, char *text)
{
    const int at = text != NULL ? find(strings, text, strcspn(text, "=")) : -1;

    if (at < 0) {
        take(strings, text);
        return;
    }
    free(strings->list[at]);
    strings->list[at] = text;
}

void rueda_strings_set(struct rueda_strings *strings, const char *name,
                       const char *value)
{
    char *text = NULL;

    if (asprintf(&text, "%s=%s", name, value) < 0)
        text = NULL;
    put(strings, text);
}

void rueda_strings_set_number(struct rueda_strings *strings, const char *name,
                              long value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%ld", value);
    rueda_strings_set(strings, name, digits);
}

void rueda_strings_set_all(struct rueda_strings *strings, char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        put(strings, strdup(*list));
}

void rueda_strings_unset(struct rueda_strings *strings, const char *name)
{
    const int at = find(strings, name, strlen(name));

    if (at < 0)
        return;
    free(strings->list[at]);
    strings->count--;
    memmove(&strings->list[at], &strings->list[at + 1],
            (size_t)(strings->count - at + 1) * sizeof(strings->list[0]));
}

const char *rueda_strings_get(const struct rueda_strings *strings,
                              const char *name)
{
    const int at = find(strings, name, strlen(name));

    return at < 0 ? NULL : strings->list[at] + strlen(name) + 1;
}

void rueda_strings_fini(struct rueda_strings *strings)
{
    for (int i = 0; i < strings->count; i++)
        free(strings->list[i]);
    free(strings->list);
    *strings = (struct rueda_strings){.list = NULL};
}
