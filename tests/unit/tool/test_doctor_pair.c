/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of hosts, and the commands that look for them. */
#include <math.h>
#include <signal.h>

#include "tool/doctor/errand.h"
#include "tool/doctor/pair.h"
#include "unit/unit.h"

/* ---- The dance ---------------------------------------------------------- */

static void all_meet_all_once(void **state)
{
    (void)state;
    assert_int_equal(rueda_pair_rounds(1), 0);
    assert_int_equal(rueda_pair_partner(1, 0, 0), -1);
    assert_int_equal(rueda_pair_rounds(2), 1);
    assert_int_equal(rueda_pair_rounds(3), 3);
    for (int hosts = 2; hosts < 20; hosts++) {
        int met[20][20] = {{0}};

        for (int round = 0; round < rueda_pair_rounds(hosts); round++) {
            for (int host = 0; host < hosts; host++) {
                const int partner = rueda_pair_partner(hosts, round, host);

                assert_true(partner != host && partner < hosts);
                if (partner < 0)
                    continue;
                assert_int_equal(rueda_pair_partner(hosts, round, partner),
                                 host);
                met[host][partner]++;
            }
        }
        for (int a = 0; a < hosts; a++)
            for (int b = 0; b < hosts; b++)
                assert_int_equal(met[a][b], a != b);
    }
}

/* ---- What they measure -------------------------------------------------- */

static void take(struct rueda_pairs *pairs, int rank, int peer, double latency,
                 double bandwidth, int64_t delta_ns)
{
    const struct rueda_half half = {"tcp",   rank,      peer,
                                    latency, bandwidth, delta_ns};

    assert_true(rueda_pairs_take(pairs, &half, 8));
}

static void both_ends_make_a_pair(void **state)
{
    struct rueda_pairs pairs = {.list = NULL};
    const struct rueda_pair *pair;

    (void)state;
    /* A message takes 1 ms, and the clock of host 1 is 5 ms ahead. */
    take(&pairs, 0, 2, 0.001, 2e9, -4000000);
    assert_false(rueda_pairs_find(&pairs, 0, 1, "tcp")->has_offset);
    take(&pairs, 2, 0, 0.002, 1e9, 6000000);
    assert_int_equal(pairs.count, 1);
    pair = rueda_pairs_find(&pairs, 0, 1, "tcp");
    assert_non_null(pair);
    assert_null(rueda_pairs_find(&pairs, 0, 1, "shm"));
    assert_null(rueda_pairs_find(&pairs, 1, 0, "tcp"));
    assert_true(pair->latency == 0.002 && pair->bandwidth == 1e9);
    assert_true(pair->has_offset);
    assert_true(fabs(pair->offset - 0.005) < 1e-9);
    assert_true(fabs(pair->error - 0.001) < 1e-9);
    rueda_pairs_fini(&pairs);
}

static void whoever_is_nobody_is_not_heard(void **state)
{
    const struct rueda_half halves[] = {{"tcp", 0, 0, 1, 1, 0},
                                        {"tcp", 0, 16, 1, 1, 0},
                                        {"tcp", 16, 0, 1, 1, 0}};
    const struct rueda_half good = {"tcp", 0, 2, 1, 1, 0};
    const struct rueda_half back = {"tcp", 2, 0, 1, 1, 0};
    struct rueda_pairs pairs = {.list = NULL};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_false(rueda_pairs_take(&pairs, &halves[i], 8));
    assert_int_equal(pairs.count, 0);
    assert_true(rueda_pairs_take(&pairs, &good, 8));
    assert_true(rueda_pairs_take(&pairs, &back, 8));
    assert_false(rueda_pairs_take(&pairs, &back, 8));
    rueda_pairs_fini(&pairs);
}

static rueda_finding_verdict verdict(const struct rueda_pairs *pairs, int a,
                                     int b)
{
    return rueda_pairs_find(pairs, a, b, "tcp")->finding.verdict;
}

static void who_differs_much_from_the_others_is_named(void **state)
{
    struct rueda_pairs pairs = {.list = NULL};

    (void)state;
    take(&pairs, 4, 6, 50e-6, 2.0e9, 0);
    take(&pairs, 0, 2, 50e-6, 2.0e9, 0);
    take(&pairs, 0, 4, 50e-6, 0.5e9, 0);
    take(&pairs, 0, 6, 900e-6, 2.0e9, 0);
    take(&pairs, 2, 4, 50e-6, 2.0e9, 0);
    take(&pairs, 2, 6, 50e-6, 0, 0);
    take(&pairs, 0, 1, 50e-6, 0.01e9, 0); /* in a host */
    rueda_pairs_judge(&pairs);
    assert_int_equal(verdict(&pairs, 0, 0), RUEDA_FINDING_OK);
    assert_int_equal(verdict(&pairs, 0, 1), RUEDA_FINDING_OK);
    assert_int_equal(verdict(&pairs, 0, 2), RUEDA_FINDING_WARN);
    assert_int_equal(verdict(&pairs, 0, 3), RUEDA_FINDING_WARN);
    assert_int_equal(verdict(&pairs, 1, 3), RUEDA_FINDING_BAD);
    assert_int_equal(verdict(&pairs, 2, 3), RUEDA_FINDING_OK);
    assert_int_equal(pairs.list[0].b, 0);
    assert_int_equal(pairs.list[6].b, 3);
    rueda_pairs_fini(&pairs);
}

static void a_slow_network_is_named(void **state)
{
    struct rueda_pairs pairs = {.list = NULL};

    (void)state;
    take(&pairs, 0, 2, 50e-6, 0.012e9, 0);
    rueda_pairs_judge(&pairs);
    assert_int_equal(verdict(&pairs, 0, 1), RUEDA_FINDING_WARN);
    assert_non_null(strstr(pairs.list[0].finding.fix, "gigabit"));
    rueda_pairs_fini(&pairs);
}

static void a_pair_that_cannot_meet_says_why(void **state)
{
    struct rueda_pairs pairs = {.list = NULL};

    (void)state;
    take(&pairs, 0, 4, 50e-6, 2.0e9, 0);
    take(&pairs, 2, 4, 50e-6, 2.0e9, 0);
    take(&pairs, 0, 6, 50e-6, 2.0e9, 0);
    rueda_pairs_fail(&pairs, 0, 1, "cannot reach rank 2");
    rueda_pairs_judge(&pairs);
    assert_int_equal(pairs.count, 4);
    assert_true(isnan(pairs.list[0].latency));
    assert_int_equal(pairs.list[0].finding.verdict, RUEDA_FINDING_BAD);
    assert_string_equal(pairs.list[0].finding.value, "cannot reach rank 2");
    assert_non_null(strstr(pairs.list[0].finding.fix, "let TCP pass"));
    assert_int_equal(verdict(&pairs, 0, 2), RUEDA_FINDING_OK);
    rueda_pairs_fini(&pairs);
}

/* ---- Errands ------------------------------------------------------------ */

static void ask_shell(struct rueda_errand *errand, const char *script)
{
    *errand = (struct rueda_errand){.code = 0};
    rueda_strings_add(&errand->command, "/bin/sh");
    rueda_strings_add(&errand->command, "-c");
    rueda_strings_add(&errand->command, script);
}

static void errands_bring_what_was_said(void **state)
{
    struct rueda_errand errands[3];
    char line[64];

    (void)state;
    ask_shell(&errands[0], "echo one; echo two; echo oh no >&2; exit 7");
    ask_shell(&errands[1], "kill -9 $$");
    /* What it leaves behind is not waited for. */
    ask_shell(&errands[2], "sleep 30 & echo $!");
    rueda_errands_run(errands, 3, 60);
    assert_string_equal(rueda_errand_text(&errands[0].out), "one\ntwo\n");
    rueda_errand_last_line(&errands[0].err, line, sizeof(line));
    assert_string_equal(line, "oh no");
    assert_int_equal(errands[0].code, 7);
    assert_int_equal(errands[1].code, 128 + SIGKILL);
    rueda_errand_last_line(&errands[1].out, line, sizeof(line));
    assert_string_equal(line, "");
    assert_int_equal(errands[2].code, 0);
    kill((pid_t)strtol(rueda_errand_text(&errands[2].out), NULL, 10), SIGKILL);
    for (int i = 0; i < 3; i++) {
        assert_false(errands[i].is_late);
        rueda_errand_fini(&errands[i]);
    }
}

static void who_does_not_come_back_is_killed(void **state)
{
    struct rueda_errand errand;
    pid_t child;

    (void)state;
    ask_shell(&errand, "echo $$; exec sleep 600");
    rueda_errands_run(&errand, 1, 0.5);
    assert_true(errand.is_late);
    child = (pid_t)strtol(rueda_errand_text(&errand.out), NULL, 10);
    assert_true(child > 0);
    assert_int_equal(kill(child, 0), -1);
    rueda_errand_fini(&errand);
}

static void a_command_that_is_not_there_is_told(void **state)
{
    struct rueda_errand errand = {.code = 0};
    char line[128];

    (void)state;
    rueda_strings_add(&errand.command, "no-such-command");
    rueda_errands_run(&errand, 1, 10);
    assert_int_equal(errand.code, 127);
    rueda_errand_last_line(&errand.err, line, sizeof(line));
    assert_non_null(strstr(line, "no-such-command"));
    rueda_errand_fini(&errand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet_all_once),
        cmocka_unit_test(both_ends_make_a_pair),
        cmocka_unit_test(whoever_is_nobody_is_not_heard),
        cmocka_unit_test(who_differs_much_from_the_others_is_named),
        cmocka_unit_test(a_slow_network_is_named),
        cmocka_unit_test(a_pair_that_cannot_meet_says_why),
        cmocka_unit_test(errands_bring_what_was_said),
        cmocka_unit_test(who_does_not_come_back_is_killed),
        cmocka_unit_test(a_command_that_is_not_there_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
