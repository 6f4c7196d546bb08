/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Horovod's variables: those that stand for a setting of ours, and those
 * without effect, which rank 0 logs once.
 *
 *     aliases     RUEDA_LOG_LEVEL  <-  HOROVOD_LOG_LEVEL, by its own rules
 *     variables   no effect here; each with the reason, which is logged
 *     choices     no effect either; a value that cannot be is rejected
 *
 * A job script that was written for Horovod thus runs unchanged, and its user
 * learns what does nothing any more.
 */
#define RUEDA_LOG_TAG "base"

#include "base/horovod.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"

/* ---- Other names of settings ------------------------------------------- */

/* Any case, and two names more than ours. */
static bool parse_log_level(const char *value, void *out)
{
    static const struct {
        const char *name;
        rueda_log_level level;
    } levels[] = {
        {"trace", RUEDA_LOG_TRACE}, {"debug", RUEDA_LOG_DEBUG},
        {"info", RUEDA_LOG_INFO},   {"warning", RUEDA_LOG_WARN},
        {"warn", RUEDA_LOG_WARN},   {"error", RUEDA_LOG_ERROR},
        {"fatal", RUEDA_LOG_ERROR},
    };

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcasecmp(value, levels[i].name) == 0) {
            *(rueda_log_level *)out = levels[i].level;
            return true;
        }
    }
    return false;
}

/* What is no number is 0. */
static bool parse_flag(const char *value, void *out)
{
    *(bool *)out = strtol(value, NULL, 10) > 0;
    return true;
}

/* For one that says what is not to be. */
static bool parse_not(const char *value, void *out)
{
    *(bool *)out = strtol(value, NULL, 10) <= 0;
    return true;
}

static bool parse_stages(const char *value, void *out)
{
    *(rueda_config_stages *)out =
        strtol(value, NULL, 10) > 0 ? RUEDA_STAGES_ALWAYS : RUEDA_STAGES_NEVER;
    return true;
}

/* A parser of its own where Horovod reads the value in another way than we do;
 * NULL where both agree, such as for a number of seconds. */
static const struct rueda_horovod_alias aliases[] = {
    {"RUEDA_START_TIMEOUT", "HOROVOD_GLOO_TIMEOUT_SECONDS", NULL},
    {"RUEDA_LOG_LEVEL", "HOROVOD_LOG_LEVEL", parse_log_level},
    {"RUEDA_NETWORK", "HOROVOD_GLOO_IFACE", NULL},
    {"RUEDA_STAGED_ALLREDUCE", "HOROVOD_HIERARCHICAL_ALLREDUCE", parse_stages},
    {"RUEDA_STAGED_ALLGATHER", "HOROVOD_HIERARCHICAL_ALLGATHER", parse_stages},
    {"RUEDA_FUSION_BYTES", "HOROVOD_FUSION_THRESHOLD", NULL},
    {"RUEDA_GROUPS_ALONE", "HOROVOD_DISABLE_GROUP_FUSION", parse_flag},
    {"RUEDA_CACHE_CAPACITY", "HOROVOD_CACHE_CAPACITY", NULL},
    {"RUEDA_STALL_CHECK", "HOROVOD_STALL_CHECK_DISABLE", parse_not},
    {"RUEDA_STALL_WARN", "HOROVOD_STALL_CHECK_TIME_SECONDS", NULL},
    {"RUEDA_STALL_SHUTDOWN", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", NULL},
    {"RUEDA_TIMELINE", "HOROVOD_TIMELINE", NULL},
    {"RUEDA_MARK_CYCLES", "HOROVOD_TIMELINE_MARK_CYCLES", parse_flag},
    {"RUEDA_DYNAMIC_SETS", "HOROVOD_DYNAMIC_PROCESS_SETS", parse_flag},
};

const struct rueda_horovod_alias *rueda_horovod_alias(const char *setting)
{
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
        if (strcmp(aliases[i].setting, setting) == 0)
            return &aliases[i];
    return NULL;
}

/* ---- Those without effect ----------------------------------------------- */

#define BY_TUNE    "algorithms are chosen by what `rueda bench --tune` measured"
#define NO_AUTO    "nothing is tuned while a job runs; see `rueda bench --tune`"
#define NO_MPI     "there is no MPI inside"
#define NO_CYCLES  "there are no cycles: work starts when it is ready"
#define BY_NETWORK "hosts and networks decide which transport is used"
#define BY_DRIVER  "the library itself arranges copies and kernels on GPUs"

/* Values that make no difference here, whatever they are. */
#define ANY NULL

/* A row: name, reason, the values that are no news (horovod.h). */
static const struct rueda_horovod_variable variables[] = {
    {"HOROVOD_CYCLE_TIME", NO_CYCLES, "0"},
    {"HOROVOD_AUTOTUNE", NO_AUTO, "0"},
    {"HOROVOD_AUTOTUNE_LOG", NO_AUTO, "0"},
    {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", NO_AUTO, "3"},
    {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", NO_AUTO, "10"},
    {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", NO_AUTO, "20"},
    {"HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", NO_AUTO, "0.8"},
    {"HOROVOD_TORUS_ALLREDUCE", BY_TUNE, "0"},
    {"HOROVOD_BATCH_D2D_MEMCOPIES", BY_DRIVER, "1"},
    {"HOROVOD_NUM_NCCL_STREAMS", BY_DRIVER, "1"},
    {"HOROVOD_ENABLE_ASYNC_COMPLETION", BY_DRIVER, "0"},
    {"HOROVOD_CPU_OPERATIONS", BY_NETWORK, "gloo mpi"},
    {"HOROVOD_CONTROLLER", BY_NETWORK, "gloo mpi"},
    {"HOROVOD_CCL_CACHE", "there is no oneCCL inside", "0"},
    {"HOROVOD_HOSTNAME", "ranks identify their hosts themselves", ANY},
    {"HOROVOD_ADASUM_MPI_CHUNK_SIZE", NO_MPI, "0"},
    {"HOROVOD_MPI_THREADS_DISABLE", NO_MPI, "0"},
    {"HOROVOD_THREAD_AFFINITY",
     "threads that wait make the progress; bind the process instead", ""},
    {"HOROVOD_DISABLE_NVTX_RANGES", "there are no NVTX ranges", ANY},
    {"HOROVOD_ENABLE_XLA_OPS", "the library knows no framework", "0"},
    {"HOROVOD_ELASTIC", "the launcher says it in another way", ANY},
    {"HOROVOD_LOG_HIDE_TIME", "lines of the log have no time", ANY},
};

const struct rueda_horovod_variable *rueda_horovod_variables(size_t *out_count)
{
    *out_count = sizeof(variables) / sizeof(variables[0]);
    return variables;
}

/* Does the value make no difference? */
static bool is_usual(const struct rueda_horovod_variable *variable,
                     const char *value)
{
    const size_t bytes = strlen(value);
    const char *at = variable->usual;

    while (at != NULL) {
        if (strncasecmp(at, value, bytes) == 0 &&
            (at[bytes] == ' ' || at[bytes] == '\0'))
            return true;
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return variable->usual == NULL;
}

/* Those of which only some values make sense, in any case. */
static const struct {
    const char *name;
    const char *values[4]; /* then NULL */
} choices[] = {
    {"HOROVOD_CPU_OPERATIONS", {"mpi", "gloo", "ccl"}},
    {"HOROVOD_CONTROLLER", {"mpi", "gloo"}},
};

static bool is_among(const char *value, const char *const *values)
{
    for (; *values != NULL; values++)
        if (strcasecmp(value, *values) == 0)
            return true;
    return false;
}

static rueda_status refuse(const char *name, const char *value,
                           const char *const *values, struct rueda_text *error)
{
    rueda_text_set(error, "%s is \"%.100s\", which is not ", name, value);
    for (int i = 0; values[i] != NULL; i++)
        rueda_text_add(error, "%s%s",
                       i == 0                  ? ""
                       : values[i + 1] == NULL ? " or "
                                               : ", ",
                       values[i]);
    rueda_text_add(error, "; it has no effect here, and can be left out");
    return RUEDA_ERR_INVALID;
}

rueda_status rueda_horovod_check(struct rueda_text *error)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        const char *value = rueda_environment(choices[i].name);

        if (value != NULL && !is_among(value, choices[i].values))
            return refuse(choices[i].name, value, choices[i].values, error);
    }
    return RUEDA_OK;
}

/* ruedarun sets these for scripts that read them; its user has not. */
static bool is_ruedaruns(const struct rueda_config *config, const char *name)
{
    return config->store_keeper == RUEDA_STORE_BY_LAUNCHER &&
           (strcmp(name, "HOROVOD_CPU_OPERATIONS") == 0 ||
            strcmp(name, "HOROVOD_CONTROLLER") == 0 ||
            strcmp(name, "HOROVOD_HOSTNAME") == 0 ||
            strcmp(name, "HOROVOD_ELASTIC") == 0);
}

void rueda_horovod_tell(const struct rueda_config *config)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;

    if (atomic_flag_test_and_set(&is_told))
        return;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = rueda_environment(variables[i].name);

        if (value == NULL)
            continue;
        if (!is_usual(&variables[i], value))
            log_warn("%s has no effect: %s", variables[i].name,
                     variables[i].why);
        else if (!is_ruedaruns(config, variables[i].name))
            log_info("%s has no effect: %s", variables[i].name,
                     variables[i].why);
    }
    if (config->is_stall_end_ignored)
        log_warn("RUEDA_STALL_SHUTDOWN is ignored, as it is shorter than "
                 "RUEDA_STALL_WARN; raise it, or lower the other");
}
