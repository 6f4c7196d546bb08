/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets as text: "0,2;4-7" is a set of ranks 0 and 2, and one of ranks 4
 * to 7. Pure.
 */
#ifndef RUEDA_JOB_SET_TEXT_H
#define RUEDA_JOB_SET_TEXT_H

#include <rueda/rueda.h>

#include "base/text.h"

/*
 * The next set of *text, which is moved behind it: its ranks, each below
 * `size`, into ranks[size], and how many these are. 0 at the end; -1 with words
 * if it is no such text, or has more ranks than there are.
 */
int rueda_set_text_next(const char **text, int size, int *ranks,
                        struct rueda_text *error);

/*
 * All sets of a text in a few bytes, for ranks to compare: 16 digits that are
 * the same for the same sets in the same order, a blank, and the text, perhaps
 * shortened, for people. "" if there is no set. What is no such text counts as
 * it is. RUEDA_ERR_NOMEM.
 */
#define RUEDA_SET_WORD_BYTES 128 /* its end included */
rueda_status rueda_set_word(const char *text, int size,
                            char out[RUEDA_SET_WORD_BYTES]);

/* Do two such words stand for the same sets? */
bool rueda_set_word_is_same(const char *a, const char *b);

/* What two ranks have in place of the same. */
void rueda_set_word_explain(int rank_a, const char *a, int rank_b,
                            const char *b, struct rueda_text *error);

#endif /* RUEDA_JOB_SET_TEXT_H */
