/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do two ranks ask for the same? Checks come in a fixed order, and the first
 * that fails is what ranks are told. Pure.
 */
#ifndef RUEDA_NEGOTIATE_COMPARE_H
#define RUEDA_NEGOTIATE_COMPARE_H

#include "base/text.h"
#include "op/request.h"

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

/* Equal in all that all ranks have to say alike, and in priority: one may stand
 * for the other. */
bool rueda_request_is_same(const struct rueda_request *a,
                           const struct rueda_request *b);

/* "tensor "grad.3"" or "operation 7 without a name". */
void rueda_request_title(const struct rueda_request *request,
                         struct rueda_text *out);

/* "[2, 3]". */
void rueda_request_shape_str(const struct rueda_request *request,
                             struct rueda_text *out);

#endif /* RUEDA_NEGOTIATE_COMPARE_H */
