/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every rank contributes its number; every rank gets the sum. In two shells:
 *
 *     RUEDA_RANK=0 RUEDA_SIZE=2 ./hello_allreduce
 *     RUEDA_RANK=1 RUEDA_SIZE=2 ./hello_allreduce
 */
#include <rueda/rueda.h>
#include <stdio.h>

int main(void)
{
    rueda_status status;
    rueda_ctx *ctx;
    float x;

    status = rueda_init(NULL, &ctx);
    if (status != RUEDA_OK)
        return 1;
    x = (float)(rueda_rank(ctx) + 1);
    status = rueda_allreduce(ctx, &x, &x, 1, RUEDA_FLOAT32, RUEDA_SUM);
    if (status == RUEDA_OK)
        printf("rank %d of %d: the sum is %g\n", rueda_rank(ctx),
               rueda_size(ctx), (double)x);
    else
        fprintf(stderr, "%s: %s\n", rueda_status_str(status), rueda_error(ctx));
    rueda_shutdown(ctx);
    return status == RUEDA_OK ? 0 : 1;
}
