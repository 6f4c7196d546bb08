/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks meet, and how it goes wrong. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "auth/key.h"
#include "segment/wire.h"
#include "support/coll_check.h"
#include "support/processes.h"

/* ---- Joining by hand ------------------------------------------------- */

/* What a rank says of itself, and what it should get. */
struct claim {
    int rank;
    int size; /* 0: does not come at all */
    const char *job;
    const char *key_file;
    const char *transport;
    int timeout_ms;
    int delay_ms;
    rueda_status wanted;
    const char *words; /* that the failure should have; NULL: any */
};

/* me->arg is a list of claims, one for each process. */
static int claim(struct test_rank *me)
{
    const struct claim *claims = me->arg;
    const struct claim *mine = &claims[me->rank];
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char words[RANK_WORDS] = "";
    rueda_status status;
    int failed = 0;

    if (mine->size == 0)
        return 0;
    args.rank = mine->rank;
    args.size = mine->size;
    args.job = mine->job != NULL ? mine->job : me->job;
    args.key_file = mine->key_file;
    args.timeout_ms = mine->timeout_ms;
    args.error = words;
    args.error_bytes = sizeof(words);
    rank_sleep_ms(mine->delay_ms);
    if (mine->transport != NULL)
        setenv("RUEDA_TRANSPORT", mine->transport, 1);
    status = rueda_init(&args, &me->ctx);
    if (status != mine->wanted)
        return rank_says(me, "init: \"%s\" instead of \"%s\" (%s)",
                         rueda_status_str(status),
                         rueda_status_str(mine->wanted), words);
    if (mine->words != NULL && strstr(words, mine->words) == NULL)
        return rank_says(me, "said \"%s\", nothing of \"%s\"", words,
                         mine->words);
    if (status == RUEDA_OK) {
        const struct coll_what what = {
            .kind = RUEDA_ALLREDUCE, .dtype = RUEDA_FLOAT32, .count = 20000};
        struct test_rank joined = *me;

        joined.rank = mine->rank;
        joined.size = mine->size;
        failed = coll_check(&joined, &what);
        rueda_shutdown(me->ctx);
    }
    return failed;
}

static void check_claims(struct claim *claims, int count)
{
    struct processes processes;

    processes_start(&processes, count, processes_by_self, claim, claims);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

/* ---- Missing ranks -------------------------------------------------- */

static void a_missing_rank_is_named_after_the_timeout(void **state)
{
    struct claim claims[] = {
        {.rank = 0,
         .size = 3,
         .timeout_ms = 400,
         .wanted = RUEDA_ERR_TIMEOUT,
         .words = "rank 2"},
        {.rank = 1,
         .size = 3,
         .timeout_ms = 5000,
         .wanted = RUEDA_ERR_TIMEOUT, /* as rank 0 says */
         .words = "rank 2"},
        {.size = 0},
    };

    (void)state;
    check_claims(claims, 3);
}

static void a_missing_first_rank_is_named_after_the_timeout(void **state)
{
    struct claim claims[] = {
        {.size = 0},
        {.rank = 1,
         .size = 2,
         .timeout_ms = 300,
         .wanted = RUEDA_ERR_TIMEOUT,
         .words = "rank 0"},
    };

    (void)state;
    check_claims(claims, 2);
}

static void a_rank_that_comes_late_is_waited_for(void **state)
{
    struct claim claims[] = {
        {.rank = 0, .size = 3, .timeout_ms = 5000, .delay_ms = 300},
        {.rank = 1, .size = 3, .timeout_ms = 5000},
        {.rank = 2, .size = 3, .timeout_ms = 5000, .delay_ms = 600},
    };

    (void)state;
    check_claims(claims, 3);
}

/* ---- Ranks that do not fit -------------------------------------------- */

static void ranks_that_count_differently_are_told_both_numbers(void **state)
{
    struct claim claims[] = {
        {.rank = 0,
         .size = 2,
         .timeout_ms = 700,
         .wanted = RUEDA_ERR_TIMEOUT,
         .words = "rank 1"},
        {.rank = 1,
         .size = 5,
         .timeout_ms = 3000,
         .wanted = RUEDA_ERR_MISMATCH,
         .words = "has 5 ranks, rank 0 says 2"},
    };

    (void)state;
    check_claims(claims, 2);
}

/* Else one would wait for messages, and the other in shared memory. */
static void the_transport_of_rank_0_is_that_of_all(void **state)
{
    struct claim claims[] = {
        {.rank = 0, .size = 2, .timeout_ms = 5000},
        {.rank = 1, .size = 2, .timeout_ms = 5000, .transport = "messages"},
    };

    (void)state;
    check_claims(claims, 2);
    claims[0].transport = "messages";
    claims[1].transport = "auto";
    check_claims(claims, 2);
}

/* The words name the remedy: two jobs of one name start at once. */
#define TWICE "set another RUEDA_JOB for each job"

static void a_rank_that_comes_twice_ends_the_start_of_all(void **state)
{
    struct claim claims[] = {
        {.rank = 0,
         .size = 3,
         .timeout_ms = 5000,
         .wanted = RUEDA_ERR_MISMATCH,
         .words = TWICE},
        {.rank = 1,
         .size = 3,
         .timeout_ms = 5000,
         .wanted = RUEDA_ERR_MISMATCH,
         .words = TWICE},
        {.rank = 1,
         .size = 3,
         .timeout_ms = 5000,
         .delay_ms = 200,
         .wanted = RUEDA_ERR_MISMATCH,
         .words = TWICE},
    };

    (void)state;
    check_claims(claims, 3);
}

static void a_second_first_rank_ends_both_starts(void **state)
{
    struct claim claims[] = {
        {.rank = 0,
         .size = 2,
         .timeout_ms = 5000,
         .wanted = RUEDA_ERR_MISMATCH,
         .words = TWICE},
        {.rank = 0,
         .size = 2,
         .timeout_ms = 5000,
         .delay_ms = 200,
         .wanted = RUEDA_ERR_MISMATCH,
         .words = TWICE},
    };

    (void)state;
    check_claims(claims, 2);
}

static void a_rank_beyond_the_size_is_refused(void **state)
{
    struct claim claims[] = {
        {.rank = 2,
         .size = 2,
         .timeout_ms = 300,
         .wanted = RUEDA_ERR_INVALID,
         .words = "0 to 1"},
    };

    (void)state;
    check_claims(claims, 1);
}

static void jobs_of_different_names_do_not_meet(void **state)
{
    char names[2][64];
    struct claim claims[] = {
        {.rank = 0, .size = 2, .timeout_ms = 5000, .job = names[0]},
        {.rank = 0, .size = 3, .timeout_ms = 5000, .job = names[1]},
        {.rank = 1, .size = 2, .timeout_ms = 5000, .job = names[0]},
        {.rank = 1, .size = 3, .timeout_ms = 5000, .job = names[1]},
        {.rank = 2, .size = 3, .timeout_ms = 5000, .job = names[1]},
    };

    (void)state;
    rank_job_name(names[0], sizeof(names[0]));
    rank_job_name(names[1], sizeof(names[1]));
    check_claims(claims, 5);
}

/* ---- Keys ------------------------------------------------------------ */

struct keys {
    char folder[64];
    char paths[2][96];
};

static int make_keys(void **state)
{
    static struct keys keys;
    struct rueda_text why = {{0}};

    strcpy(keys.folder, "/tmp/rueda-test-XXXXXX");
    if (mkdtemp(keys.folder) == NULL)
        return -1;
    for (int i = 0; i < 2; i++) {
        struct rueda_key key;

        snprintf(keys.paths[i], sizeof(keys.paths[i]), "%s/key%d", keys.folder,
                 i);
        if (rueda_key_create(&key) != RUEDA_OK ||
            rueda_key_write_file(keys.paths[i], &key, &why) != RUEDA_OK)
            return -1;
    }
    *state = &keys;
    return 0;
}

static int remove_keys(void **state)
{
    struct keys *keys = *state;

    unlink(keys->paths[0]);
    unlink(keys->paths[1]);
    return rmdir(keys->folder);
}

static void ranks_with_the_same_key_meet(void **state)
{
    struct keys *keys = *state;
    struct claim claims[3];

    for (int i = 0; i < 3; i++)
        claims[i] = (struct claim){.rank = i,
                                   .size = 3,
                                   .timeout_ms = 5000,
                                   .key_file = keys->paths[0]};
    check_claims(claims, 3);
}

static void check_keys(const char *first, const char *second)
{
    struct claim claims[] = {
        {.rank = 0,
         .size = 2,
         .timeout_ms = 600,
         .key_file = first,
         .wanted = RUEDA_ERR_TIMEOUT,
         .words = "rank 1"},
        {.rank = 1,
         .size = 2,
         .timeout_ms = 5000,
         .key_file = second,
         .wanted = RUEDA_ERR_AUTH},
    };

    check_claims(claims, 2);
}

static void ranks_with_different_keys_do_not_meet(void **state)
{
    struct keys *keys = *state;

    check_keys(keys->paths[0], keys->paths[1]);
}

static void a_key_on_one_side_only_is_no_key(void **state)
{
    struct keys *keys = *state;

    check_keys(keys->paths[0], NULL);
    check_keys(NULL, keys->paths[0]);
}

static void a_key_file_that_is_not_there_is_named(void **state)
{
    struct claim claims[] = {{.rank = 0,
                              .size = 1,
                              .key_file = "/nowhere/key",
                              .wanted = RUEDA_ERR_IO,
                              .words = "/nowhere/key"}};

    (void)state;
    check_claims(claims, 1);
}

/* ---- Strangers ------------------------------------------------------- */

/* Connect to where rank 0 of the job listens; tries for a while. */
static int connect_to(const char *job)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len;

    rueda_meet_name(address.sun_path + 1, sizeof(address.sun_path) - 1, job);
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                      strlen(address.sun_path + 1));
    for (int i = 0; i < 2000; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (connect(fd, (struct sockaddr *)&address, len) == 0)
            return fd;
        close(fd);
        rank_sleep_ms(1);
    }
    return -1;
}

/* Rank 2 is the stranger: it sends this and stays; ranks 0 and 1 are good. */
struct nuisance {
    const char *bytes;
    size_t len;
    int callers;
};

static int meet_with_stranger(struct test_rank *me)
{
    const struct nuisance *nuisance = me->arg;
    struct claim claims[] = {
        {.rank = 0, .size = 2, .timeout_ms = 8000},
        {.rank = 1, .size = 2, .timeout_ms = 8000, .delay_ms = 300},
    };
    int64_t start = rank_now_ms();

    if (me->rank < 2) {
        me->arg = claims;
        if (claim(me) != 0)
            return 1;
        if (rank_now_ms() - start > 3000)
            return rank_says(me, "the start took %d ms",
                             (int)(rank_now_ms() - start));
        return 0;
    }
    for (int i = 0; i < nuisance->callers; i++) {
        int fd = connect_to(me->job);

        if (fd < 0)
            return rank_says(me, "nobody listens");
        if (nuisance->len > 0 &&
            send(fd, nuisance->bytes, nuisance->len, MSG_NOSIGNAL) < 0)
            return rank_says(me, "cannot send");
    }
    rank_sleep_ms(600);
    return 0;
}

static void check_nuisance(struct nuisance nuisance)
{
    struct processes processes;

    processes_start(&processes, 3, processes_by_self, meet_with_stranger,
                    &nuisance);
    assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
}

static void a_stranger_who_sends_garbage_does_no_harm(void **state)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static char noise[100000];

    (void)state;
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)(i * 2654435761u >> 13);
    check_nuisance((struct nuisance){http, sizeof(http) - 1, 1});
    check_nuisance((struct nuisance){noise, sizeof(noise), 1});
}

static void strangers_who_say_nothing_do_no_harm(void **state)
{
    (void)state;
    check_nuisance((struct nuisance){.callers = 20});
}

/* ---- Death during the start ------------------------------------------ */

/* When the others have met; long before their patience ends it is seen. */
#define DEATH_AFTER_MS   1000
#define DEATH_SEEN_MS    15000
#define DEATH_TIMEOUT_MS 40000

static void a_rank_that_dies_during_the_start_is_named(void **state)
{
    struct claim claims[] = {
        {.rank = 0,
         .size = 3,
         .timeout_ms = DEATH_TIMEOUT_MS,
         .wanted = RUEDA_ERR_PEER_LOST,
         .words = "rank 1"},
        {.rank = 1, .size = 3, .timeout_ms = DEATH_TIMEOUT_MS},
        {.rank = 2,
         .size = 3,
         .timeout_ms = DEATH_TIMEOUT_MS,
         .delay_ms = 2 * DEATH_AFTER_MS,
         .wanted = RUEDA_ERR_PEER_LOST,
         .words = "rank 1"},
    };
    struct processes processes;

    (void)state;
    processes_start(&processes, 3, processes_by_self, claim, claims);
    rank_sleep_ms(DEATH_AFTER_MS);
    kill(processes.pids[1], SIGKILL);
    processes.expected[1] = PROCESS_SIGNAL - SIGKILL;

    assert_int_equal(processes_end(&processes, DEATH_SEEN_MS), 0);
}

/* All others fail at once when rank 0 is gone. */
static void the_first_rank_that_dies_during_the_start_is_named(void **state)
{
    struct claim claims[] = {
        {.rank = 0, .size = 3, .timeout_ms = DEATH_TIMEOUT_MS},
        {.rank = 1,
         .size = 3,
         .timeout_ms = DEATH_TIMEOUT_MS,
         .wanted = RUEDA_ERR_PEER_LOST,
         .words = "rank 0"},
        {.size = 0},
    };
    struct processes processes;

    (void)state;
    processes_start(&processes, 3, processes_by_self, claim, claims);
    rank_sleep_ms(DEATH_AFTER_MS);
    kill(processes.pids[0], SIGKILL);
    processes.expected[0] = PROCESS_SIGNAL - SIGKILL;

    assert_int_equal(processes_end(&processes, DEATH_SEEN_MS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_rank_is_named_after_the_timeout),
        cmocka_unit_test(a_missing_first_rank_is_named_after_the_timeout),
        cmocka_unit_test(a_rank_that_comes_late_is_waited_for),
        cmocka_unit_test(ranks_that_count_differently_are_told_both_numbers),
        cmocka_unit_test(the_transport_of_rank_0_is_that_of_all),
        cmocka_unit_test(a_rank_that_comes_twice_ends_the_start_of_all),
        cmocka_unit_test(a_second_first_rank_ends_both_starts),
        cmocka_unit_test(a_rank_beyond_the_size_is_refused),
        cmocka_unit_test(jobs_of_different_names_do_not_meet),
        cmocka_unit_test_setup_teardown(ranks_with_the_same_key_meet, make_keys,
                                        remove_keys),
        cmocka_unit_test_setup_teardown(ranks_with_different_keys_do_not_meet,
                                        make_keys, remove_keys),
        cmocka_unit_test_setup_teardown(a_key_on_one_side_only_is_no_key,
                                        make_keys, remove_keys),
        cmocka_unit_test(a_key_file_that_is_not_there_is_named),
        cmocka_unit_test(a_stranger_who_sends_garbage_does_no_harm),
        cmocka_unit_test(strangers_who_say_nothing_do_no_harm),
        cmocka_unit_test(a_rank_that_dies_during_the_start_is_named),
        cmocka_unit_test(the_first_rank_that_dies_during_the_start_is_named),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
