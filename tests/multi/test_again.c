/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and leaving, again and again, by a socket and by a store. */
#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/key.h"
#include "support/coll_check.h"
#include "support/processes.h"

/* ---- A store for the ranks ------------------------------------------- */

struct store {
    char address[32];
    char key_file[64];
};

/* A port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        at.sin_port = 0;
    close(fd);
    return ntohs(at.sin_port);
}

static int store_set(void **state)
{
    struct store *store = calloc(1, sizeof(*store));
    struct rueda_text error = {{0}};
    struct rueda_key key;

    if (store == NULL)
        return -1;
    *state = store;
    if (rueda_key_create(&key) != RUEDA_OK)
        return -1;
    snprintf(store->address, sizeof(store->address), "127.0.0.1:%d",
             free_port());
    snprintf(store->key_file, sizeof(store->key_file), "/tmp/rueda_again_%d",
             (int)getpid());
    setenv("RUEDA_STORE", store->address, 1);
    setenv("RUEDA_KEY_FILE", store->key_file, 1);
    return rueda_key_write_file(store->key_file, &key, &error) == RUEDA_OK ? 0
                                                                           : -1;
}

static int store_unset(void **state)
{
    struct store *store = *state;

    unsetenv("RUEDA_STORE");
    unsetenv("RUEDA_KEY_FILE");
    unlink(store->key_file);
    free(store);
    return 0;
}

/* ---- Many lives ------------------------------------------------------ */

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    if (folder == NULL)
        return -1;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static long resident_kib(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long pages = 0;

    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        pages = -1;
    if (file != NULL)
        fclose(file);
    return pages * 4;
}

/* Once with everything: a thread, messages, shared memory. */
static int live_once(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    struct rueda_coll_args barrier = RUEDA_COLL_ARGS_INIT;
    const struct coll_what what = {.kind = RUEDA_ALLREDUCE,
                                   .dtype = RUEDA_FLOAT32,
                                   .count = 3000,
                                   .shared = 3};
    rueda_handle handle;
    int failed;

    args.rank = me->rank;
    args.size = me->size;
    args.job = me->job;
    args.timeout_ms = 5000;
    barrier.kind = RUEDA_BARRIER;
    if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_OK, "init") != 0)
        return 1;
    failed = coll_check(me, &what);
    if (failed == 0)
        failed = rank_expect(me, rueda_start(me->ctx, &barrier, &handle),
                             RUEDA_OK, "start");
    if (failed == 0)
        failed =
            rank_expect(me, rueda_wait(me->ctx, handle, -1), RUEDA_OK, "wait");
    rueda_shutdown(me->ctx);
    me->ctx = NULL;
    return failed;
}

static int many_lives(struct test_rank *me)
{
    const int lives = RANK_IS_SLOW ? 30 : 1000;
    int descriptors = 0;
    long resident = 0;

    for (int i = 0; i < lives; i++) {
        if (live_once(me) != 0)
            return 1;
        if (i == 9) {
            descriptors = count_descriptors();
            resident = resident_kib();
        }
    }
    if (count_descriptors() != descriptors)
        return rank_says(me, "%d descriptors leaked",
                         count_descriptors() - descriptors);
    if (!RANK_IS_SLOW && resident_kib() - resident > 2048)
        return rank_says(me, "%ld KiB leaked", resident_kib() - resident);
    return 0;
}

static void a_thousand_lives_leak_nothing(void **state)
{
    const struct rank_setup *setup = *state;
    struct processes processes;

    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    processes_start(&processes, 2, processes_by_self, many_lives, NULL);
    unsetenv("RUEDA_TRANSPORT");
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* Failed starts neither. */
static int many_failures(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    int descriptors = count_descriptors();
    char words[RANK_WORDS];

    args.rank = me->rank;
    args.size = 3;
    args.job = me->job;
    args.timeout_ms = 20;
    args.error = words;
    args.error_bytes = sizeof(words);
    for (int i = 0; i < 30; i++)
        if (rueda_init(&args, &me->ctx) == RUEDA_OK)
            return rank_says(me, "a job of 3 started with 2");
    if (count_descriptors() != descriptors)
        return rank_says(me, "%d descriptors leaked",
                         count_descriptors() - descriptors);
    return 0;
}

static void failed_starts_leak_nothing(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 2, processes_by_self, many_failures, NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* Nothing holds the ranks together between two lives. */
static int many_empty_lives(struct test_rank *me)
{
    const int lives = RANK_IS_SLOW ? 20 : 300;

    for (int i = 0; i < lives; i++) {
        struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

        args.rank = me->rank;
        args.size = me->size;
        args.job = me->job;
        args.timeout_ms = 10000;
        if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_OK, "init") != 0)
            return 1;
        rueda_shutdown(me->ctx);
        me->ctx = NULL;
    }
    return 0;
}

static void lives_without_any_operation_follow_each_other(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 3, processes_by_self, many_empty_lives, NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* ---- By the store ---------------------------------------------------- */

static void a_thousand_lives_by_the_store_leak_nothing(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 2, processes_by_self, many_lives, NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

static int check_numbers(struct test_rank *me)
{
    const struct coll_what what = {
        .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 70001};

    if (rueda_rank(me->ctx) != me->rank || rueda_size(me->ctx) != me->size ||
        rueda_is_master(me->ctx) != (me->rank == 0) ||
        rueda_local_rank(me->ctx) != me->rank ||
        rueda_local_size(me->ctx) != me->size ||
        rueda_cross_rank(me->ctx) != 0 || rueda_cross_size(me->ctx) != 1 ||
        !rueda_is_homogeneous(me->ctx))
        return rank_says(me, "local %d of %d, cross %d of %d",
                         rueda_local_rank(me->ctx), rueda_local_size(me->ctx),
                         rueda_cross_rank(me->ctx), rueda_cross_size(me->ctx));
    return coll_check(me, &what);
}

static void ranks_that_met_at_a_store_share_memory(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 4, processes_join, check_numbers, NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* A limit that is short, and long enough. */
static int come_in_a_hurry(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[1024] = "";

    args.rank = me->rank;
    args.size = me->size;
    args.timeout_ms = RANK_IS_SLOW ? 2000 : 450;
    args.error = words;
    args.error_bytes = sizeof(words);
    if (rueda_init(&args, &me->ctx) != RUEDA_OK)
        return rank_says(me, "said \"%.300s\"", words);
    rueda_shutdown(me->ctx);
    me->ctx = NULL;
    return 0;
}

/* On a busy machine not the first time. */
static void a_short_limit_is_enough_where_all_come(void **state)
{
    int failures = 1;

    (void)state;
    for (int i = 0; i < 10 && failures > 0; i++) {
        struct processes processes;

        processes_start(&processes, 2, processes_by_self, come_in_a_hurry,
                        NULL);
        failures = processes_end(&processes, RANK_DEADLINE_MS);
    }
    assert_int_equal(failures, 0);
}

/* Two come to a job of three. */
static int come_without_the_third(struct test_rank *me)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[1024] = "";

    args.rank = me->rank * 2;
    args.size = 3;
    args.timeout_ms = 1000;
    args.error = words;
    args.error_bytes = sizeof(words);
    if (rank_expect(me, rueda_init(&args, &me->ctx), RUEDA_ERR_TIMEOUT,
                    "init") != 0)
        return 1;
    if (strstr(words, "did not come in time: 1;") == NULL)
        return rank_says(me, "said \"%.300s\"", words);
    return 0;
}

static void a_missing_rank_is_named_by_all_at_the_store(void **state)
{
    struct processes processes;

    (void)state;
    processes_start(&processes, 2, processes_by_self, come_without_the_third,
                    NULL);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* ---- Twice ----------------------------------------------------------- */

static void to_shut_down_twice_does_no_harm(void **state)
{
    rueda_ctx *other;
    rueda_ctx *ctx;

    (void)state;
    assert_int_equal(rueda_init(NULL, &other), RUEDA_OK);
    assert_int_equal(rueda_init(NULL, &ctx), RUEDA_OK);
    rueda_shutdown(ctx);
    rueda_shutdown(ctx);
    rueda_shutdown(NULL);
    assert_int_equal(rueda_barrier(other), RUEDA_OK);
    rueda_shutdown(other);
}

#define BY_STORE(test)                                                         \
    cmocka_unit_test_setup_teardown(test, store_set, store_unset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_IN_PROCESSES(a_thousand_lives_leak_nothing),
        cmocka_unit_test(failed_starts_leak_nothing),
        BY_STORE(a_thousand_lives_by_the_store_leak_nothing),
        {"failed_starts_leak_nothing [store]", failed_starts_leak_nothing,
         store_set, store_unset, NULL},
        cmocka_unit_test(lives_without_any_operation_follow_each_other),
        {"lives_without_any_operation_follow_each_other [store]",
         lives_without_any_operation_follow_each_other, store_set, store_unset,
         NULL},
        BY_STORE(a_short_limit_is_enough_where_all_come),
        BY_STORE(ranks_that_met_at_a_store_share_memory),
        BY_STORE(a_missing_rank_is_named_by_all_at_the_store),
        cmocka_unit_test(to_shut_down_twice_does_no_harm),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
