/* SPDX-License-Identifier: Apache-2.0 */
/* The same traceback of several ranks is shown once, and all is shown else. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "launch/repeats.h"
#include "unit/unit.h"

#define HEAD  "Traceback (most recent call last):\n"
#define FRAME "  File \"a.py\", line 1, in f\n    f()\n"

struct seen {
    struct rueda_repeats *repeats;
    char shown[4096];
    char said[1024];
};

static void show(void *arg, int rank, const char *bytes, size_t len,
                 bool is_begin)
{
    struct seen *seen = arg;
    const size_t at = strlen(seen->shown);

    if (is_begin)
        snprintf(seen->shown + at, sizeof(seen->shown) - at, "%d:%.*s", rank,
                 (int)len, bytes);
    else
        snprintf(seen->shown + at, sizeof(seen->shown) - at, "%.*s", (int)len,
                 bytes);
}

static void say(void *arg, const char *words)
{
    struct seen *seen = arg;
    const size_t at = strlen(seen->said);

    snprintf(seen->said + at, sizeof(seen->said) - at, "%s\n", words);
}

static void feed(struct seen *seen, int rank, const char *text)
{
    while (*text != '\0') {
        const size_t len = strcspn(text, "\n") + 1;

        rueda_repeats_line(seen->repeats, rank, text, len, true, 0);
        text += len;
    }
}

static int set_up(void **state)
{
    static struct seen seen;

    memset(&seen, 0, sizeof(seen));
    seen.repeats = rueda_repeats_new(show, &seen);
    *state = &seen;
    return seen.repeats == NULL;
}

static int tear_down(void **state)
{
    struct seen *seen = *state;

    rueda_repeats_free(seen->repeats);
    return 0;
}

static void the_same_exception_is_shown_once_with_its_ranks(void **state)
{
    struct seen *seen = *state;

    for (int rank = 0; rank < 6; rank++)
        if (rank != 4)
            feed(seen, rank, "before\n" HEAD FRAME "KeyError: 3\n");
    assert_string_equal(seen->shown,
                        "0:before\n0:" HEAD "0:  File \"a.py\", line 1, in f\n"
                        "0:    f()\n0:KeyError: 3\n1:before\n2:before\n"
                        "3:before\n5:before\n");
    rueda_repeats_check(seen->repeats, INT64_MAX, say, seen);
    assert_string_equal(seen->said,
                        "ranks 1-3, 5 raised the same as rank 0: KeyError: "
                        "3\n");
    rueda_repeats_check(seen->repeats, INT64_MAX, say, seen);
    assert_int_equal(strlen(seen->said), 52);
}

static void
what_a_rank_adds_to_the_failure_of_another_goes_with_it(void **state)
{
    struct seen *seen = *state;

    feed(seen, 0, HEAD FRAME "Failed: no label\n while rank 0 was in a sum\n");
    feed(seen, 1, HEAD FRAME "Failed: no label\n while rank 1 was in a sum\n");
    feed(seen, 1, " of the user\n");
    assert_non_null(strstr(seen->shown, "0: while rank 0 was"));
    assert_null(strstr(seen->shown, "while rank 1 was"));
    assert_non_null(strstr(seen->shown, "1: of the user"));
}

static void other_exceptions_are_shown(void **state)
{
    struct seen *seen = *state;

    feed(seen, 0, HEAD FRAME "KeyError: 3\n");
    feed(seen, 1, HEAD FRAME "KeyError: 4\n");
    assert_non_null(strstr(seen->shown, "1:KeyError: 4\n"));
    /* A rank may print its own again, as in a loop. */
    feed(seen, 0, HEAD FRAME "KeyError: 3\n");
    assert_non_null(
        strstr(strstr(seen->shown, "KeyError: 4"), "0:KeyError: 3"));
}

static void the_words_between_two_of_a_chain_go_with_them(void **state)
{
    static const char chain[] =
        HEAD FRAME "KeyError: 3\n\nDuring handling of the above exception, "
                   "another exception occurred:\n\n" HEAD FRAME "OSError: 4\n";
    struct seen *seen = *state;
    size_t len;

    feed(seen, 0, chain);
    len = strlen(seen->shown);
    feed(seen, 1, chain);
    assert_int_equal(strlen(seen->shown), len);
}

static void what_is_not_finished_is_shown_in_the_end(void **state)
{
    struct seen *seen = *state;

    feed(seen, 0, HEAD FRAME);
    assert_string_equal(seen->shown, "");
    rueda_repeats_end(seen->repeats, 0);
    assert_non_null(strstr(seen->shown, "0:    f()\n"));
    feed(seen, 1, HEAD FRAME);
    rueda_repeats_check(seen->repeats, (int64_t)3000000000, say, seen);
    assert_non_null(strstr(seen->shown, "1:    f()\n"));
}

static void the_beginning_of_a_known_one_is_not_shown_in_the_end(void **state)
{
    struct seen *seen = *state;
    size_t len;

    feed(seen, 0, HEAD FRAME "KeyError: 3\n");
    len = strlen(seen->shown);
    feed(seen, 1, HEAD);
    rueda_repeats_end(seen->repeats, 1);
    feed(seen, 2, HEAD FRAME);
    rueda_repeats_end(seen->repeats, 2);
    assert_int_equal(strlen(seen->shown), len);
    feed(seen, 4, HEAD FRAME);
    rueda_repeats_check(seen->repeats, INT64_MAX, say, seen);
    assert_int_equal(strlen(seen->shown), len);
    feed(seen, 3, HEAD "    g()\n");
    rueda_repeats_end(seen->repeats, 3);
    assert_non_null(strstr(seen->shown, "3:    g()\n"));
}

static void a_report_of_a_known_exception_is_one_line(void **state)
{
    struct seen *seen = *state;

    feed(seen, 1, HEAD FRAME "KeyError: 3\n");
    seen->shown[0] = '\0';
    feed(seen, 0,
         "rueda[rank 0] error: rank 1 failed: " HEAD FRAME
         "KeyError: 3\n while rank 0 was in f\n");
    assert_string_equal(seen->shown,
                        "0:rueda[rank 0] error: rank 1 failed: KeyError: 3\n"
                        "0: while rank 0 was in f\n");
}

static void a_rank_shows_what_others_have_reported(void **state)
{
    struct seen *seen = *state;

    feed(seen, 0, "rank 1 failed: " HEAD FRAME "KeyError: 3\n");
    feed(seen, 1, HEAD FRAME "KeyError: 3\n");
    assert_non_null(strstr(seen->shown, "1:KeyError: 3\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_same_exception_is_shown_once_with_its_ranks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_a_rank_adds_to_the_failure_of_another_goes_with_it, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(other_exceptions_are_shown, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            the_words_between_two_of_a_chain_go_with_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_not_finished_is_shown_in_the_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_beginning_of_a_known_one_is_not_shown_in_the_end, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_report_of_a_known_exception_is_one_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rank_shows_what_others_have_reported,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
