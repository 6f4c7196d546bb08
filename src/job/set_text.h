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

#endif /* RUEDA_JOB_SET_TEXT_H */
