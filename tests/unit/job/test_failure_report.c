/* SPDX-License-Identifier: Apache-2.0 */
/* What the store says of a failure on another host. */
#include <string.h>

#include "job/failure_report.h"
#include "job/job.h"
#include "unit/unit.h"

static void words_of_the_store_move_no_cursor(void **state)
{
    static const char words[] = "rank 3 \033]0;owned\007 died\n";
    const struct rueda_store_reply event = {.kind = RUEDA_STORE_EVENT_SET,
                                            .value =
                                                (const unsigned char *)words,
                                            .value_bytes = strlen(words)};
    struct rueda_job job = {.failure = {{0}}};

    (void)state;
    rueda_failure_event(&job, &event);
    assert_string_equal(job.failure.chars, "rank 3  ]0;owned  died ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_the_store_move_no_cursor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
