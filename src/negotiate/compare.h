/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do two ranks request the same operation? Checks come in a fixed order, and
 * ranks report the first that fails. Pure.
 */
#ifndef RUEDA_NEGOTIATE_COMPARE_H
#define RUEDA_NEGOTIATE_COMPARE_H

#include <string.h>

#include "base/text.h"
#include "op/request.h"

/* All of a request before its label, in which there are no holes. */
#define RUEDA_COMPARE_WORDS 8
_Static_assert(offsetof(struct rueda_request, name) ==
                       RUEDA_COMPARE_WORDS * sizeof(uint64_t) &&
                   offsetof(struct rueda_request, name) ==
                       8 * sizeof(int) + 3 * sizeof(uint64_t) +
                           2 * sizeof(uint32_t),
               "what is compared at a glance has holes");

/* What a rank of the job has said. */
struct rueda_said {
    int rank;
    const struct rueda_request *request;
};

/* The number of the first check that fails, from 1; 0: they agree. */
int rueda_compare(const struct rueda_request *a, const struct rueda_request *b);

/* Why they differ, in words that name both ranks, both values and the tensor.
 */
void rueda_compare_explain(const struct rueda_said *a,
                           const struct rueda_said *b, struct rueda_text *out);

/* Equal bit by bit, but for the label. Compared as 64-bit words, because a call
 * of memcmp() takes longer. */
static inline bool rueda_compare_is_alike(const struct rueda_request *a,
                                          const struct rueda_request *b)
{
    uint64_t x[RUEDA_COMPARE_WORDS];
    uint64_t y[RUEDA_COMPARE_WORDS];
    uint64_t difference = 0;

    memcpy(x, a, sizeof(x));
    memcpy(y, b, sizeof(y));
    for (int i = 0; i < RUEDA_COMPARE_WORDS; i++)
        difference |= x[i] ^ y[i];
    if (difference != 0)
        return false;
    for (uint32_t i = 0; i < a->dims; i++)
        difference |= a->shape[i] ^ b->shape[i];
    return difference == 0;
}

/* Equal in everything that must be the same on all ranks, and in priority: one
 * may replace the other. */
static inline bool rueda_compare_is_same(const struct rueda_request *a,
                                         const struct rueda_request *b)
{
    return rueda_compare_is_alike(a, b) ||
           (a->priority == b->priority && rueda_compare(a, b) == 0);
}

/* "tensor "grad.3"" or "operation 7 without a name". */
void rueda_compare_title(const struct rueda_request *request,
                         struct rueda_text *out);

/* "[2, 3]". */
void rueda_compare_shape_str(const struct rueda_request *request,
                             struct rueda_text *out);

#endif /* RUEDA_NEGOTIATE_COMPARE_H */
