/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks whose launcher keeps the store and leaves the key open.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/store/keeper.h"
#include "support/coll_check.h"
#include "support/processes.h"

#define RANKS 3
#define LIVES 20

/* A process of its own: ranks are not forked from one that has threads. */
struct launcher {
    pid_t pid;
    int ending; /* closed, it ends */
    int key_fd;
};

/* A file without a name that holds the key's digits. */
static int leave_open(const struct rueda_key *key)
{
    int fd = memfd_create("key", 0);

    for (int i = 0; i < RUEDA_KEY_BYTES && fd >= 0; i++)
        if (dprintf(fd, "%02x", key->bytes[i]) != 2)
            return -1;
    return fd;
}

/* Keep the store, say where, and end when the other end of ending closes. */
static int launch(const struct rueda_key *key, int telling, int ending)
{
    struct rueda_text error = {{0}};
    struct rueda_keeper *keeper;
    struct rueda_address at;
    struct rueda_keeper_args args = {
        .size = RANKS, .key = key, .addresses = &at, .address_count = 1};
    char text[RUEDA_ADDRESS_TEXT] = "";
    int count;
    int failed;

    if (rueda_address_find("127.0.0.1:0", &at, 1, &error) != 1 ||
        rueda_keeper_open(&args, &keeper, &error) != RUEDA_OK)
        return 1;
    rueda_address_text(rueda_keeper_addresses(keeper, &count), text,
                       sizeof(text));
    failed = write(telling, text, sizeof(text)) != sizeof(text);
    while (!failed && read(ending, text, 1) > 0)
        continue;
    rueda_keeper_close(keeper);
    return failed;
}

static int launcher_open(void **state)
{
    struct launcher *launcher = calloc(1, sizeof(*launcher));
    struct rueda_key key;
    char text[RUEDA_ADDRESS_TEXT];
    int telling[2];
    int ending[2];

    *state = launcher;
    if (launcher == NULL || rueda_key_create(&key) != RUEDA_OK ||
        pipe2(telling, O_CLOEXEC) != 0 || pipe2(ending, O_CLOEXEC) != 0)
        return -1;
    launcher->key_fd = leave_open(&key);
    launcher->pid = fork();
    if (launcher->pid == 0) {
        close(ending[1]);
        _exit(launch(&key, telling[1], ending[0]));
    }
    close(telling[1]);
    close(ending[0]);
    launcher->ending = ending[1];
    if (launcher->pid < 0 || launcher->key_fd < 0 ||
        read(telling[0], text, sizeof(text)) != sizeof(text))
        return -1;
    close(telling[0]);
    setenv("RUEDA_STORE", text, 1);
    setenv("RUEDA_STORE_KEEPER", "launcher", 1);
    snprintf(text, sizeof(text), "%d", launcher->key_fd);
    setenv("RUEDA_KEY_FD", text, 1);
    return 0;
}

static int launcher_close(void **state)
{
    struct launcher *launcher = *state;
    int code = -1;

    unsetenv("RUEDA_STORE");
    unsetenv("RUEDA_STORE_KEEPER");
    unsetenv("RUEDA_KEY_FD");
    close(launcher->ending);
    close(launcher->key_fd);
    if (waitpid(launcher->pid, &code, 0) != launcher->pid)
        code = -1;
    free(launcher);
    return code;
}

/* Every second life without an operation, so that some are behind. */
static int live(struct test_rank *me)
{
    const struct coll_what what = {
        .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 1000};

    for (int i = 0; i < LIVES; i++) {
        struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
        int failed = 0;

        args.rank = me->rank;
        args.size = me->size;
        args.timeout_ms = 10000;
        if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_OK, "init") != 0)
            return 1;
        if (i % 2 == 0)
            failed = coll_check(me, &what);
        rueda_shutdown(me->ctx);
        me->ctx = NULL;
        if (failed != 0)
            return failed;
    }
    return 0;
}

static void lives_follow_each_other_at_the_launchers_store(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, RANKS, processes_by_self, live, NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* Without the descriptor no process has the key. */
static int come_without_key(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[1024] = "";

    unsetenv("RUEDA_KEY_FD");
    args.rank = me->rank;
    args.size = me->size;
    args.error = words;
    args.error_bytes = sizeof(words);
    if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_ERR_AUTH, "init") !=
        0)
        return 1;
    return strstr(words, "RUEDA_KEY_FILE") != NULL
               ? 0
               : rank_says(me, "said \"%.300s\"", words);
}

static void without_the_key_nobody_is_let_in(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, RANKS, processes_by_self, come_without_key,
                    NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

#define LAUNCHED(test)                                                         \
    cmocka_unit_test_setup_teardown(test, launcher_open, launcher_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LAUNCHED(lives_follow_each_other_at_the_launchers_store),
        LAUNCHED(without_the_key_nobody_is_let_in),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
