/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program `ruedarun`, with ranks that are shell scripts: what it shows, how
 * it ends, other hosts by a stand-in for ssh, and agents that join. More of it
 * is in tests/python/test_ruedarun*.py.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/program.h"
#include "unit/unit.h"

#define RUEDARUN   RUEDA_TEST_BIN_DIR "/ruedarun"
#define HOROVODRUN RUEDA_TEST_BIN_DIR "/horovodrun"

static struct program launcher;
static struct program agent;

/* Start ruedarun with these words, in which @ is the folder of the test. */
static void start(struct program *program, const struct folder *folder,
                  const char *words)
{
    char line[1024] = "";
    char path[256];
    const char *settings[] = {path, "OMP_NUM_THREADS=1", NULL};

    snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", folder->name);
    for (; *words != '\0'; words++) {
        const size_t len = strlen(line);

        if (*words == '@')
            snprintf(line + len, sizeof(line) - len, "%s", folder->name);
        else
            snprintf(line + len, sizeof(line) - len, "%c", *words);
    }
    program_start(program, RUEDARUN, line, settings);
}

static int run(const struct folder *folder, const char *words)
{
    start(&launcher, folder, words);
    return program_end(&launcher);
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void write_script(struct folder *folder, const char *name,
                         const char *text)
{
    const char *path = folder_write(folder, name, text);

    assert_int_equal(chmod(path, 0755), 0);
}

/* ---- On this host ------------------------------------------------------- */

static void ranks_are_started_and_shown(void **state)
{
    struct folder *folder = *state;

    write_script(folder, "rank",
                 "#!/bin/sh\n"
                 "echo rank $RUEDA_RANK of $HOROVOD_SIZE\n"
                 "printf unfinished >&2\n");
    assert_int_equal(run(folder, "-np 3 -prefix-timestamp --verbose rank"), 0);
    has(launcher.out, "[0]<stdout>:rank 0 of 3\n");
    has(launcher.out, "[2]<stdout>:rank 2 of 3\n");
    has(launcher.err, "[1]<stderr>:unfinished");
    has(launcher.err, "rank 1 is process ");
    has(launcher.err, ": rank\n"); /* the command */
}

static void the_first_failure_decides(void **state)
{
    struct folder *folder = *state;

    write_script(folder, "rank",
                 "#!/bin/sh\n"
                 "[ $RUEDA_RANK = 1 ] || exec sleep 600\n"
                 "echo Oh no >&2\n"
                 "exit 7\n");
    assert_int_equal(run(folder, "-np 3 --bind core rank"), 7);
    has(launcher.err, "rank 1 on localhost ended with exit code 7");
    has(launcher.err, "    Oh no\n");
}

static void who_is_deaf_is_killed(void **state)
{
    struct folder *folder = *state;

    write_script(folder, "rank",
                 "#!/bin/sh\n"
                 "trap 'echo heard' TERM\n"
                 "trap '' INT\n"
                 "echo up\n"
                 "while :; do sleep 1; done\n");
    start(&launcher, folder, "-np 2 --grace 0.2 rank");
    assert_true(program_await(&launcher, "[0]<stdout>:up"));
    assert_true(program_await(&launcher, "[1]<stdout>:up"));
    assert_int_equal(kill(launcher.pid, SIGINT), 0);
    assert_int_equal(program_end(&launcher), 128 + SIGINT);
    has(launcher.err, "SIGINT: the job is ended");

    start(&launcher, folder, "-np 2 --grace 600 rank");
    assert_true(program_await(&launcher, "[0]<stdout>:up"));
    assert_true(program_await(&launcher, "[1]<stdout>:up"));
    assert_int_equal(kill(launcher.pid, SIGTERM), 0);
    assert_true(program_await(&launcher, "<stdout>:heard"));
    assert_int_equal(kill(launcher.pid, SIGTERM), 0);
    assert_int_equal(program_end(&launcher), 128 + SIGTERM);
}

static void options_come_from_a_file_too(void **state)
{
    struct folder *folder = *state;

    folder_write(folder, "hosts", "localhost slots=2 # this one\n");
    folder_write(folder, "c.yaml", "params: {cycle_time_ms: 7}\nodd: 1\n");
    write_script(folder, "rank", "#!/bin/sh\necho $HOROVOD_CYCLE_TIME\n");
    assert_int_equal(run(folder,
                         "-np 2 --tf-config --hostfile @/hosts --config-file "
                         "@/c.yaml rank"),
                     0);
    has(launcher.out, "[1]<stdout>:7\n");
    has(launcher.err, "c.yaml:2: 'odd' is unknown and left out");
}

static void mistakes_end_with_2(void **state)
{
    static const char *const lines[][2] = {
        {"-np 2", "there is no command"},
        {"-np 2 -H localhost:1 true", "2 ranks are more than the 1 slots"},
        {"-np 1 no-such-command", "no such program on the PATH"},
        {"-np 1 --output-filename /proc/x true", "/proc/x"},
        {"-np 1 --help grup", "--help has no group 'grup'"},
        {"agent --join x", "are needed"},
        {"agent --jion x", "did you mean '--join'?"},
        {"agent --join", "needs a value"},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_int_equal(run(*state, lines[i][0]), 2);
        has(launcher.err, lines[i][1]);
    }
}

static void it_tells_about_itself(void **state)
{
    assert_int_equal(run(*state, "--help all"), 0);
    has(launcher.out, "usage: ruedarun -np N");
    assert_int_equal(run(*state, "--check-build"), 0);
    has(launcher.out, "[X] Gloo");
    assert_int_equal(run(*state, "--version"), 0);
    has(launcher.out, "ruedarun ");
    assert_int_equal(run(*state, "agent --help"), 0);
    has(launcher.out, "usage: ruedarun agent");
    program_start(&launcher, HOROVODRUN, "-np 1 false", NULL);
    assert_int_equal(program_end(&launcher), 1);
    has(launcher.err, "Process 0 exit with status code 1.\n");
}

/* ---- By mpirun ---------------------------------------------------------- */

static void mpirun_may_take_our_place(void **state)
{
    struct folder *folder = *state;

    write_script(folder, "mpirun",
                 "#!/bin/sh\n"
                 "[ $1 = --version ] && exec echo mpirun, Open MPI 9\n"
                 "echo $HOROVOD_CONTROLLER \"$@\"\n"
                 "exit 5\n");
    assert_int_equal(run(folder, "--mpi -np 2 -H a:2 --verbose c -np 3"), 5);
    has(launcher.out, "mpi --allow-run-as-root --tag-output -np 2 -H a:2 ");
    has(launcher.out, " c -np 3\n");
    has(launcher.err, "ruedarun: mpirun --allow-run-as-root");
    assert_int_equal(run(folder, "--mpi -np 3 -H a:2 c"), 2);
    has(launcher.err, "3 ranks are more than the 2 slots");
    write_script(folder, "mpirun", "#!/bin/sh\necho Some MPI\n");
    assert_int_equal(run(folder, "--mpi -np 2 c"), 2);
    has(launcher.err, "those of Open MPI, Spectrum MPI, MPICH and Intel MPI");
}

/* ---- Other hosts -------------------------------------------------------- */

/* Hosts of a network for documentation: none of them is this one. */
static const char ssh[] =
    "#!/bin/sh\n"
    "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
    "case $1 in\n"
    "198.51.100.9) echo No route to host >&2; exit 255;;\n"
    "198.51.100.8) exec sleep 600;;\n"
    "esac\n"
    "shift\n"
    "echo Welcome\n"
    "eval \"$*\"\n";

static void other_hosts_are_reached_by_ssh(void **state)
{
    struct folder *folder = *state;

    write_script(folder, "ssh", ssh);
    write_script(folder, "rank",
                 "#!/bin/sh\n"
                 "echo $HOROVOD_HOSTNAME $RUEDA_CROSS_RANK\n"
                 "exit $((5 * (RUEDA_RANK == 2)))\n");
    assert_int_equal(run(folder, "-np 2 -H 198.51.100.1:1,198.51.100.2:1 "
                                 "--verbose -p 22 -i k "
                                 "--network-interfaces lo rank"),
                     0);
    has(launcher.out, "[0]<stdout>:198.51.100.1 0\n");
    has(launcher.out, "[1]<stdout>:198.51.100.2 1\n");
    assert_int_equal(run(folder, "-np 3 -H localhost:1,198.51.100.2:2 "
                                 "--network-interfaces lo --output-filename "
                                 "@/files rank"),
                     5);
    has(launcher.err, "rank 2 on 198.51.100.2 ended with exit code 5");
    for (int i = 0; i < 3; i++) {
        char name[32];

        for (int k = 0; k < 3; k++) {
            static const char *const names[] = {"/stdout", "/stderr", ""};

            snprintf(name, sizeof(name), "/files/rank.%d%s", i, names[k]);
            snprintf(launcher.out, sizeof(launcher.out), "%s%s", folder->name,
                     name);
            assert_int_equal(remove(launcher.out), 0);
        }
    }
    snprintf(launcher.out, sizeof(launcher.out), "%s/files", folder->name);
    assert_int_equal(remove(launcher.out), 0);
}

static void hosts_that_fail_are_named(void **state)
{
    struct folder *folder = *state;

    write_script(folder, "ssh", ssh);
    assert_int_equal(run(folder,
                         "-np 3 -H localhost:1,198.51.100.9:1,198.51.100.8:1 "
                         "--start-timeout 1 --network-interfaces lo "
                         "true"),
                     1);
    has(launcher.err, "198.51.100.9: No route to host\n");
    has(launcher.err, "198.51.100.8: did not come within 1 seconds");
}

static void agents_may_join(void **state)
{
    struct folder *folder = *state;
    char port[16];
    char line[256];

    snprintf(port, sizeof(port), "%d", 10000 + getpid() % 20000);
    folder_write(folder, "key",
                 "00112233445566778899aabbccddeeff"
                 "00112233445566778899aabbccddeeff\n");
    folder_write(folder, "other",
                 "ff112233445566778899aabbccddeeff"
                 "00112233445566778899aabbccddeeff\n");
    assert_int_equal(chmod(folder->files[0], 0600), 0);
    assert_int_equal(chmod(folder->files[1], 0600), 0);
    snprintf(line, sizeof(line),
             "-np 1 -H 198.51.100.1:1 --network-interfaces lo --listen "
             "127.0.0.1:%s --key-file @/key echo here",
             port);
    start(&launcher, folder, line);
    snprintf(line, sizeof(line), "agent --join 127.0.0.1:%s --key-file @/other",
             port);
    start(&agent, folder, line);
    assert_int_equal(program_end(&agent), 1);
    has(agent.err, "do not agree");
    snprintf(line, sizeof(line),
             "agent --join 127.0.0.1:%s --key-file @/key --host x", port);
    start(&agent, folder, line);
    assert_int_equal(program_end(&agent), 1);
    has(agent.err, "the launcher waits for no host 'x'");
    snprintf(line, sizeof(line),
             "agent --join 127.0.0.1:%s --key-file @/key --host=198.51.100.1 "
             "--start-timeout 20",
             port);
    start(&agent, folder, line);
    assert_int_equal(program_end(&launcher), 0);
    assert_int_equal(program_end(&agent), 0);
    has(launcher.out, "[0]<stdout>:here\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ranks_are_started_and_shown,
                                        folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(the_first_failure_decides, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(who_is_deaf_is_killed, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(options_come_from_a_file_too,
                                        folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(mistakes_end_with_2, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(it_tells_about_itself, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(mpirun_may_take_our_place, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(other_hosts_are_reached_by_ssh,
                                        folder_make, folder_drop),
        cmocka_unit_test_setup_teardown(hosts_that_fail_are_named, folder_make,
                                        folder_drop),
        cmocka_unit_test_setup_teardown(agents_may_join, folder_make,
                                        folder_drop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
