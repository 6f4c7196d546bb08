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

static int clear_environment(void **state)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        if (unsetenv(settings[i].name) != 0)
            return -1;
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
    assert_string_equal(config.job, "rueda");
    assert_string_equal(config.key_file, "");
    assert_int_equal(config.key_fd, -1);
    assert_int_equal(config.start_timeout_ms, 30000);
    assert_int_equal(config.log_level, RUEDA_LOG_WARN);
    assert_int_equal(config.transport, RUEDA_TRANSPORT_AUTO);
    assert_int_equal(config.encrypt, RUEDA_ENCRYPT_AUTO);
    assert_string_equal(config.algo, "");
    assert_string_equal(config.tune_file, "");
    assert_string_equal(config.kernels, "auto");
    assert_int_equal(config.keep_bytes, (size_t)16 << 20);
    assert_int_equal(config.ring_bytes, 0);
    assert_int_equal(config.spin_us, -1);
    assert_int_equal(config.yield_us, -1);
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
    assert_string_equal(good("RUEDA_JOB", "").job, "rueda");
    assert_int_equal(good("RUEDA_KEEP_BYTES", "").keep_bytes, 16 << 20);
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
    check_refused("RUEDA_ENCRYPT", bad);
}

static void a_slab_holds_1_mib_to_4_gib(void **state)
{
    static const char *const bad[] = {"1023k", "5g", "many", "-1m", NULL};

    (void)state;
    assert_int_equal(good("RUEDA_KEEP_BYTES", "1m").keep_bytes, 1 << 20);
    assert_int_equal(good("RUEDA_KEEP_BYTES", "4g").keep_bytes,
                     (size_t)4 << 30);
    check_refused("RUEDA_KEEP_BYTES", bad);
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
    longest[RUEDA_NAME_BYTES] = '\0';
    check_refused("RUEDA_JOB", too_long);
    longest[RUEDA_NAME_BYTES - 1] = '\0';
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

#define CLEARED(test) cmocka_unit_test_setup(test, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        CLEARED(a_slab_holds_1_mib_to_4_gib),
        CLEARED(a_ring_is_a_power_of_two_from_1_mib_or_found_out),
        CLEARED(patience_is_microseconds_or_found_out),
        CLEARED(texts_are_taken_whole_or_refused),
        CLEARED(the_words_of_a_refusal_tell_what_is_taken),
        CLEARED(sizes_are_bytes_with_powers_of_1024),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
