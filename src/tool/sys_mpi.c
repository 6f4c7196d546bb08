/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI and MPICH as systems under test, without their headers.
 *
 * The two differ in what a handle is: in Open MPI the address of an object of
 * the library, in MPICH an int. Both fit a uintptr_t, and in the calling
 * conventions of the machines we run on an int argument is the lower half of
 * the register that a uintptr_t would take. So one set of function types does
 * for both.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/system.h"

typedef uintptr_t handle;

struct mpi_functions {
    int (*init)(int *argc, char ***argv);
    int (*finalize)(void);
    int (*comm_rank)(handle comm, int *rank);
    int (*comm_size)(handle comm, int *size);
    int (*get_library_version)(char *version, int *len);
    int (*barrier)(handle comm);
    int (*allreduce)(const void *send, void *recv, int count, handle type,
                     handle op, handle comm);
    int (*allgather)(const void *send, int send_count, handle send_type,
                     void *recv, int recv_count, handle recv_type, handle comm);
    int (*bcast)(void *buf, int count, handle type, int root, handle comm);
    int (*alltoall)(const void *send, int send_count, handle send_type,
                    void *recv, int recv_count, handle recv_type, handle comm);
    int (*reduce_scatter_block)(const void *send, void *recv, int count,
                                handle type, handle op, handle comm);
};

/* By name and place in the struct, so that one loop finds all. */
static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"MPI_Init", offsetof(struct mpi_functions, init)},
    {"MPI_Finalize", offsetof(struct mpi_functions, finalize)},
    {"MPI_Comm_rank", offsetof(struct mpi_functions, comm_rank)},
    {"MPI_Comm_size", offsetof(struct mpi_functions, comm_size)},
    {"MPI_Get_library_version",
     offsetof(struct mpi_functions, get_library_version)},
    {"MPI_Barrier", offsetof(struct mpi_functions, barrier)},
    {"MPI_Allreduce", offsetof(struct mpi_functions, allreduce)},
    {"MPI_Allgather", offsetof(struct mpi_functions, allgather)},
    {"MPI_Bcast", offsetof(struct mpi_functions, bcast)},
    {"MPI_Alltoall", offsetof(struct mpi_functions, alltoall)},
    {"MPI_Reduce_scatter_block",
     offsetof(struct mpi_functions, reduce_scatter_block)},
};

/* Where a handle is: a symbol of Open MPI's, or a number of MPICH's from its
 * mpi.h, which its ABI (libmpi.so.12) keeps as they are. No symbol: MPI has no
 * such thing. */
struct mpi_constant {
    const char *symbol;
    unsigned number;
};

static const struct mpi_constant world = {"ompi_mpi_comm_world", 0x44000000};
static const struct mpi_constant types[RUEDA_DTYPE_COUNT] = {
    [RUEDA_UINT8] = {"ompi_mpi_uint8_t", 0x4c00013b},
    [RUEDA_INT8] = {"ompi_mpi_int8_t", 0x4c000137},
    [RUEDA_UINT16] = {"ompi_mpi_uint16_t", 0x4c00023c},
    [RUEDA_INT16] = {"ompi_mpi_int16_t", 0x4c000238},
    [RUEDA_INT32] = {"ompi_mpi_int32_t", 0x4c000439},
    [RUEDA_INT64] = {"ompi_mpi_int64_t", 0x4c00083a},
    [RUEDA_FLOAT32] = {"ompi_mpi_float", 0x4c00040a},
    [RUEDA_FLOAT64] = {"ompi_mpi_double", 0x4c00080b},
};
static const struct mpi_constant reductions[RUEDA_REDUCTION_COUNT] = {
    [RUEDA_SUM] = {"ompi_mpi_op_sum", 0x58000003},
    [RUEDA_MIN] = {"ompi_mpi_op_min", 0x58000002},
    [RUEDA_MAX] = {"ompi_mpi_op_max", 0x58000001},
    [RUEDA_PRODUCT] = {"ompi_mpi_op_prod", 0x58000004},
};

struct mpi_rank {
    struct rueda_system super;
    bool is_openmpi;
    void *library;
    struct mpi_functions mpi;
    handle world;
    const void *in_place;

    /* The work that was prepared. */
    rueda_bench_op op;
    int count;
    handle type;
    handle reduction;
    const void *send;
    void *recv;
};

static struct mpi_rank *rank_of(struct rueda_system *system)
{
    return (struct mpi_rank *)system;
}

/* 0: there is none. */
static handle find(struct mpi_rank *self, const struct mpi_constant *constant)
{
    if (constant->symbol == NULL)
        return 0;
    if (self->is_openmpi)
        return (handle)dlsym(self->library, constant->symbol);
    return constant->number;
}

static bool is_well(struct mpi_rank *self, int code, const char *what)
{
    if (code == 0)
        return true;
    rueda_text_set(&self->super.words, "rank %d: %s failed with code %d",
                   self->super.rank, what, code);
    return false;
}

/* Find MPI's type and operation for this case. */
static bool prepare(struct rueda_system *system, const struct rueda_case *work,
                    const void *send, void *recv)
{
    struct mpi_rank *self = rank_of(system);

    self->op = work->op;
    self->send = send != NULL ? send : self->in_place;
    self->recv = recv;
    self->type = find(self, &types[work->dtype]);
    self->reduction = find(self, &reductions[work->reduction]);
    if (self->type == 0) {
        rueda_text_set(&system->words, "MPI has no %s",
                       rueda_dtype_str(work->dtype));
        return false;
    }
    if (self->reduction == 0) {
        rueda_text_set(&system->words, "MPI has no reduction %s",
                       rueda_reduction_str(work->reduction));
        return false;
    }
    if (work->count > INT_MAX) {
        rueda_text_set(&system->words, "%zu elements are too many for an int",
                       work->count);
        return false;
    }
    self->count = (int)work->count;
    return true;
}

/* One call of MPI. Returns its error code. */
static int run_op(struct mpi_rank *self, unsigned iteration)
{
    const struct mpi_functions *mpi = &self->mpi;

    switch (self->op) {
    case RUEDA_BENCH_ALLREDUCE:
        return mpi->allreduce(self->send, self->recv, self->count, self->type,
                              self->reduction, self->world);
    case RUEDA_BENCH_ALLGATHER:
        return mpi->allgather(self->send, self->count, self->type, self->recv,
                              self->count, self->type, self->world);
    case RUEDA_BENCH_BROADCAST:
        return mpi->bcast(self->recv, self->count, self->type, 0, self->world);
    case RUEDA_BENCH_PINGPONG:
        return mpi->bcast(self->recv, self->count, self->type,
                          (int)(iteration % 2), self->world);
    case RUEDA_BENCH_ALLTOALL:
        return mpi->alltoall(self->send, self->count, self->type, self->recv,
                             self->count, self->type, self->world);
    case RUEDA_BENCH_REDUCESCATTER:
        return mpi->reduce_scatter_block(self->send, self->recv, self->count,
                                         self->type, self->reduction,
                                         self->world);
    case RUEDA_BENCH_BARRIER:
        return mpi->barrier(self->world);
    case RUEDA_BENCH_EXCHANGE:
        break;
    }
    return -1;
}

static bool run(struct rueda_system *system, unsigned iteration)
{
    struct mpi_rank *self = rank_of(system);

    return is_well(self, run_op(self, iteration), rueda_bench_op_str(self->op));
}

static bool barrier(struct rueda_system *system)
{
    struct mpi_rank *self = rank_of(system);

    return is_well(self, self->mpi.barrier(self->world), "barrier");
}

static void close_rank(struct rueda_system *system)
{
    struct mpi_rank *self = rank_of(system);

    self->mpi.finalize();
    /* The library stays open: its threads may still be leaving it. */
    free(self);
}

static const struct rueda_system_ops ops = {
    .alloc = rueda_system_alloc,
    .release = rueda_system_release,
    .prepare = prepare,
    .run = run,
    .barrier = barrier,
    .close = close_rank,
};

/* Open MPI's plug-ins expect its symbols to be visible to all. */
static void *open_library(bool is_openmpi, struct rueda_text *words)
{
    const char *const files[] = {"libmpich.so.12", "libmpi.so.12"};
    void *library;

    if (is_openmpi) {
        library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
    } else {
        library = dlopen(files[0], RTLD_NOW | RTLD_GLOBAL);
        if (library == NULL)
            library = dlopen(files[1], RTLD_NOW | RTLD_GLOBAL);
    }
    if (library == NULL)
        rueda_text_set(words, "%s", dlerror());
    return library;
}

/* MPI is loaded at run time, so the tool needs none to be built; each call is
 * found by name. */
static bool find_functions(struct mpi_rank *self, struct rueda_text *words)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *call = dlsym(self->library, names[i].name);

        if (call == NULL) {
            rueda_text_set(words, "the MPI library has no %s", names[i].name);
            return false;
        }
        memcpy((char *)&self->mpi + names[i].offset, &call, sizeof(call));
    }
    self->world = find(self, &world);
    /* MPI_IN_PLACE is a number in both.
     * NOLINTNEXTLINE(performance-no-int-to-ptr) */
    self->in_place = self->is_openmpi ? (void *)1 : (void *)-1;
    return true;
}

/* MPI_Init, my place, and the version as text. */
static bool join(struct mpi_rank *self, struct rueda_text *words)
{
    char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH */
    int len = 0;

    if (self->mpi.init(NULL, NULL) != 0 ||
        self->mpi.comm_rank(self->world, &self->super.rank) != 0 ||
        self->mpi.comm_size(self->world, &self->super.size) != 0 ||
        self->mpi.get_library_version(version, &len) != 0) {
        rueda_text_set(words, "MPI_Init failed");
        return false;
    }
    /* "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n...". */
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; *tab != '\0'; tab++)
        if (*tab == '\t')
            *tab = ' ';
    snprintf(self->super.version, sizeof(self->super.version), "%.200s",
             version);
    return true;
}

/* A system for the benchmark over the MPI library of this flavour; NULL with a
 * message. */
struct rueda_system *rueda_system_mpi(const char *flavour,
                                      struct rueda_text *words)
{
    struct mpi_rank *self = calloc(1, sizeof(*self));

    if (self == NULL) {
        rueda_text_set(words, "no memory");
        return NULL;
    }
    self->super.ops = &ops;
    self->is_openmpi = strcmp(flavour, "openmpi") == 0;
    self->library = open_library(self->is_openmpi, words);
    if (self->library == NULL)
        goto err_free;
    if (!find_functions(self, words) || !join(self, words))
        goto err_free;
    return &self->super;

err_free:
    free(self);
    return NULL;
}
