/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that were nearly right: which known word did the user mean? Pure.
 */
#ifndef RUEDA_TOOL_NEAR_H
#define RUEDA_TOOL_NEAR_H

#include <stddef.h>

/* Single-letter insertions, deletions, changes and swaps of neighbours between
 * two words; a large number for words that are too long to be meant. */
int rueda_near_distance(const char *a, const char *b);

/* The known word nearest to word if it is near at all, or NULL. The list is
 * ended by NULL. */
const char *rueda_near_match(const char *word, const char *const *known);

#endif /* RUEDA_TOOL_NEAR_H */
