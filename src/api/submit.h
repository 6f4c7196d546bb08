/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations by name on their way to the engine; only for src/api and for the
 * simulated ranks of src/predict. Any thread; nothing blocks.
 *
 * The steps in their order: take, set_name, claim, then push to the engine, or
 * drop at any point before that.
 */
#ifndef RUEDA_API_SUBMIT_H
#define RUEDA_API_SUBMIT_H

#include "api/ctx.h"
#include "op/ticket.h"

/* A named operation of this kind with nothing filled in. */
rueda_status rueda_submission_take(rueda_ctx *ctx, int kind,
                                   struct rueda_ticket **out);

/* Copy its name, NULL for none. */
rueda_status rueda_submission_set_name(struct rueda_ticket *ticket,
                                       const char *name);

/* Its name is in flight from here on, until its handle ends or it is dropped.
 * RUEDA_ERR_INVALID: it is already, by another. */
rueda_status rueda_submission_claim(rueda_ctx *ctx, struct rueda_ticket *ticket,
                                    const char *name);

/* Release an operation that was never submitted. */
void rueda_submission_drop(rueda_ctx *ctx, struct rueda_ticket *ticket);

#endif /* RUEDA_API_SUBMIT_H */
