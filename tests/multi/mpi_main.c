/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank of tests/python/test_mpi_together.py that uses MPI and Rueda at a
 * time:
 *
 *     mpi_main LIBRARY global|local mpi-first|rueda-first
 *
 * Loads the MPI library of the launcher, its symbols visible to all or hidden
 * else, as a program and as Python would; initialises both in this order; lets
 * Rueda add up; ends both in the reverse order. Says what the sum is.
 */
#include <dlfcn.h>
#include <rueda/rueda.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct mpi {
    int (*init)(int *argc, char ***argv);
    int (*finalize)(void);
};

static bool load(const char *library, bool is_global, struct mpi *out)
{
    void *handle =
        dlopen(library, RTLD_NOW | (is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    void *init = handle != NULL ? dlsym(handle, "MPI_Init") : NULL;
    void *finalize = handle != NULL ? dlsym(handle, "MPI_Finalize") : NULL;

    if (init == NULL || finalize == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return false;
    }
    memcpy(&out->init, &init, sizeof(init));
    memcpy(&out->finalize, &finalize, sizeof(finalize));
    return true;
}

static rueda_ctx *init_rueda(void)
{
    rueda_ctx *ctx;

    return rueda_init(NULL, &ctx) == RUEDA_OK ? ctx : NULL;
}

/* Both are there: the numbers of all ranks, added up. */
static bool add_up(rueda_ctx *ctx)
{
    const int size = rueda_size(ctx);
    const int expected = size * (size + 1) / 2;
    float sum = (float)(rueda_rank(ctx) + 1);

    if (rueda_allreduce(ctx, &sum, &sum, 1, RUEDA_FLOAT32, RUEDA_SUM) !=
        RUEDA_OK) {
        fprintf(stderr, "%s\n", rueda_error(ctx));
        return false;
    }
    printf("rank %d of %d: %g\n", rueda_rank(ctx), size, (double)sum);
    return fflush(stdout) == 0 && sum == (float)expected;
}

static bool mpi_first(const struct mpi *mpi)
{
    rueda_ctx *ctx;
    bool is_right;

    if (mpi->init(NULL, NULL) != 0)
        return false;
    ctx = init_rueda();
    is_right = ctx != NULL && add_up(ctx);
    rueda_shutdown(ctx);
    return mpi->finalize() == 0 && is_right;
}

static bool rueda_first(const struct mpi *mpi)
{
    rueda_ctx *ctx = init_rueda();
    bool is_right;

    if (ctx == NULL)
        return false;
    is_right = mpi->init(NULL, NULL) == 0 && add_up(ctx);
    is_right = is_right && mpi->finalize() == 0;
    rueda_shutdown(ctx);
    return is_right;
}

int main(int argc, char **argv)
{
    struct mpi mpi;

    if (argc != 4) {
        fprintf(stderr, "see the head of mpi_main.c\n");
        return 2;
    }
    if (!load(argv[1], strcmp(argv[2], "global") == 0, &mpi))
        return 1;
    if (strcmp(argv[3], "mpi-first") == 0)
        return mpi_first(&mpi) ? 0 : 1;
    return rueda_first(&mpi) ? 0 : 1;
}
