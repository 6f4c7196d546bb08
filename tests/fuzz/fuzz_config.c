/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the environment: one of them with any value. It is read alone,
 * with no memory behind its field, and then as one of all; both must come to
 * the same end.
 */
#include "base/config.h"
#include "fuzz/fuzz.h"

/* What lies between this field and the next one. */
static size_t room_of(const struct rueda_setting *settings, size_t count,
                      size_t which)
{
    size_t next = sizeof(struct rueda_config);

    for (size_t i = 0; i < count; i++)
        if (settings[i].offset > settings[which].offset &&
            settings[i].offset < next)
            next = settings[i].offset;
    return next - settings[which].offset;
}

static bool parse_alone(const struct rueda_setting *setting, size_t room,
                        const char *value)
{
    void *field = calloc(1, room);
    bool is_good;

    must(field != NULL);
    is_good = setting->parse(value, field);
    free(field);
    return is_good;
}

static void check_ranges(const struct rueda_config *config)
{
    must(config->rank >= -1 && config->segment_fd >= -1);
    must(config->start_timeout_ms >= 0);
    must(config->start_timeout_ms <= INT64_MAX / 1000000);
    must(config->spin_us >= -1 && config->yield_us >= -1);
    must(config->log_level <= RUEDA_LOG_TRACE);
    must((config->ring_bytes & (config->ring_bytes - 1)) == 0);
}

/* The choice is which setting. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);
    const size_t which = fuzz_choice(&input) % count;
    char *value = fuzz_text(input.data, input.size);
    char *variable;
    struct rueda_text error = {{0}};
    struct rueda_config config;
    bool is_good;

    for (size_t i = 0; i < count; i++)
        unsetenv(settings[i].name);
    /* Not setenv(), which keeps a copy of every value for ever. */
    must(asprintf(&variable, "%s=%s", settings[which].name, value) > 0);
    must(putenv(variable) == 0);
    is_good = parse_alone(&settings[which], room_of(settings, count, which),
                          rueda_setting_value(&settings[which]));
    must((rueda_config_load(&config, &error) == RUEDA_OK) == is_good);
    if (is_good)
        check_ranges(&config);
    else
        must(strstr(error.chars, settings[which].name) == error.chars);
    unsetenv(settings[which].name);
    free(variable);
    free(value);
    return 0;
}
