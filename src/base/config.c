/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of settings, and parsing their values. The only file that reads the
 * environment.
 *
 * A value is found in three places, the first of which decides: the variable of
 * its own name, Horovod's variable (horovod.c), the default in the table.
 * Defaults are text and are parsed like all others, so the table and
 * docs/config.md cannot differ from what happens. A value that cannot be parsed
 * is an error and not the default: a mistyped limit must not be no limit.
 */
#include "base/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/horovod.h"
#include "base/number.h"

/* About thirty years: no time that is made of a setting, in nanoseconds, gets
 * out of 64 bits. */
#define MOST_MS ((int64_t)1000000000000)
/* A day. */
#define MOST_SILENCE_MS ((int64_t)86400000)
/* Only sleeping ranks notice deaths, so no rank may wait awake for long. */
#define MOST_MICROS 250000

/* Empty is how the table writes "not set". */
static bool parse_rank(const char *value, void *out)
{
    if (value[0] != '\0')
        return rueda_parse_int(value, out);
    *(int *)out = -1;
    return true;
}

/* "auto" is -1. */
static bool parse_micros(const char *value, void *out)
{
    uint64_t micros;

    if (strcmp(value, "auto") == 0) {
        *(int64_t *)out = -1;
        return true;
    }
    if (!rueda_parse_whole(value, MOST_MICROS, &micros))
        return false;
    *(int64_t *)out = (int64_t)micros;
    return true;
}

/* Seconds by default; "500ms", "30s", "5m" and "1h" are said with their unit.
 * The result is in milliseconds. */
static bool parse_duration(const char *value, void *out)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}};
    char *end;
    double number = strtod(value, &end);

    if (end == value || !(number >= 0))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].unit) == 0) {
            if (number * units[i].ms > (double)MOST_MS)
                return false;
            *(int64_t *)out = (int64_t)(number * units[i].ms);
            return true;
        }
    }
    return false;
}

/* The system needs two seconds to doubt, then the host is called. */
static bool parse_host_timeout(const char *value, void *out)
{
    return parse_duration(value, out) && *(int64_t *)out >= 2300 &&
           *(int64_t *)out <= MOST_SILENCE_MS;
}

/* A digit first: strtoull() would take blanks, and a minus for a very large
 * number. */
bool rueda_parse_size(const char *value, void *out_size)
{
    static const char units[] = "kmgt";
    unsigned long long number;
    const char *unit;
    int shift = 0;
    char *end;

    if (value[0] < '0' || value[0] > '9')
        return false;
    errno = 0;
    number = strtoull(value, &end, 10);
    if (errno != 0)
        return false;
    if (*end != '\0') {
        unit = strchr(units, *end | 0x20);
        if (unit == NULL || *unit == '\0' || end[1] != '\0')
            return false;
        shift = 10 * (int)(unit - units + 1);
    }
    if (number > (SIZE_MAX >> shift))
        return false;
    *(size_t *)out_size = (size_t)number << shift;
    return true;
}

/* A power of two, so that it can be cut. */
static bool parse_ring(const char *value, void *out)
{
    size_t *bytes = out;

    if (strcmp(value, "auto") == 0) {
        *bytes = 0;
        return true;
    }
    return rueda_parse_size(value, out) && *bytes >= ((size_t)1 << 20) &&
           *bytes <= ((size_t)1 << 28) && (*bytes & (*bytes - 1)) == 0;
}

/* False: it does not fit with its zero. A name that was cut would be that of
 * another file, or job. */
static bool copy_text(const char *value, char *out, size_t bytes)
{
    if (strlen(value) >= bytes)
        return false;
    memset(out, 0, bytes);
    memcpy(out, value, strlen(value) + 1);
    return true;
}

static bool parse_name(const char *value, void *out)
{
    return copy_text(value, out, RUEDA_CONFIG_NAME_BYTES);
}

static bool parse_store(const char *value, void *out)
{
    return copy_text(value, out, RUEDA_CONFIG_STORE_BYTES);
}

/* All of them need no names. */
static bool parse_network(const char *value, void *out)
{
    return parse_store(strcmp(value, "all") == 0 ? "" : value, out);
}

static bool parse_path(const char *value, void *out)
{
    return copy_text(value, out, RUEDA_PATH_BYTES);
}

static bool parse_log_level(const char *value, void *out)
{
    for (int level = RUEDA_LOG_ERROR; level <= RUEDA_LOG_TRACE; level++) {
        if (strcmp(value, rueda_log_level_str((rueda_log_level)level)) == 0) {
            *(rueda_log_level *)out = (rueda_log_level)level;
            return true;
        }
    }
    return false;
}

/* Only 0 and 1: whether "no" or "false" is meant is not guessed. */
static bool parse_flag(const char *value, void *out)
{
    *(bool *)out = strcmp(value, "1") == 0;
    return *(bool *)out || strcmp(value, "0") == 0;
}

static bool parse_fusion(const char *value, void *out)
{
    return rueda_parse_size(value, out) && *(size_t *)out <= RUEDA_FUSION_MOST;
}

static bool parse_capacity(const char *value, void *out)
{
    return rueda_parse_int(value, out) && *(int *)out <= RUEDA_CACHE_MOST;
}

static bool parse_servers(const char *value, void *out)
{
    return rueda_parse_int(value, out) && *(int *)out >= 0;
}

static bool parse_streams(const char *value, void *out)
{
    return rueda_parse_int(value, out) && *(int *)out >= 1 && *(int *)out <= 8;
}

static bool parse_keeper(const char *value, void *out)
{
    bool is_launcher = strcmp(value, "launcher") == 0;

    *(rueda_config_keeper *)out =
        is_launcher ? RUEDA_STORE_BY_LAUNCHER : RUEDA_STORE_BY_RANK_0;
    return is_launcher || strcmp(value, "rank0") == 0;
}

/* In the order of the enum. */
static bool parse_transport(const char *value, void *out)
{
    static const char *const names[] = {"auto", "shm", "loop", "tcp",
                                        "messages"};

    for (int i = 0; i < 5; i++) {
        if (strcmp(value, names[i]) == 0) {
            *(rueda_config_transport *)out = (rueda_config_transport)i;
            return true;
        }
    }
    return false;
}

/* The place of a word among these three, or -1. */
static int parse_when(const char *value)
{
    static const char *const names[] = {"auto", "always", "never"};

    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0)
            return i;
    return -1;
}

static bool parse_encrypt(const char *value, void *out)
{
    const int when = strcmp(value, "authenticate") == 0
                         ? RUEDA_ENCRYPT_AUTHENTICATE
                         : parse_when(value);

    *(rueda_config_encrypt *)out = (rueda_config_encrypt)when;
    return when >= 0;
}

static bool parse_stages(const char *value, void *out)
{
    const int when = parse_when(value);

    *(rueda_config_stages *)out = (rueda_config_stages)when;
    return when >= 0;
}

static bool parse_nccl(const char *value, void *out)
{
    const int when = parse_when(value);

    *(rueda_config_nccl *)out = (rueda_config_nccl)when;
    return when >= 0;
}

static bool parse_check(const char *value, void *out)
{
    static const char every[] = "every:";
    int *steps = out;

    if (strcmp(value, "off") == 0) {
        *steps = RUEDA_CONFIG_CHECK_OFF;
        return true;
    }
    if (strcmp(value, "first") == 0) {
        *steps = RUEDA_CONFIG_CHECK_FIRST;
        return true;
    }
    return strncmp(value, every, sizeof(every) - 1) == 0 &&
           rueda_parse_int(value + sizeof(every) - 1, steps) && *steps >= 1;
}

/* The field that a row fills in. */
#define AT(field) offsetof(struct rueda_config, field)

/* A row: name, default, what `rueda info --config` says of it, field, parser.
 * To add one, and for what else that takes, see CONTRIBUTING.md. */
static const struct rueda_setting settings[] = {
    {"RUEDA_RANK", "", "number of this rank, from 0", AT(rank), parse_rank},
    {"RUEDA_SIZE", "", "the number of ranks", AT(size), parse_rank},
    {"RUEDA_LOCAL_RANK", "", "number of this rank on its host, from 0",
     AT(local_rank), parse_rank},
    {"RUEDA_LOCAL_SIZE", "", "the number of ranks on this host", AT(local_size),
     parse_rank},
    {"RUEDA_CROSS_RANK", "",
     "number of this host among the hosts with this local rank", AT(cross_rank),
     parse_rank},
    {"RUEDA_CROSS_SIZE", "", "the number of such hosts", AT(cross_size),
     parse_rank},
    {"RUEDA_STORE", "", "host:port where ranks of several hosts meet",
     AT(store), parse_store},
    {"RUEDA_STORE_KEEPER", "rank0",
     "the process that listens there: rank0 or launcher", AT(store_keeper),
     parse_keeper},
    {"RUEDA_JOB", "",
     "name of the job: ranks of one user with the same name meet; not set: the "
     "launcher's name for it, or one made of program and folder",
     AT(job), parse_name},
    {"RUEDA_KEY_FILE", "",
     "file with the job's key (64 hex digits, readable by its owner only)",
     AT(key_file), parse_path},
    {"RUEDA_KEY_FD", "",
     "open descriptor of a file with the job's key, inherited from a launcher",
     AT(key_fd), parse_rank},
    {"RUEDA_SEGMENT_FD", "",
     "descriptor of an inherited, sealed memfd that rank 0 shares",
     AT(segment_fd), parse_rank},
    {"RUEDA_START_TIMEOUT", "30s", "how long to wait for the other ranks",
     AT(start_timeout_ms), parse_duration},
    {"RUEDA_LOG_LEVEL", "warn", "error, warn, info, debug or trace",
     AT(log_level), parse_log_level},
    {"RUEDA_TRANSPORT", "auto",
     "auto or shm: shared memory directly, TCP between hosts; only messages: "
     "messages (in shared memory), loop, tcp",
     AT(transport), parse_transport},
    {"RUEDA_TCP_STREAMS", "2", "TCP connections between two ranks, 1 to 8",
     AT(tcp_streams), parse_streams},
    {"RUEDA_NETWORK", "all",
     "interfaces or networks for TCP, e.g. eth0,10.1.0.0/16", AT(network),
     parse_network},
    {"RUEDA_ENCRYPT", "auto",
     "encrypt between hosts: always, never, authenticate (a MAC for each "
     "frame), or auto: if a rank has an address that is neither private nor "
     "link-local",
     AT(encrypt), parse_encrypt},
    {"RUEDA_HOST_TIMEOUT", "10s",
     "how long a host may be silent before its ranks are lost; at least 2.3s",
     AT(host_timeout_ms), parse_host_timeout},
    {"RUEDA_ALGO", "",
     "algorithms by size, e.g. allreduce:0-4k:tree;allreduce:4k-inf:ring",
     AT(algo), parse_path},
    {"RUEDA_TUNE_FILE", "", "the same, from a file made by rueda bench --tune",
     AT(tune_file), parse_path},
    {"RUEDA_STAGED_ALLREDUCE", "auto",
     "allreduce in stages, inside and between hosts: always, never, or auto: "
     "where that is faster",
     AT(staged_allreduce), parse_stages},
    {"RUEDA_STAGED_ALLGATHER", "auto",
     "allgather in stages: always, never, or auto: where that is faster",
     AT(staged_allgather), parse_stages},
    {"RUEDA_KERNELS", "auto", "vector kernels: auto, c, avx2, avx512 or neon",
     AT(kernels), parse_name},
    {"RUEDA_CUDA_LIB", "libcuda.so.1",
     "the CUDA driver library, loaded when the first tensor on a GPU comes",
     AT(driver_library), parse_path},
    {"RUEDA_CUDA_IPC", "1",
     "0: ranks of a host do not map each other's memory of GPUs", AT(cuda_ipc),
     parse_flag},
    {"RUEDA_NCCL", "auto",
     "NCCL for tensors on GPUs: always, never, or auto: where each rank has a "
     "GPU of its own; the same on all ranks",
     AT(nccl), parse_nccl},
    {"RUEDA_NCCL_LIB", "",
     "NCCL's library; if not set, the one that is loaded already, that of the "
     "nvidia-nccl wheel, or the system's",
     AT(nccl_library), parse_path},
    {"RUEDA_NCCL_TIMEOUT", "120s",
     "how long NCCL may take to connect the ranks of a process set",
     AT(nccl_timeout_ms), parse_duration},
    {"RUEDA_NVML_LIB", "libnvidia-ml.so.1",
     "the library that metrics of GPUs come from", AT(nvml_library),
     parse_path},
    {"RUEDA_RING_BYTES", "auto",
     "shared memory that a rank's data pass through, 1m, 2m, 4m, ...",
     AT(ring_bytes), parse_ring},
    {"RUEDA_SPIN_US", "auto",
     "how long a waiting rank spins, microseconds, at most 250000", AT(spin_us),
     parse_micros},
    {"RUEDA_YIELD_US", "auto",
     "how long it then yields its core before it sleeps, microseconds, at "
     "most 250000",
     AT(yield_us), parse_micros},
    {"RUEDA_FUSION_BYTES", "16m",
     "tensors that are ready run together up to this size; 0: each alone",
     AT(fusion_bytes), parse_fusion},
    {"RUEDA_GROUPS_ALONE", "0",
     "1: a group of tensors runs with no other tensors", AT(groups_alone),
     parse_flag},
    {"RUEDA_CACHE_CAPACITY", "1024",
     "names of a process set that ranks know by number; 0: none",
     AT(cache_capacity), parse_capacity},
    {"RUEDA_STALL_CHECK", "1",
     "0: no warning about tensors that some ranks never submit",
     AT(stall_check), parse_flag},
    {"RUEDA_STALL_WARN", "60s",
     "warn about a tensor that some ranks have not submitted after this time; "
     "0: never",
     AT(stall_warn_ms), parse_duration},
    {"RUEDA_STALL_SHUTDOWN", "0",
     "end the job after this time, if it is not shorter than that of the "
     "warning; 0: never",
     AT(stall_end_ms), parse_duration},
    {"RUEDA_CHECK", "first",
     "compare the parameters of all ranks in an optimizer's first step; "
     "every:100: in every 100th step as well; off: never",
     AT(check_every), parse_check},
    {"RUEDA_TENSORFLOW_WAITS", "0",
     "1: each op of TensorFlow occupies a thread of TensorFlow while it waits, "
     "as it has to with TensorFlow 2.12",
     AT(tensorflow_waits), parse_flag},
    {"RUEDA_STALL_GIVE_UP", "1800s",
     "end the job when no rank could move for this time: every rank waits, or "
     "the missing one is stopped; 0: never",
     AT(stall_give_up_ms), parse_duration},
    {"RUEDA_STALL_REPEAT", "600s",
     "warn again about the same stall after this time, or after another "
     "RUEDA_STALL_WARN if that is longer",
     AT(stall_repeat_ms), parse_duration},
    {"RUEDA_TIMELINE", "",
     "file for a trace of all tensors, or DYNAMIC: the program starts it",
     AT(timeline), parse_path},
    {"RUEDA_MARK_CYCLES", "0", "1: the trace shows rounds of negotiation",
     AT(mark_cycles), parse_flag},
    {"RUEDA_DYNAMIC_SETS", "0",
     "1: programs may make and remove process sets while they run",
     AT(dynamic_sets), parse_flag},
    {"RUEDA_REPAIR", "0",
     "1: when a rank dies, the others run again without it what it has left "
     "undone",
     AT(repair), parse_flag},
    {"RUEDA_PROCESS_SETS", "",
     "process sets made at the start, e.g. 0,2;1,3-5: ids 1, 2, ...",
     AT(process_sets), parse_path},
    {"RUEDA_SERVERS", "0",
     "how many of the last ranks are servers, in no collective", AT(servers),
     parse_servers},
};

const struct rueda_setting *rueda_settings(size_t *out_count)
{
    *out_count = sizeof(settings) / sizeof(settings[0]);
    return settings;
}

/* Launchers and scripts export empty variables for what they do not know. */
const char *rueda_environment(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Horovod's variable, if it decides this setting, else NULL. */
static const struct rueda_horovod_alias *
alias_in_use(const struct rueda_setting *setting)
{
    const struct rueda_horovod_alias *alias =
        rueda_horovod_alias(setting->name);

    return alias != NULL && rueda_environment(setting->name) == NULL &&
                   rueda_environment(alias->name) != NULL
               ? alias
               : NULL;
}

const char *rueda_setting_source(const struct rueda_setting *setting)
{
    const struct rueda_horovod_alias *alias = alias_in_use(setting);

    return alias != NULL ? alias->name : setting->name;
}

const char *rueda_setting_value(const struct rueda_setting *setting)
{
    const char *value = rueda_environment(rueda_setting_source(setting));

    return value != NULL ? value : setting->fallback;
}

/* Horovod's value may have a form of its own, such as a flag that is any
 * number. */
static bool parse(const struct rueda_setting *setting, const char *value,
                  void *out)
{
    const struct rueda_horovod_alias *alias = alias_in_use(setting);

    return alias != NULL && alias->parse != NULL ? alias->parse(value, out)
                                                 : setting->parse(value, out);
}

/* Does the job use Horovod's words about stalls? By those it only ends where
 * that is asked for. */
static bool is_stall_by_horovod(void)
{
    static const char *const names[] = {"HOROVOD_STALL_CHECK_DISABLE",
                                        "HOROVOD_STALL_CHECK_TIME_SECONDS",
                                        "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"};
    bool is_one = false;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_one = is_one || rueda_environment(names[i]) != NULL;
    return is_one;
}

/* What one setting means for another, when all have been parsed: a stall that
 * no rank checks for neither warns nor ends the job, and a job that has
 * Horovod's variables for stalls ends only where they say so. */
static void settle(struct rueda_config *config)
{
    if (!config->stall_check) {
        config->stall_warn_ms = 0;
        config->stall_end_ms = 0;
        config->stall_give_up_ms = 0;
    }
    /* Also who says that a stall never ends the job. */
    if ((is_stall_by_horovod() ||
         (config->stall_end_ms == 0 &&
          rueda_environment("RUEDA_STALL_SHUTDOWN") != NULL)) &&
        rueda_environment("RUEDA_STALL_GIVE_UP") == NULL)
        config->stall_give_up_ms = 0;
    if (is_stall_by_horovod() &&
        rueda_environment("RUEDA_STALL_REPEAT") == NULL)
        config->stall_repeat_ms = 0;
    config->is_stall_end_ignored = config->stall_end_ms > 0 &&
                                   config->stall_end_ms < config->stall_warn_ms;
    if (config->is_stall_end_ignored)
        config->stall_end_ms = 0;
}

/* The first row that fails decides, so the message names one variable. */
rueda_status rueda_config_load(struct rueda_config *config,
                               struct rueda_text *error)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);

    memset(config, 0, sizeof(*config));
    for (size_t i = 0; i < count; i++) {
        const struct rueda_setting *setting = &table[i];
        const char *value = rueda_setting_value(setting);

        if (!parse(setting, value, (char *)config + setting->offset)) {
            rueda_text_set(error,
                           "%s is \"%.100s\", which cannot be: %s "
                           "(default %s)",
                           rueda_setting_source(setting), value, setting->help,
                           setting->fallback[0] != '\0' ? setting->fallback
                                                        : "unset");
            return RUEDA_ERR_INVALID;
        }
    }
    settle(config);
    return rueda_horovod_check(error);
}
