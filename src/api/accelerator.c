/* SPDX-License-Identifier: Apache-2.0 */
#include "api/accelerator.h"

#include "api/check_submit.h"

static rueda_status refuse(const rueda_ctx *ctx,
                           const struct rueda_submit_args *args,
                           rueda_status status, const struct rueda_text *why)
{
    struct rueda_text error = {{0}};

    rueda_check_begin(rueda_rank(ctx), args, &error);
    rueda_text_add(&error, "%s", why->chars);
    return rueda_fault(status, error.chars);
}

/* Both ends of a tensor that is reduced in place are one. */
static rueda_status check_memory(const struct rueda_device *device,
                                 const struct rueda_submit_args *args)
{
    rueda_status status = device->ops->owns(device, args->send);

    if (status == RUEDA_OK && args->recv != args->send)
        status = device->ops->owns(device, args->recv);
    return status;
}

static rueda_status mark(const struct rueda_device *device, void *stream,
                         const struct rueda_ticket *before,
                         struct rueda_event *event)
{
    struct rueda_event same;

    if (before == NULL)
        return device->ops->record(device, stream, event);
    same = (struct rueda_event){{before->mark[0], before->mark[1]}};
    device->ops->hold(device, &same, event);
    return RUEDA_OK;
}

rueda_status rueda_submission_mark(rueda_ctx *ctx,
                                   const struct rueda_submit_args *args,
                                   const struct rueda_ticket *before,
                                   struct rueda_ticket *ticket)
{
    const struct rueda_device *device = NULL;
    struct rueda_event event = {{NULL}};
    struct rueda_text why = {{0}};
    rueda_status status;

    if (ctx->engine.lanes.repairs) {
        rueda_text_set(&why, "RUEDA_REPAIR=1 does not cover tensors on a GPU");
        return refuse(ctx, args, RUEDA_ERR_UNSUPPORTED, &why);
    }
    status = rueda_accelerator_need(&ctx->engine.accelerator, args->device,
                                    &device, &why);
    if (status != RUEDA_OK)
        return refuse(ctx, args, status, &why);
    status = check_memory(device, args);
    if (status == RUEDA_OK)
        status = mark(device, args->stream, before, &event);
    if (status != RUEDA_OK) {
        device->ops->tell(device, &why);
        device->ops->forget(device, &event);
        return refuse(ctx, args, status, &why);
    }
    ticket->mark[0] = event.state[0];
    ticket->mark[1] = event.state[1];
    return RUEDA_OK;
}

void rueda_submission_unmark(rueda_ctx *ctx, struct rueda_ticket *ticket)
{
    const struct rueda_device *device =
        rueda_accelerator_of(&ctx->engine.accelerator);
    struct rueda_event event = {{ticket->mark[0], ticket->mark[1]}};

    if (device != NULL)
        device->ops->forget(device, &event);
    ticket->mark[0] = NULL;
    ticket->mark[1] = NULL;
}
