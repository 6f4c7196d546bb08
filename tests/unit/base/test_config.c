/* SPDX-License-Identifier: Apache-2.0 */
/* Settings from the environment; each test begins with none of them set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/config.h"
#include "base/horovod.h"

static int clear_environment(void **state)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct rueda_horovod_alias *alias =
            rueda_horovod_alias(settings[i].name);

        if (unsetenv(settings[i].name) != 0 ||
            (alias != NULL && unsetenv(alias->name) != 0))
            return -1;
    }
    return 0;
}

/* Load with one variable set. */
static rueda_status load_with(const char *name, const char *value,
                              struct rueda_config *out,
                              struct rueda_text *out_error)
{
    rueda_status status;

    memset(out_error, 0, sizeof(*out_error));
    assert_int_equal(setenv(name, value, 1), 0);
    status = rueda_config_load(out, out_error);
    assert_int_equal(unsetenv(name), 0);
    return status;
}

static struct rueda_config good(const char *name, const char *value)
{
    struct rueda_config config;
    struct rueda_text error;

    assert_int_equal(load_with(name, value, &config, &error), RUEDA_OK);
    assert_true(rueda_text_is_empty(&error));
    return config;
}

/* Each of values, ended by NULL, is refused by words with name and value. */
static void check_refused(const char *name, const char *const *values)
{
    for (; *values != NULL; values++) {
        struct rueda_config config;
        struct rueda_text error;
        char quoted[160];

        snprintf(quoted, sizeof(quoted), "is \"%.100s\"", *values);
        assert_int_equal(load_with(name, *values, &config, &error),
                         RUEDA_ERR_INVALID);
        assert_non_null(strstr(error.chars, name));
        assert_non_null(strstr(error.chars, quoted));
    }
}

static void without_variables_every_setting_has_its_default(void **state)
{
    struct rueda_text error = {{0}};
    struct rueda_config config;

    (void)state;
    assert_int_equal(rueda_config_load(&config, &error), RUEDA_OK);

    assert_int_equal(config.rank, -1);
    assert_int_equal(config.size, -1);
    assert_string_equal(config.job, "");
    assert_string_equal(config.key_file, "");
    assert_int_equal(config.key_fd, -1);
    assert_int_equal(config.start_timeout_ms, 30000);
    assert_int_equal(config.host_timeout_ms, 10000);
    assert_int_equal(config.log_level, RUEDA_LOG_WARN);
    assert_int_equal(config.transport, RUEDA_TRANSPORT_AUTO);
    assert_int_equal(config.encrypt, RUEDA_ENCRYPT_AUTO);
    assert_string_equal(config.algo, "");
    assert_string_equal(config.tune_file, "");
    assert_string_equal(config.kernels, "auto");
    assert_string_equal(config.driver_library, "libcuda.so.1");
    assert_int_equal(config.nccl, RUEDA_NCCL_AUTO);
    assert_string_equal(config.nccl_library, "");
    assert_int_equal(config.nccl_timeout_ms, 120000);
    assert_string_equal(config.nvml_library, "libnvidia-ml.so.1");
    assert_int_equal(config.ring_bytes, 0);
    assert_int_equal(config.spin_us, -1);
    assert_int_equal(config.yield_us, -1);
    assert_int_equal(config.fusion_bytes, 16 << 20);
    assert_int_equal(config.cache_capacity, 1024);
    assert_false(config.groups_alone);
    assert_int_equal(config.stall_warn_ms, 60000);
    assert_int_equal(config.stall_end_ms, 0);
    assert_false(config.is_stall_end_ignored);
    assert_string_equal(config.timeline, "");
    assert_false(config.mark_cycles);
    assert_false(config.dynamic_sets);
    assert_false(config.repair);
}

static void every_setting_has_a_name_and_help(void **state)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    (void)state;
    assert_true(count >= 14);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strncmp(settings[i].name, "RUEDA_", 6), 0);
        assert_true(strlen(settings[i].help) > 0);
        assert_string_equal(rueda_setting_value(&settings[i]),
                            settings[i].fallback);
    }
}

static void an_empty_variable_counts_as_unset(void **state)
{
    (void)state;
    assert_string_equal(good("RUEDA_JOB", "").job, "");
}

static void ranks_are_whole_numbers_from_0(void **state)
{
    static const char *const bad[] = {
        "-1", "two", "3x", "1.5", "2147483648", "99999999999999999999", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_RANK", "0").rank, 0);
    assert_int_equal(good("RUEDA_RANK", "17").rank, 17);
    assert_int_equal(good("RUEDA_SIZE", "2147483647").size, 2147483647);
    check_refused("RUEDA_RANK", bad);
    check_refused("RUEDA_SIZE", bad);
}

static void descriptors_are_whole_numbers_from_0(void **state)
{
    static const char *const bad[] = {"-1", "stdin", "3 ", "+3", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_KEY_FD", "0").key_fd, 0);
    assert_int_equal(good("RUEDA_KEY_FD", "17").key_fd, 17);
    check_refused("RUEDA_KEY_FD", bad);
}

static void durations_are_seconds_or_say_their_unit(void **state)
{
    static const struct {
        const char *value;
        int64_t ms;
    } cases[] = {
        {"0", 0},       {"5", 5000},    {"1.5", 1500},   {"5s", 5000},
        {"500ms", 500}, {"2m", 120000}, {"1h", 3600000}, {"0.5h", 1800000},
    };
    static const char *const bad[] = {"-1",   "soon", "5 s", "5d",
                                      "1e10", "inf",  "nan", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(
            good("RUEDA_START_TIMEOUT", cases[i].value).start_timeout_ms,
            cases[i].ms);
    check_refused("RUEDA_START_TIMEOUT", bad);
}

/* The system takes two seconds to doubt. */
static void a_host_is_given_time_to_answer(void **state)
{
    static const char *const bad[] = {"2s", "0", "25h", "soon", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_HOST_TIMEOUT", "2300ms").host_timeout_ms,
                     2300);
    assert_int_equal(good("RUEDA_HOST_TIMEOUT", "1m").host_timeout_ms, 60000);
    check_refused("RUEDA_HOST_TIMEOUT", bad);
}

/* Callers turn milliseconds into nanoseconds, and deaths are seen by who does
 * not wait awake. */
static void no_time_is_too_long(void **state)
{
    static const char *const long_waits[] = {"1e9h", "1e9m", NULL};
    static const char *const long_spins[] = {"9223372036854775807", "250001",
                                             NULL};

    (void)state;
    check_refused("RUEDA_START_TIMEOUT", long_waits);
    check_refused("RUEDA_SPIN_US", long_spins);
    check_refused("RUEDA_YIELD_US", long_spins);
    assert_true(good("RUEDA_START_TIMEOUT", "1e5h").start_timeout_ms <=
                INT64_MAX / 2000000);
}

static void log_levels_go_by_their_names(void **state)
{
    static const char *const bad[] = {"loud", "WARN", "warning", "2", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_LOG_LEVEL", "error").log_level,
                     RUEDA_LOG_ERROR);
    assert_int_equal(good("RUEDA_LOG_LEVEL", "trace").log_level,
                     RUEDA_LOG_TRACE);
    check_refused("RUEDA_LOG_LEVEL", bad);
}

static void transports_go_by_their_names(void **state)
{
    static const char *const bad[] = {"udp", "Auto", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_TRANSPORT", "auto").transport,
                     RUEDA_TRANSPORT_AUTO);
    assert_int_equal(good("RUEDA_TRANSPORT", "messages").transport,
                     RUEDA_TRANSPORT_MESSAGES);
    assert_int_equal(good("RUEDA_TRANSPORT", "shm").transport,
                     RUEDA_TRANSPORT_SHM);
    assert_int_equal(good("RUEDA_TRANSPORT", "loop").transport,
                     RUEDA_TRANSPORT_LOOP);
    assert_int_equal(good("RUEDA_TRANSPORT", "tcp").transport,
                     RUEDA_TRANSPORT_TCP);
    check_refused("RUEDA_TRANSPORT", bad);
}

static void encryption_goes_by_its_words(void **state)
{
    static const char *const bad[] = {"yes", "1", "Always", "never ", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_ENCRYPT", "auto").encrypt, RUEDA_ENCRYPT_AUTO);
    assert_int_equal(good("RUEDA_ENCRYPT", "always").encrypt,
                     RUEDA_ENCRYPT_ALWAYS);
    assert_int_equal(good("RUEDA_ENCRYPT", "never").encrypt,
                     RUEDA_ENCRYPT_NEVER);
    assert_int_equal(good("RUEDA_ENCRYPT", "authenticate").encrypt,
                     RUEDA_ENCRYPT_AUTHENTICATE);
    check_refused("RUEDA_ENCRYPT", bad);
}

static void a_ring_is_a_power_of_two_from_1_mib_or_found_out(void **state)
{
    static const char *const bad[] = {"512k", "512m", "3m", "AUTO", "0", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_RING_BYTES", "auto").ring_bytes, 0);
    assert_int_equal(good("RUEDA_RING_BYTES", "1m").ring_bytes, 1 << 20);
    assert_int_equal(good("RUEDA_RING_BYTES", "256m").ring_bytes, 256 << 20);
    check_refused("RUEDA_RING_BYTES", bad);
}

static void patience_is_microseconds_or_found_out(void **state)
{
    static const char *const bad[] = {"-1", "10us", "Auto", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_SPIN_US", "auto").spin_us, -1);
    assert_int_equal(good("RUEDA_SPIN_US", "0").spin_us, 0);
    assert_int_equal(good("RUEDA_YIELD_US", "2000").yield_us, 2000);
    check_refused("RUEDA_SPIN_US", bad);
    check_refused("RUEDA_YIELD_US", bad);
}

static void texts_are_taken_whole_or_refused(void **state)
{
    char longest[RUEDA_PATH_BYTES + 1];
    const char *too_long[] = {longest, NULL};

    (void)state;
    assert_string_equal(good("RUEDA_JOB", "a job").job, "a job");
    assert_string_equal(good("RUEDA_KERNELS", "avx2").kernels, "avx2");
    assert_string_equal(good("RUEDA_CUDA_LIB", "/a/b.so").driver_library,
                        "/a/b.so");
    assert_string_equal(good("RUEDA_NCCL_LIB", "/n.so").nccl_library, "/n.so");
    assert_int_equal(good("RUEDA_NCCL", "never").nccl, RUEDA_NCCL_NEVER);
    assert_int_equal(good("RUEDA_NCCL_TIMEOUT", "3s").nccl_timeout_ms, 3000);
    assert_string_equal(good("RUEDA_NVML_LIB", "/m.so").nvml_library, "/m.so");
    assert_string_equal(good("RUEDA_KEY_FILE", "/k").key_file, "/k");
    assert_string_equal(good("RUEDA_TUNE_FILE", "/t").tune_file, "/t");
    assert_string_equal(good("RUEDA_ALGO", "allreduce:ring").algo,
                        "allreduce:ring");

    memset(longest, 'x', sizeof(longest));
    longest[RUEDA_PATH_BYTES - 1] = '\0';
    assert_string_equal(good("RUEDA_ALGO", longest).algo, longest);
    longest[RUEDA_PATH_BYTES - 1] = 'x';
    longest[RUEDA_PATH_BYTES] = '\0';
    check_refused("RUEDA_ALGO", too_long);
    longest[RUEDA_CONFIG_NAME_BYTES] = '\0';
    check_refused("RUEDA_JOB", too_long);
    longest[RUEDA_CONFIG_NAME_BYTES - 1] = '\0';
    assert_string_equal(good("RUEDA_JOB", longest).job, longest);
}

static void the_words_of_a_refusal_tell_what_is_taken(void **state)
{
    struct rueda_config config;
    struct rueda_text error;

    (void)state;
    load_with("RUEDA_LOG_LEVEL", "loud", &config, &error);
    assert_string_equal(error.chars,
                        "RUEDA_LOG_LEVEL is \"loud\", which cannot be: error, "
                        "warn, info, debug or trace (default warn)");
    load_with("RUEDA_RANK", "x", &config, &error);
    assert_non_null(strstr(error.chars, "(default unset)"));
}

static void sizes_are_bytes_with_powers_of_1024(void **state)
{
    static const struct {
        const char *value;
        size_t bytes;
    } cases[] = {
        {"0", 0},
        {"65536", 65536},
        {"4k", 4096},
        {"4K", 4096},
        {"64m", (size_t)64 << 20},
        {"3g", (size_t)3 << 30},
        {"2T", (size_t)2 << 40},
        {"18446744073709551615", SIZE_MAX},
        {"16777215t", (size_t)16777215 << 40},
    };
    static const char *const bad[] = {
        "",    "k",   "-1",    " 1",   "+1",        "1 k",
        "1kb", "1kk", "1.5m",  "0x10", "16777216t", "18446744073709551616",
        "1p",  "1+",  "1\x0b", NULL};
    size_t bytes = 7;

    (void)state;
    for (const char *const *value = bad; *value != NULL; value++)
        assert_false(rueda_parse_size(*value, &bytes));
    assert_int_equal(bytes, 7);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(rueda_parse_size(cases[i].value, &bytes));
        assert_int_equal(bytes, cases[i].bytes);
    }
}

/* ---- Horovod's names ----------------------------------------------------- */

static void numbers_are_taken_from_horovods_variables(void **state)
{
    static const char *const bad[] = {"-1", "many", NULL};

    (void)state;
    assert_int_equal(good("HOROVOD_FUSION_THRESHOLD", "0").fusion_bytes, 0);
    assert_int_equal(good("HOROVOD_FUSION_THRESHOLD", "67108864").fusion_bytes,
                     64 << 20);
    assert_int_equal(good("HOROVOD_CACHE_CAPACITY", "0").cache_capacity, 0);
    assert_int_equal(
        good("HOROVOD_STALL_CHECK_TIME_SECONDS", "5").stall_warn_ms, 5000);
    assert_int_equal(
        good("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "90").stall_end_ms, 90000);
    assert_int_equal(good("HOROVOD_GLOO_TIMEOUT_SECONDS", "7").start_timeout_ms,
                     7000);
    assert_string_equal(good("HOROVOD_GLOO_IFACE", "eth1").network, "eth1");
    setenv("RUEDA_NETWORK", "all", 1);
    assert_string_equal(good("HOROVOD_GLOO_IFACE", "eth1").network, "");
    unsetenv("RUEDA_NETWORK");
    assert_string_equal(good("HOROVOD_TIMELINE", "/t.json").timeline,
                        "/t.json");
    check_refused("HOROVOD_CACHE_CAPACITY", bad);
    check_refused("HOROVOD_FUSION_THRESHOLD", bad);
}

static void flags_are_taken_as_horovod_takes_them(void **state)
{
    static const char *const bad[] = {"yes", "2", NULL};

    (void)state;
    assert_true(good("HOROVOD_DISABLE_GROUP_FUSION", "1").groups_alone);
    assert_true(good("HOROVOD_DISABLE_GROUP_FUSION", "2").groups_alone);
    assert_false(good("HOROVOD_DISABLE_GROUP_FUSION", "yes").groups_alone);
    assert_true(good("HOROVOD_TIMELINE_MARK_CYCLES", "1").mark_cycles);
    assert_true(good("HOROVOD_DYNAMIC_PROCESS_SETS", "1").dynamic_sets);
    assert_true(good("RUEDA_DYNAMIC_SETS", "1").dynamic_sets);
    check_refused("RUEDA_DYNAMIC_SETS", bad);
    assert_true(good("RUEDA_REPAIR", "1").repair);
    check_refused("RUEDA_REPAIR", bad);
}

static void stages_are_asked_for_in_both_ways(void **state)
{
    static const char *const bad[] = {"1", "yes", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_LOG_LEVEL", "info").staged_allgather,
                     RUEDA_STAGES_AUTO);
    assert_int_equal(
        good("HOROVOD_HIERARCHICAL_ALLGATHER", "1").staged_allgather,
        RUEDA_STAGES_ALWAYS);
    assert_int_equal(
        good("HOROVOD_HIERARCHICAL_ALLREDUCE", "0").staged_allreduce,
        RUEDA_STAGES_NEVER);
    assert_int_equal(good("RUEDA_STAGED_ALLREDUCE", "always").staged_allreduce,
                     RUEDA_STAGES_ALWAYS);
    assert_int_equal(good("RUEDA_STAGED_ALLGATHER", "never").staged_allgather,
                     RUEDA_STAGES_NEVER);
    check_refused("RUEDA_STAGED_ALLGATHER", bad);
}

/* A user who wants no warning may still want an end. */
static void a_stall_ends_a_job_also_without_a_warning(void **state)
{
    struct rueda_config config;

    (void)state;
    setenv("RUEDA_STALL_WARN", "0", 1);
    config = good("RUEDA_STALL_SHUTDOWN", "5s");
    assert_int_equal(config.stall_warn_ms, 0);
    assert_int_equal(config.stall_end_ms, 5000);
    assert_false(config.is_stall_end_ignored);
}

static void log_levels_are_taken_as_horovod_names_them(void **state)
{
    static const char *const bad[] = {"loud", "4", NULL};

    (void)state;
    assert_int_equal(good("HOROVOD_LOG_LEVEL", "WARNING").log_level,
                     RUEDA_LOG_WARN);
    assert_int_equal(good("HOROVOD_LOG_LEVEL", "Fatal").log_level,
                     RUEDA_LOG_ERROR);
    assert_int_equal(good("HOROVOD_LOG_LEVEL", "trace").log_level,
                     RUEDA_LOG_TRACE);
    check_refused("HOROVOD_LOG_LEVEL", bad);
}

static void our_own_name_counts_before_horovods(void **state)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    (void)state;
    assert_int_equal(setenv("HOROVOD_CACHE_CAPACITY", "17", 1), 0);
    assert_int_equal(good("RUEDA_CACHE_CAPACITY", "18").cache_capacity, 18);
    assert_int_equal(good("RUEDA_CACHE_CAPACITY", "").cache_capacity, 17);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(rueda_setting_source(&settings[i]),
                            strcmp(settings[i].name, "RUEDA_CACHE_CAPACITY")
                                ? settings[i].name
                                : "HOROVOD_CACHE_CAPACITY");
}

static void a_limit_of_zero_means_that_no_stall_ends_a_job(void **state)
{
    (void)state;
    assert_int_equal(good("RUEDA_STALL_WARN", "60s").stall_give_up_ms, 1800000);
    assert_int_equal(good("RUEDA_STALL_GIVE_UP", "0").stall_give_up_ms, 0);
    assert_int_equal(good("RUEDA_STALL_SHUTDOWN", "0").stall_give_up_ms, 0);
    assert_int_equal(good("RUEDA_STALL_SHUTDOWN", "90s").stall_give_up_ms,
                     1800000);
    assert_int_equal(
        good("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "0").stall_give_up_ms, 0);
    assert_int_equal(
        good("HOROVOD_STALL_CHECK_TIME_SECONDS", "9").stall_give_up_ms, 0);
}

static void without_the_check_nothing_is_said_of_stalls(void **state)
{
    struct rueda_config config;

    (void)state;
    assert_int_equal(setenv("RUEDA_STALL_SHUTDOWN", "90", 1), 0);
    config = good("HOROVOD_STALL_CHECK_DISABLE", "1");
    assert_int_equal(config.stall_warn_ms, 0);
    assert_int_equal(config.stall_end_ms, 0);
    assert_false(config.is_stall_end_ignored);
    config = good("HOROVOD_STALL_CHECK_DISABLE", "0");
    assert_int_equal(config.stall_warn_ms, 60000);
    assert_int_equal(config.stall_end_ms, 90000);
}

static void a_stall_does_not_end_a_job_before_the_warning(void **state)
{
    struct rueda_config config;

    (void)state;
    config = good("RUEDA_STALL_SHUTDOWN", "59");
    assert_int_equal(config.stall_end_ms, 0);
    assert_true(config.is_stall_end_ignored);
    config = good("RUEDA_STALL_SHUTDOWN", "60");
    assert_int_equal(config.stall_end_ms, 60000);
    assert_false(config.is_stall_end_ignored);
}

/* Those of the contract: each is honoured, or named as having no effect. */
static void every_variable_of_horovod_is_known(void **state)
{
    static const char *const rest[] = {"FUSION_THRESHOLD",
                                       "CYCLE_TIME",
                                       "CACHE_CAPACITY",
                                       "TIMELINE",
                                       "TIMELINE_MARK_CYCLES",
                                       "AUTOTUNE",
                                       "AUTOTUNE_LOG",
                                       "AUTOTUNE_WARMUP_SAMPLES",
                                       "AUTOTUNE_STEPS_PER_SAMPLE",
                                       "AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
                                       "AUTOTUNE_GAUSSIAN_PROCESS_NOISE",
                                       "STALL_CHECK_DISABLE",
                                       "STALL_CHECK_TIME_SECONDS",
                                       "STALL_SHUTDOWN_TIME_SECONDS",
                                       "HIERARCHICAL_ALLREDUCE",
                                       "HIERARCHICAL_ALLGATHER",
                                       "TORUS_ALLREDUCE",
                                       "BATCH_D2D_MEMCOPIES",
                                       "NUM_NCCL_STREAMS",
                                       "CPU_OPERATIONS",
                                       "CONTROLLER",
                                       "CCL_CACHE",
                                       "GLOO_IFACE",
                                       "GLOO_TIMEOUT_SECONDS",
                                       "HOSTNAME",
                                       "ADASUM_MPI_CHUNK_SIZE",
                                       "THREAD_AFFINITY",
                                       "MPI_THREADS_DISABLE",
                                       "DISABLE_GROUP_FUSION",
                                       "DISABLE_NVTX_RANGES",
                                       "ENABLE_ASYNC_COMPLETION",
                                       "DYNAMIC_PROCESS_SETS",
                                       "ENABLE_XLA_OPS",
                                       "ELASTIC",
                                       "LOG_LEVEL",
                                       "LOG_HIDE_TIME"};
    size_t setting_count;
    const struct rueda_setting *settings = rueda_settings(&setting_count);
    size_t count;
    const struct rueda_horovod_variable *without =
        rueda_horovod_variables(&count);

    (void)state;
    for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
        char name[64];
        int found = 0;

        snprintf(name, sizeof(name), "HOROVOD_%s", rest[i]);
        for (size_t k = 0; k < count; k++)
            found += strcmp(without[k].name, name) == 0;
        for (size_t k = 0; k < setting_count; k++) {
            const struct rueda_horovod_alias *alias =
                rueda_horovod_alias(settings[k].name);

            found += alias != NULL && strcmp(alias->name, name) == 0;
        }
        assert_int_equal(found, 1);
    }
}

/* The words name the variable, the value, and those that can be. */
static void check_choice(const char *name, const char *value,
                         const char *others)
{
    struct rueda_config config;
    struct rueda_text error;

    assert_int_equal(load_with(name, value, &config, &error),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(error.chars, name));
    assert_non_null(strstr(error.chars, value));
    assert_non_null(strstr(error.chars, others));
}

static void of_some_only_known_values_are_taken(void **state)
{
    static const char *const known[][2] = {
        {"HOROVOD_CPU_OPERATIONS", "mpi"},  {"HOROVOD_CPU_OPERATIONS", "GLOO"},
        {"HOROVOD_CPU_OPERATIONS", "Ccl"},  {"HOROVOD_CONTROLLER", "MPI"},
        {"HOROVOD_CONTROLLER", "gloo"},     {"HOROVOD_CONTROLLER", ""},
        {"HOROVOD_CPU_OPERATIONS", "gLoO"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        good(known[i][0], known[i][1]);
    check_choice("HOROVOD_CPU_OPERATIONS", "nccl", "mpi, gloo or ccl");
    check_choice("HOROVOD_CONTROLLER", "ccl", "mpi or gloo");
}

/* What the log says. */
static char heard[4096];

static void hear(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s\n",
             line);
}

static void what_has_no_effect_is_told_once(void **state)
{
    struct rueda_config config;

    (void)state;
    assert_int_equal(setenv("HOROVOD_AUTOTUNE", "1", 1), 0);
    assert_int_equal(setenv("HOROVOD_AUTOTUNE_LOG", "0", 1), 0);
    assert_int_equal(setenv("HOROVOD_CYCLE_TIME", "5", 1), 0);
    assert_int_equal(setenv("HOROVOD_CPU_OPERATIONS", "ccl", 1), 0);
    assert_int_equal(setenv("HOROVOD_CONTROLLER", "GLOO", 1), 0);
    assert_int_equal(setenv("HOROVOD_HOSTNAME", "here", 1), 0);
    config = good("RUEDA_STALL_SHUTDOWN", "1");
    rueda_log_set_sink(hear, NULL);
    rueda_horovod_tell(&config);
    assert_non_null(strstr(heard, "warn: HOROVOD_AUTOTUNE has no effect: "));
    assert_null(strstr(heard, "HOROVOD_AUTOTUNE_LOG"));
    assert_non_null(strstr(heard, "warn: HOROVOD_CYCLE_TIME has no effect: "));
    assert_non_null(strstr(heard, "warn: HOROVOD_CPU_OPERATIONS has no "));
    assert_null(strstr(heard, "HOROVOD_CONTROLLER"));
    assert_null(strstr(heard, "HOROVOD_HOSTNAME"));
    assert_null(strstr(heard, "NVTX"));
    assert_non_null(strstr(heard, "RUEDA_STALL_SHUTDOWN is ignored"));

    heard[0] = '\0';
    rueda_horovod_tell(&config);
    assert_string_equal(heard, "");
    rueda_log_set_sink(NULL, NULL);
}

static void parameters_are_compared_as_often_as_one_says(void **state)
{
    static const char *const bad[] = {"on",      "0",        "every",
                                      "every:0", "every:-1", "every:x",
                                      "First",   "every: 5", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_CHECK", "").check_every,
                     RUEDA_CONFIG_CHECK_FIRST);
    assert_int_equal(good("RUEDA_CHECK", "off").check_every,
                     RUEDA_CONFIG_CHECK_OFF);
    assert_int_equal(good("RUEDA_CHECK", "every:100").check_every, 100);
    check_refused("RUEDA_CHECK", bad);
}

static void ops_of_tensorflow_wait_only_on_request(void **state)
{
    static const char *const bad[] = {"yes", "2", "blocking", NULL};

    (void)state;
    assert_false(good("RUEDA_TENSORFLOW_WAITS", "").tensorflow_waits);
    assert_false(good("RUEDA_TENSORFLOW_WAITS", "0").tensorflow_waits);
    assert_true(good("RUEDA_TENSORFLOW_WAITS", "1").tensorflow_waits);
    check_refused("RUEDA_TENSORFLOW_WAITS", bad);
}

#define CLEARED(test) cmocka_unit_test_setup(test, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEARED(parameters_are_compared_as_often_as_one_says),
        CLEARED(ops_of_tensorflow_wait_only_on_request),
        CLEARED(without_variables_every_setting_has_its_default),
        CLEARED(every_setting_has_a_name_and_help),
        CLEARED(an_empty_variable_counts_as_unset),
        CLEARED(ranks_are_whole_numbers_from_0),
        CLEARED(descriptors_are_whole_numbers_from_0),
        CLEARED(durations_are_seconds_or_say_their_unit),
        CLEARED(a_host_is_given_time_to_answer),
        CLEARED(no_time_is_too_long),
        CLEARED(log_levels_go_by_their_names),
        CLEARED(transports_go_by_their_names),
        CLEARED(encryption_goes_by_its_words),
        CLEARED(a_ring_is_a_power_of_two_from_1_mib_or_found_out),
        CLEARED(patience_is_microseconds_or_found_out),
        CLEARED(texts_are_taken_whole_or_refused),
        CLEARED(the_words_of_a_refusal_tell_what_is_taken),
        CLEARED(sizes_are_bytes_with_powers_of_1024),
        CLEARED(numbers_are_taken_from_horovods_variables),
        CLEARED(flags_are_taken_as_horovod_takes_them),
        CLEARED(log_levels_are_taken_as_horovod_names_them),
        CLEARED(our_own_name_counts_before_horovods),
        CLEARED(a_limit_of_zero_means_that_no_stall_ends_a_job),
        CLEARED(without_the_check_nothing_is_said_of_stalls),
        CLEARED(a_stall_does_not_end_a_job_before_the_warning),
        CLEARED(a_stall_ends_a_job_also_without_a_warning),
        CLEARED(stages_are_asked_for_in_both_ways),
        CLEARED(every_variable_of_horovod_is_known),
        CLEARED(of_some_only_known_values_are_taken),
        CLEARED(what_has_no_effect_is_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
