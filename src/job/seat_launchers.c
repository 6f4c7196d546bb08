/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row for each launcher: by which variables it is recognised, where rank,
 * size and the local numbers are, and how its ranks are introduced. The order
 * of the rows is the order of seat.h: the nearest launcher first.
 */
#include "job/seat_launchers.h"

#include <stdio.h>

#include "base/number.h"
#include "job/hostlist.h"

/* ---- Looking things up -------------------------------------------------- */

const char *rueda_seat_variable(const struct rueda_seat_query *query,
                                const char *name)
{
    const char *value = query->environment(query->arg, name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_set(const struct rueda_seat_query *query, const char *name)
{
    return rueda_seat_variable(query, name) != NULL;
}

/* The number that a variable holds, or -1. */
static int check_whole(const struct rueda_seat_query *query, const char *name)
{
    int number;

    return rueda_parse_int(rueda_seat_variable(query, name), &number) ? number
                                                                      : -1;
}

const char *rueda_launcher_name(const struct rueda_seat_query *query,
                                const struct rueda_launcher_row *row,
                                int number)
{
    bool is_other = number == RUEDA_SEAT_SIZE && row->other_size != NULL &&
                    !is_set(query, row->names[number]) &&
                    is_set(query, row->other_size);

    return is_other ? row->other_size : row->names[number];
}

const char *rueda_launcher_value(const struct rueda_seat_query *query,
                                 const struct rueda_launcher_row *row,
                                 int number, char *buf)
{
    const int options[RUEDA_SEAT_NUMBERS] = {
        query->rank,       query->size,       query->local_rank,
        query->local_size, query->cross_rank, query->cross_size,
    };
    const char *name = rueda_launcher_name(query, row, number);

    if (row->launcher != RUEDA_LAUNCHER_OPTIONS)
        return name != NULL ? rueda_seat_variable(query, name) : NULL;
    if (options[number] == -1)
        return NULL;
    snprintf(buf, RUEDA_SEAT_TEXT, "%d", options[number]);
    return buf;
}

const char *rueda_launcher_trace(const struct rueda_seat_query *query,
                                 const struct rueda_launcher_row *row)
{
    char buf[RUEDA_SEAT_TEXT];

    for (int i = 0; i < RUEDA_SEAT_NUMBERS; i++)
        if (rueda_launcher_value(query, row, i, buf) != NULL)
            return rueda_launcher_name(query, row, i);
    return NULL;
}

bool rueda_launcher_is_here(const struct rueda_seat_query *query,
                            const struct rueda_launcher_row *row)
{
    if (row->is_here != NULL)
        return row->is_here(query);
    return rueda_launcher_trace(query, row) != NULL;
}

/* ---- Recognising a launcher --------------------------------------------- */

/* RANK and WORLD_SIZE alone prove nothing: other programs use these names. */
static bool is_torchrun(const struct rueda_seat_query *query)
{
    return is_set(query, "TORCHELASTIC_RUN_ID") ||
           (is_set(query, "RANK") && is_set(query, "WORLD_SIZE") &&
            is_set(query, "MASTER_ADDR") && is_set(query, "MASTER_PORT"));
}

/* srun --mpi=pmi2 sets PMI_RANK too. What only Hydra sets decides; without a
 * step of Slurm there is no doubt. */
static bool is_hydra(const struct rueda_seat_query *query)
{
    bool is_pmi = is_set(query, "PMI_RANK") || is_set(query, "PMI_SIZE");

    return is_pmi && (is_set(query, "MPI_LOCALRANKID") ||
                      is_set(query, "HYDI_CONTROL_FD") ||
                      !is_set(query, "SLURM_STEP_ID"));
}

/*
 * The shell of a batch script or of salloc has SLURM_PROCID, although srun
 * did not start it. Where such a shell is a step of its own, the number of
 * the step is one of a few at the very end.
 */
static bool is_srun(const struct rueda_seat_query *query)
{
    const char *step = rueda_seat_variable(query, "SLURM_STEP_ID");
    uint64_t number;

    return step != NULL && !(rueda_parse_whole(step, UINT32_MAX, &number) &&
                             number >= 0xfffffff0u);
}

static int slurm_local_size(const struct rueda_seat_query *query)
{
    const char *tasks = rueda_seat_variable(query, "SLURM_STEP_TASKS_PER_NODE");

    if (tasks == NULL)
        return -1;
    return rueda_hostlist_tasks(tasks, check_whole(query, "SLURM_NODEID"));
}

bool rueda_launcher_is_one_host(const struct rueda_seat_query *query,
                                const struct rueda_seat *seat)
{
    int hosts = -1;

    if (seat->launcher == RUEDA_LAUNCHER_SLURM)
        hosts = check_whole(query, "SLURM_STEP_NUM_NODES");
    return hosts == 1 || (hosts < 0 && seat->local_size == seat->size);
}

/* ---- How ranks are introduced ------------------------------------------- */

static rueda_status by_socket(const struct rueda_seat_query *query,
                              const struct rueda_launcher_row *row,
                              struct rueda_seat *seat, struct rueda_text *error)
{
    (void)query;
    (void)row;
    (void)error;
    seat->introduction = RUEDA_INTRODUCE_SOCKET;
    return RUEDA_OK;
}

/* A launcher that cannot introduce ranks of several hosts. */
static rueda_status by_socket_of_one_host(const struct rueda_seat_query *query,
                                          const struct rueda_launcher_row *row,
                                          struct rueda_seat *seat,
                                          struct rueda_text *error)
{
    const char *name = row->names[RUEDA_SEAT_LOCAL_SIZE];
    const char *advice = RUEDA_SEAT_STORE_ADVICE;

    if (seat->local_size == seat->size)
        return by_socket(query, row, seat, error);
    if (row->launcher == RUEDA_LAUNCHER_TORCHRUN)
        advice = "from Python hand over torch's store, or set "
                 "RUEDA_STORE=host:port (MASTER_ADDR and a free port, say) "
                 "and RUEDA_KEY_FILE for all ranks";
    if (seat->local_size < 0)
        rueda_text_set(error,
                       "%s%s is not set, so the %d ranks may be on several "
                       "hosts, and nothing says where they meet; set it if "
                       "they are on one host, else %s",
                       row->owner, name, seat->size, advice);
    else
        rueda_text_set(error,
                       "%s%s is %d in a job of %d ranks: they are on several "
                       "hosts, and nothing says where they meet; %s",
                       row->owner, name, seat->local_size, seat->size, advice);
    return RUEDA_ERR_INVALID;
}

static rueda_status by_pmix_or_socket(const struct rueda_seat_query *query,
                                      const struct rueda_launcher_row *row,
                                      struct rueda_seat *seat,
                                      struct rueda_text *error)
{
    if (!is_set(query, "PMIX_NAMESPACE") && !is_set(query, "PMIX_RANK"))
        return by_socket_of_one_host(query, row, seat, error);
    seat->introduction = RUEDA_INTRODUCE_PMIX;
    return RUEDA_OK;
}

static rueda_status by_pmi1(const struct rueda_seat_query *query,
                            const struct rueda_launcher_row *row,
                            struct rueda_seat *seat, struct rueda_text *error)
{
    const char *port = rueda_seat_variable(query, "PMI_PORT");

    if (is_set(query, "PMI_FD")) {
        seat->introduction = RUEDA_INTRODUCE_PMI1;
        return RUEDA_OK;
    }
    if (port != NULL) {
        rueda_text_set(error,
                       "PMI_FD is not set; PMI_PORT is (\"%.60s\"), but PMI "
                       "over a port is not supported; %s",
                       port, RUEDA_SEAT_STORE_ADVICE);
        return RUEDA_ERR_UNSUPPORTED;
    }
    rueda_text_set(error,
                   "%s%s is set and PMI_FD is not, so the ranks cannot be "
                   "introduced by mpiexec; %s",
                   row->owner, rueda_launcher_trace(query, row),
                   RUEDA_SEAT_STORE_ADVICE);
    return RUEDA_ERR_INVALID;
}

/*
 * The store of a step that brings no PMI: on the first host of its list, where
 * rank 0 is unless tasks are laid out by hand. The port follows from the ids
 * of job and step, so that all ranks know it and steps that run at a time
 * seldom share it: 20000 + (31 * job + step) % 12000, below the ports that
 * Linux gives to outgoing connections.
 */
static rueda_status by_slurm_store(const struct rueda_seat_query *query,
                                   struct rueda_seat *seat,
                                   struct rueda_text *error)
{
    const char *list = rueda_seat_variable(query, "SLURM_STEP_NODELIST");
    char host[RUEDA_CONFIG_STORE_BYTES - sizeof(":65535") + 1];
    uint64_t job;
    uint64_t step;

    if (!rueda_parse_whole(rueda_seat_variable(query, "SLURM_JOB_ID"),
                           UINT32_MAX, &job) ||
        !rueda_parse_whole(rueda_seat_variable(query, "SLURM_STEP_ID"),
                           UINT32_MAX, &step) ||
        list == NULL || !rueda_hostlist_first(list, host, sizeof(host))) {
        rueda_text_set(error,
                       "the step has several hosts, or SLURM_STEP_NUM_NODES is "
                       "not set, and SLURM_JOB_ID, SLURM_STEP_ID and "
                       "SLURM_STEP_NODELIST (\"%.60s\") do not say where to "
                       "meet; take srun --mpi=pmi2, or %s",
                       list != NULL ? list : "", RUEDA_SEAT_STORE_ADVICE);
        return RUEDA_ERR_INVALID;
    }
    snprintf(seat->store, sizeof(seat->store), "%s:%d", host,
             20000 + (int)((31 * job + step) % 12000));
    seat->introduction = RUEDA_INTRODUCE_STORE;
    return RUEDA_OK;
}

static rueda_status by_slurm(const struct rueda_seat_query *query,
                             const struct rueda_launcher_row *row,
                             struct rueda_seat *seat, struct rueda_text *error)
{
    if (is_set(query, "PMIX_NAMESPACE")) {
        seat->introduction = RUEDA_INTRODUCE_PMIX;
        return RUEDA_OK;
    }
    if (is_set(query, "PMI_FD")) {
        seat->introduction = RUEDA_INTRODUCE_PMI2;
        return RUEDA_OK;
    }
    if (rueda_launcher_is_one_host(query, seat))
        return by_socket(query, row, seat, error);
    return by_slurm_store(query, seat, error);
}

/* ---- The rows ----------------------------------------------------------- */

#define BOTH(launcher)                                                         \
    launcher " sets both; start the program with it, or set RUEDA_RANK and "   \
             "RUEDA_SIZE"

static const struct rueda_launcher_row rows[] = {
    {
        .launcher = RUEDA_LAUNCHER_OPTIONS,
        .owner = "the caller's ",
        .claim = "what the caller says comes first",
        .names = {"rank", "size", "local_rank", "local_size", "cross_rank",
                  "cross_size"},
        .remedy = "a rank needs both, or neither where a launcher says them",
        .job = "rueda",
        .introduce = by_socket,
    },
    {
        .launcher = RUEDA_LAUNCHER_RUEDA,
        .owner = "",
        .claim = "Rueda's own variables come first",
        .names = {"RUEDA_RANK", "RUEDA_SIZE", "RUEDA_LOCAL_RANK",
                  "RUEDA_LOCAL_SIZE", "RUEDA_CROSS_RANK", "RUEDA_CROSS_SIZE"},
        .remedy = "a rank needs both, or neither for a job of one",
        .job = "rueda",
        .introduce = by_socket,
    },
    {
        .launcher = RUEDA_LAUNCHER_HOROVOD,
        .owner = "Horovod's ",
        .claim = "horovodrun is nearer",
        .names = {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK",
                  "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK",
                  "HOROVOD_CROSS_SIZE"},
        .remedy = BOTH("horovodrun"),
        .job = "horovod",
        .parts = {"HOROVOD_GLOO_RENDEZVOUS_ADDR",
                  "HOROVOD_GLOO_RENDEZVOUS_PORT"},
        .joint = "-",
        .introduce = by_socket_of_one_host,
    },
    {
        .launcher = RUEDA_LAUNCHER_TORCHRUN,
        .owner = "torchrun's ",
        .claim = "torchrun is nearer",
        .names = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                  "GROUP_RANK", "GROUP_WORLD_SIZE"},
        .witness = "TORCHELASTIC_RUN_ID",
        .remedy = BOTH("torchrun"),
        .doubt = "does not count without TORCHELASTIC_RUN_ID, or RANK, "
                 "WORLD_SIZE, MASTER_ADDR and MASTER_PORT together",
        .is_here = is_torchrun,
        .job = "torchrun",
        .parts = {"MASTER_ADDR", "MASTER_PORT"},
        .joint = "-",
        .introduce = by_socket_of_one_host,
    },
    {
        .launcher = RUEDA_LAUNCHER_OPENMPI,
        .owner = "Open MPI's ",
        .claim = "mpirun is nearer",
        .names = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
        .remedy = BOTH("mpirun"),
        .job = "openmpi",
        .parts = {"OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"},
        .joint = "-",
        .other_part = "PMIX_NAMESPACE",
        .introduce = by_pmix_or_socket,
    },
    {
        .launcher = RUEDA_LAUNCHER_HYDRA,
        .owner = "Hydra's ",
        .claim = "mpiexec is nearer",
        .names = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
        .witness = "PMI_FD",
        .remedy = BOTH("mpiexec"),
        .is_here = is_hydra,
        .job = "hydra",
        .has_parent = true,
        .introduce = by_pmi1,
    },
    {
        .launcher = RUEDA_LAUNCHER_SLURM,
        .owner = "Slurm's ",
        .claim = "srun is nearer",
        .names = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                  "SLURM_STEP_TASKS_PER_NODE"},
        .other_size = "SLURM_NTASKS",
        .witness = "SLURM_STEP_ID",
        .remedy = BOTH("srun"),
        .doubt = "does not count without a SLURM_STEP_ID of srun's",
        .is_here = is_srun,
        .local_size = slurm_local_size,
        .job = "slurm",
        .parts = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
        .joint = ".",
        .introduce = by_slurm,
    },
};

const struct rueda_launcher_row *rueda_launcher_rows(int *out_count)
{
    *out_count = (int)(sizeof(rows) / sizeof(rows[0]));
    return rows;
}
