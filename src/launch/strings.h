/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of texts as execve() takes them: ended by NULL, every text our own. An
 * empty list is all zero. Pure; one thread at a time.
 */
#ifndef RUEDA_LAUNCH_STRINGS_H
#define RUEDA_LAUNCH_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

struct rueda_strings {
    char **list; /* [count + 1], the last NULL; or NULL */
    int count;
    bool is_short; /* there was no memory for something */
};

/* Add a copy. Without memory the list is marked, so that one check of is_short
 * after many additions is enough. */
void rueda_strings_add(struct rueda_strings *strings, const char *text);
void rueda_strings_add_bytes(struct rueda_strings *strings, const char *bytes,
                             size_t len);
/* The words of a text as a shell would split them, by blanks, quotes and
 * backslashes; it expands nothing. */
void rueda_strings_add_split(struct rueda_strings *strings, const char *text);
void rueda_strings_add_all(struct rueda_strings *strings, char *const *list);

/* For lists of "NAME=value". Setting takes the place of what is there. */
void rueda_strings_set(struct rueda_strings *strings, const char *name,
                       const char *value);
void rueda_strings_set_number(struct rueda_strings *strings, const char *name,
                              long value);
void rueda_strings_set_all(struct rueda_strings *strings, char *const *list);
void rueda_strings_unset(struct rueda_strings *strings, const char *name);
const char *rueda_strings_get(const struct rueda_strings *strings,
                              const char *name);

void rueda_strings_fini(struct rueda_strings *strings);

#endif /* RUEDA_LAUNCH_STRINGS_H */
