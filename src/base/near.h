/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistyped words: which known word did the user mean? Pure; any thread.
 */
#ifndef RUEDA_BASE_NEAR_H
#define RUEDA_BASE_NEAR_H

#include <stddef.h>

#include "base/text.h"

/* Single-letter insertions, deletions, changes and swaps of neighbours between
 * two words; a large number for words that are too long to be meant. */
int rueda_near_distance(const char *a, const char *b);

/* The known word nearest to word if it is near at all, or NULL. The list is
 * ended by NULL. */
const char *rueda_near_match(const char *word, const char *const *known);

/* Add to words which of the known ones was meant, if any is near. */
void rueda_near_suggest(const char *word, const char *const *known,
                        struct rueda_text *words);

/* The place of word in a list, or -1 with a message that say what is unknown,
 * and what was meant or what there is. */
int rueda_near_find(const char *what, const char *word,
                    const char *const *known, struct rueda_text *words);

#endif /* RUEDA_BASE_NEAR_H */
