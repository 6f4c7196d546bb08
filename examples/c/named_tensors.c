/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors by name: every rank hands over the same ones, in an order of its
 * own. */
#include <rueda/rueda.h>
#include <stdio.h>

#define TENSORS 3
#define COUNT   1000

static const char *const names[TENSORS] = {"weight", "bias", "scale"};

static rueda_status submit(rueda_ctx *ctx, int which, float *tensor,
                           rueda_handle *out_handle)
{
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    const size_t shape[] = {COUNT};

    args.kind = RUEDA_ALLREDUCE;
    args.name = names[which];
    args.reduction = RUEDA_AVERAGE;
    args.send = tensor;
    args.recv = tensor;
    args.dims = 1;
    args.shape = shape;
    return rueda_submit(ctx, &args, out_handle);
}

static rueda_status run(rueda_ctx *ctx, float tensors[TENSORS][COUNT])
{
    const int rank = rueda_rank(ctx);
    rueda_handle handles[TENSORS];
    rueda_status status = RUEDA_OK;

    for (int i = 0; i < TENSORS && status == RUEDA_OK; i++) {
        const int which = (i + rank) % TENSORS; /* another order on each */

        for (int k = 0; k < COUNT; k++)
            tensors[which][k] = (float)(rank + which);
        status = submit(ctx, which, tensors[which], &handles[i]);
    }
    /* Compute something else meanwhile, and then: */
    for (int i = 0; i < TENSORS && status == RUEDA_OK; i++)
        status = rueda_wait(ctx, handles[i], -1);
    return status;
}

int main(void)
{
    static float tensors[TENSORS][COUNT];
    rueda_status status;
    rueda_ctx *ctx;

    status = rueda_init(NULL, &ctx);
    if (status != RUEDA_OK)
        return 1;
    status = run(ctx, tensors);
    if (status == RUEDA_OK)
        printf("rank %d of %d: the averages are %g, %g and %g\n",
               rueda_rank(ctx), rueda_size(ctx), (double)tensors[0][0],
               (double)tensors[1][0], (double)tensors[2][0]);
    else
        fprintf(stderr, "%s: %s\n", rueda_status_str(status),
                rueda_last_error());
    rueda_shutdown(ctx);
    return status == RUEDA_OK ? 0 : 1;
}
