/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients in memory that all ranks of the host share: the allreduce adds
 * them where they are, without a copy. Alone, or in two shells:
 *
 *     RUEDA_RANK=0 RUEDA_SIZE=2 ./shared_memory
 *     RUEDA_RANK=1 RUEDA_SIZE=2 ./shared_memory
 */
#include <rueda/rueda.h>
#include <stdio.h>

#define COUNT ((size_t)1 << 20)

/* Rank r brings r + 1 everywhere; the average is known. */
static rueda_status average(rueda_ctx *ctx, float *gradients)
{
    rueda_status status;

    for (size_t i = 0; i < COUNT; i++)
        gradients[i] = (float)(rueda_rank(ctx) + 1);
    status = rueda_allreduce(ctx, gradients, gradients, COUNT, RUEDA_FLOAT32,
                             RUEDA_AVERAGE);
    if (status == RUEDA_OK)
        printf("rank %d of %d: the average is %g\n", rueda_rank(ctx),
               rueda_size(ctx), (double)gradients[COUNT - 1]);
    return status;
}

int main(void)
{
    rueda_status status;
    rueda_ctx *ctx;
    void *memory;

    status = rueda_init(NULL, &ctx);
    if (status != RUEDA_OK)
        return 1;
    status = rueda_alloc(ctx, COUNT * sizeof(float), &memory);
    if (status == RUEDA_OK) {
        status = average(ctx, memory);
        rueda_free(ctx, memory);
    }
    if (status != RUEDA_OK)
        fprintf(stderr, "%s: %s\n", rueda_status_str(status), rueda_error(ctx));
    rueda_shutdown(ctx);
    return status == RUEDA_OK ? 0 : 1;
}
