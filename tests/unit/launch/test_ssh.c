/* SPDX-License-Identifier: Apache-2.0 */
/* The command line for another host. */
#include "launch/ssh.h"
#include "unit/unit.h"

#define LONG 4000

static const struct rueda_ssh plain = {.port = NULL, .identity = NULL};

/* The last word, which the shell of the other host reads. */
static const char *command_of(const struct rueda_strings *words)
{
    assert_false(words->is_short);
    assert_true(words->count > 0);
    return words->list[words->count - 1];
}

static void a_path_is_never_cut(void **state)
{
    struct rueda_strings words = {0};
    char path[LONG + 1];
    char wanted[LONG + 3];

    (void)state;
    memset(path, 'x', LONG);
    path[LONG] = '\0';
    snprintf(wanted, sizeof(wanted), "'%s'", path);
    rueda_ssh_words(&plain, "a", path, "ruedarun", "--agent", &words);
    assert_non_null(strstr(command_of(&words), wanted));
    assert_non_null(strstr(command_of(&words), "exec ruedarun --agent'"));
    rueda_strings_fini(&words);
}

static void quotes_in_a_path_stay_in_it(void **state)
{
    struct rueda_strings words = {0};

    (void)state;
    rueda_ssh_words(&plain, "a", "/it's; rm -r", "ruedarun", "--agent", &words);
    assert_non_null(strstr(command_of(&words), " '/it'\\''s; rm -r'"));
    rueda_strings_fini(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_never_cut),
        cmocka_unit_test(quotes_in_a_path_stay_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
