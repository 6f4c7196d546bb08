/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "auth/refusals.h"
#include "base/log.h"
#include "unit/unit.h"

#define SECOND ((int64_t)1000000000)

struct heard {
    int lines;
    char last[512];
};

static void hear(void *arg, rueda_log_level level, const char *line)
{
    struct heard *heard = arg;

    assert_int_equal(level, RUEDA_LOG_WARN);
    heard->lines++;
    snprintf(heard->last, sizeof(heard->last), "%s", line);
}

static void a_thousand_callers_are_two_lines(void **state)
{
    struct rueda_refusals refusals = {0};
    struct rueda_text error = {{0}};
    struct rueda_address from;
    struct heard heard = {0};

    (void)state;
    rueda_log_set_sink(hear, &heard);
    assert_int_equal(rueda_address_find("10.1.2.3:77", &from, 1, &error), 1);
    for (int i = 0; i < 1000; i++)
        rueda_refuse(&refusals, RUEDA_REFUSED_UNPROVEN, "the store", &from,
                     "no key", SECOND + i);
    assert_int_equal(heard.lines, 1);
    assert_non_null(strstr(
        heard.last, "the store refused a caller from 10.1.2.3:77: no key"));
    rueda_refusals_sum(&refusals, "the store", 5 * SECOND);
    assert_int_equal(heard.lines, 1);
    rueda_refusals_sum(&refusals, "the store", 12 * SECOND);
    assert_int_equal(heard.lines, 2);
    assert_non_null(strstr(heard.last, "refused 999 more callers"));
    /* The next while begins with a caller. */
    rueda_refusals_sum(&refusals, "the store", INT64_MAX);
    assert_int_equal(heard.lines, 2);
    rueda_refuse(&refusals, RUEDA_REFUSED_UNPROVEN, "the store", NULL, "no key",
                 13 * SECOND);
    assert_int_equal(heard.lines, 3);
    assert_non_null(strstr(heard.last, "from an unknown address"));
    rueda_log_set_sink(NULL, NULL);
}

static void each_kind_is_named(void **state)
{
    struct rueda_refusals refusals = {0};
    struct heard heard = {0};

    (void)state;
    rueda_log_set_sink(hear, &heard);
    for (int kind = 0; kind < RUEDA_REFUSAL_KINDS; kind++)
        for (int i = 0; i < 3; i++)
            rueda_refuse(&refusals, (rueda_refusal)kind, "rank 3", NULL, "so",
                         SECOND);
    assert_int_equal(heard.lines, RUEDA_REFUSAL_KINDS);
    rueda_refusals_sum(&refusals, "rank 3", INT64_MAX);
    assert_int_equal(heard.lines, 2 * RUEDA_REFUSAL_KINDS);
    rueda_log_set_sink(NULL, NULL);
}

static void a_failed_handshake_has_a_kind(void **state)
{
    (void)state;
    assert_int_equal(rueda_refusal_of(RUEDA_ERR_AUTH), RUEDA_REFUSED_UNPROVEN);
    assert_int_equal(rueda_refusal_of(RUEDA_ERR_VERSION),
                     RUEDA_REFUSED_VERSION);
    assert_int_equal(rueda_refusal_of(RUEDA_ERR_PEER_LOST), RUEDA_REFUSED_LEFT);
    assert_int_equal(rueda_refusal_of(RUEDA_ERR_IO), RUEDA_REFUSED_LEFT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_callers_are_two_lines),
        cmocka_unit_test(each_kind_is_named),
        cmocka_unit_test(a_failed_handshake_has_a_kind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
