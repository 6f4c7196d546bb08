/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on tensors in the memory of an accelerator: what is done with one
 * when it is submitted. Any thread.
 */
#ifndef RUEDA_API_ACCELERATOR_H
#define RUEDA_API_ACCELERATOR_H

#include "api/ctx.h"
#include "op/ticket.h"

/*
 * Open the accelerator if it is the first such operation, make sure that the
 * tensors are there, and mark where the application's stream is. `before` was
 * marked by the same call for the same stream, so its mark serves this one too;
 * or NULL. On failure rueda_last_error() says what helps.
 */
rueda_status rueda_submission_mark(rueda_ctx *ctx,
                                   const struct rueda_submit_args *args,
                                   const struct rueda_ticket *before,
                                   struct rueda_ticket *ticket);

/* For one that is not submitted after all. */
void rueda_submission_unmark(rueda_ctx *ctx, struct rueda_ticket *ticket);

#endif /* RUEDA_API_ACCELERATOR_H */
