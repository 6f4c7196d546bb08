/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "launch/signal_name.h"
#include "unit/unit.h"

static void signals_have_the_names_of_the_c_library(void **state)
{
    (void)state;
    for (int number = -1; number <= SIGRTMAX + 1; number++) {
        const char *name = sigabbrev_np(number);

        if (name == NULL)
            assert_null(rueda_signal_name(number));
        else
            assert_string_equal(rueda_signal_name(number), name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_have_the_names_of_the_c_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
