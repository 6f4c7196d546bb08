/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts as a program sees them, where no second process is needed: jobs of
 * one rank, and of two ranks that are threads. The thread of the test drives
 * both ranks by starting operations; operations that no caller waits for are
 * driven by the contexts' own threads.
 */
#include <sys/stat.h>

#include "api/internal.h"
#include "base/config.h"
#include "base/log.h"
#include "os/clock.h"
#include "unit/unit.h"

#define MS 1000000

/* The last line of the log. */
static char last_line[1100];

static void hear(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    snprintf(last_line, sizeof(last_line), "%s", line);
}

static int clear(void **state)
{
    size_t count;
    const struct rueda_setting *settings = rueda_settings(&count);

    (void)state;
    for (size_t i = 0; i < count; i++)
        unsetenv(settings[i].name);
    last_line[0] = '\0';
    rueda_log_set_sink(hear, NULL);
    return 0;
}

static int stop_hearing(void **state)
{
    (void)state;
    rueda_log_set_sink(NULL, NULL);
    return 0;
}

struct pair {
    rueda_ctx *ctx[2];
};

static int pair_open(void **state)
{
    static struct pair pair;

    clear(state);
    *state = &pair;
    return rueda_init_threads(2, NULL, pair.ctx) == RUEDA_OK ? 0 : -1;
}

static int pair_close(void **state)
{
    struct pair *pair = *state;

    rueda_shutdown(pair->ctx[0]);
    rueda_shutdown(pair->ctx[1]);
    return stop_hearing(state);
}

static rueda_ctx *alone(void)
{
    rueda_ctx *ctx = NULL;

    assert_int_equal(rueda_init(NULL, &ctx), RUEDA_OK);
    return ctx;
}

static struct rueda_coll_args allreduce_of(const float *send, float *recv,
                                           size_t count)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

    args.kind = RUEDA_ALLREDUCE;
    args.send = send;
    args.recv = recv;
    args.count = count;
    return args;
}

static rueda_handle start_barrier(rueda_ctx *ctx)
{
    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;
    rueda_handle handle = 0;

    args.kind = RUEDA_BARRIER;
    assert_int_equal(rueda_start(ctx, &args, &handle), RUEDA_OK);
    return handle;
}

/* ---- A job of one ---------------------------------------------------- */

static void without_settings_a_job_has_one_rank(void **state)
{
    rueda_ctx *ctx = alone();

    (void)state;
    assert_int_equal(rueda_rank(ctx), 0);
    assert_int_equal(rueda_size(ctx), 1);
    assert_string_equal(rueda_error(ctx), "");
    rueda_shutdown(ctx);
    rueda_shutdown(NULL);
}

static void every_collective_of_one_rank_gives_its_input(void **state)
{
    const int32_t send[3] = {7, -8, 9};
    int32_t recv[3] = {0};
    rueda_ctx *ctx = alone();

    (void)state;
    assert_int_equal(
        rueda_allreduce(ctx, send, recv, 3, RUEDA_INT32, RUEDA_SUM), RUEDA_OK);
    assert_memory_equal(recv, send, sizeof(send));
    memset(recv, 0, sizeof(recv));
    assert_int_equal(rueda_allgather(ctx, send, recv, 3, RUEDA_INT32),
                     RUEDA_OK);
    assert_memory_equal(recv, send, sizeof(send));
    assert_int_equal(rueda_broadcast(ctx, recv, 3, RUEDA_INT32, 0), RUEDA_OK);
    assert_memory_equal(recv, send, sizeof(send));
    memset(recv, 0, sizeof(recv));
    assert_int_equal(rueda_alltoall(ctx, send, recv, 3, RUEDA_INT32), RUEDA_OK);
    assert_memory_equal(recv, send, sizeof(send));
    memset(recv, 0, sizeof(recv));
    assert_int_equal(
        rueda_reduce_scatter(ctx, send, recv, 3, RUEDA_INT32, RUEDA_MAX),
        RUEDA_OK);
    assert_memory_equal(recv, send, sizeof(send));
    assert_int_equal(rueda_barrier(ctx), RUEDA_OK);
    rueda_shutdown(ctx);
}

static void a_handle_is_gone_once_it_was_waited_for(void **state)
{
    rueda_ctx *ctx = alone();
    rueda_handle handle = start_barrier(ctx);

    (void)state;
    assert_int_equal(rueda_wait(ctx, handle, 10000), RUEDA_OK);
    assert_int_equal(rueda_wait(ctx, handle, 10000), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_poll(ctx, handle), RUEDA_ERR_INVALID);
    assert_int_equal(rueda_poll(ctx, 0), RUEDA_ERR_INVALID);
    rueda_shutdown(ctx);
}

static void polling_ends_without_anybody_waiting(void **state)
{
    rueda_ctx *ctx = alone();
    rueda_handle handle = start_barrier(ctx);
    int64_t deadline = rueda_clock_ns() + INT64_C(20000) * MS;

    (void)state;
    while (rueda_poll(ctx, handle) == RUEDA_IN_PROGRESS &&
           rueda_clock_ns() < deadline)
        rueda_yield();
    assert_int_equal(rueda_poll(ctx, handle), RUEDA_OK);
    assert_int_equal(rueda_wait(ctx, handle, 0), RUEDA_OK);
    rueda_shutdown(ctx);
}

static void arguments_that_cannot_be_are_refused_in_the_log(void **state)
{
    struct rueda_coll_args args = allreduce_of(NULL, NULL, 3);
    rueda_ctx *ctx = alone();
    rueda_handle handle = 77;

    (void)state;
    assert_int_equal(rueda_start(ctx, &args, &handle), RUEDA_ERR_INVALID);
    assert_int_equal(handle, 77);
    assert_non_null(strstr(last_line, "rank 0: allreduce with send NULL"));
    assert_int_equal(rueda_run(ctx, &args), RUEDA_ERR_INVALID);
    assert_string_equal(rueda_error(ctx), "");
    assert_int_equal(rueda_barrier(ctx), RUEDA_OK);
    rueda_shutdown(ctx);
}

static void memory_of_a_context_comes_and_goes(void **state)
{
    rueda_ctx *ctx = alone();
    void *other = state;
    float *mine;

    (void)state;
    assert_int_equal(rueda_alloc(ctx, 4000, (void **)&mine), RUEDA_OK);
    for (int i = 0; i < 1000; i++)
        mine[i] = (float)i;
    assert_int_equal(
        rueda_allreduce(ctx, mine, mine, 1000, RUEDA_FLOAT32, RUEDA_SUM),
        RUEDA_OK);
    for (int i = 0; i < 1000; i++)
        assert_true(mine[i] == (float)i);
    rueda_free(ctx, mine);
    rueda_free(ctx, NULL);
    assert_int_equal(rueda_alloc(ctx, (size_t)1 << 50, &other),
                     RUEDA_ERR_LIMIT);
    assert_ptr_equal(other, state);
    assert_non_null(strstr(last_line, "MiB of shared memory"));
    rueda_shutdown(ctx);
}

/* In a child: 0 if every call says that the context is not its own. */
static int use_in_child(void *arg)
{
    rueda_ctx *ctx = arg;
    rueda_handle handle;
    void *memory;

    struct rueda_coll_args args = RUEDA_COLL_ARGS_INIT;

    args.kind = RUEDA_BARRIER;
    if (rueda_start(ctx, &args, &handle) != RUEDA_ERR_FORKED)
        return 1;
    if (rueda_barrier(ctx) != RUEDA_ERR_FORKED)
        return 2;
    if (rueda_poll(ctx, 1) != RUEDA_ERR_FORKED)
        return 3;
    if (rueda_wait(ctx, 1, 0) != RUEDA_ERR_FORKED)
        return 4;
    if (rueda_alloc(ctx, 1, &memory) != RUEDA_ERR_FORKED)
        return 5;
    if (strstr(rueda_error(ctx), "call rueda_init() again") == NULL)
        return 6;
    rueda_free(ctx, &memory);
    rueda_shutdown(ctx);
    if (rueda_init(NULL, &ctx) != RUEDA_OK || rueda_barrier(ctx) != RUEDA_OK)
        return 7;
    rueda_shutdown(ctx);
    return 0;
}

static void a_child_is_told_that_the_context_is_its_parents(void **state)
{
    rueda_ctx *ctx;

    (void)state;
    skip_where_forks_are_not_followed();
    ctx = alone();
    assert_int_equal(in_child(use_in_child, ctx), 0);
    assert_int_equal(rueda_barrier(ctx), RUEDA_OK);
    rueda_shutdown(ctx);
}

static void tools_can_ask_what_a_context_uses(void **state)
{
    rueda_ctx *ctx = alone();
    int barriers = 0;

    (void)state;
    assert_string_equal(rueda_internal_transport(ctx), "direct");
    for (size_t i = 0; rueda_internal_algo_name(i, RUEDA_BARRIER); i++)
        barriers++;
    assert_true(barriers >= 2);
    rueda_shutdown(ctx);
}

/* ---- Two ranks ------------------------------------------------------- */

static void an_operation_outlives_a_wait_that_is_too_short(void **state)
{
    struct pair *pair = *state;
    rueda_handle handles[2];

    handles[0] = start_barrier(pair->ctx[0]);
    assert_int_equal(rueda_wait(pair->ctx[0], handles[0], 0),
                     RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_wait(pair->ctx[0], handles[0], 3),
                     RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_poll(pair->ctx[0], handles[0]), RUEDA_IN_PROGRESS);
    handles[1] = start_barrier(pair->ctx[1]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rueda_wait(pair->ctx[i], handles[i], 20000), RUEDA_OK);
}

static void operations_end_in_the_order_in_which_they_started(void **state)
{
    enum {
        OPS = 40,
        COUNT = 500
    };
    static float in[2][COUNT];
    static float out[2][OPS][COUNT];
    struct pair *pair = *state;
    rueda_handle handles[2][OPS];

    for (int i = 0; i < COUNT; i++) {
        in[0][i] = (float)i;
        in[1][i] = (float)(1000 + 2 * i);
    }
    for (int op = 0; op < OPS; op++)
        for (int rank = 0; rank < 2; rank++) {
            struct rueda_coll_args args =
                allreduce_of(in[rank], out[rank][op], COUNT);

            args.prescale = op;
            assert_int_equal(
                rueda_start(pair->ctx[rank], &args, &handles[rank][op]),
                RUEDA_OK);
        }
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(
            rueda_wait(pair->ctx[rank], handles[rank][OPS - 1], 20000),
            RUEDA_OK);
        for (int op = 0; op < OPS - 1; op++) {
            assert_int_equal(rueda_poll(pair->ctx[rank], handles[rank][op]),
                             RUEDA_OK);
            assert_int_equal(rueda_wait(pair->ctx[rank], handles[rank][op], 0),
                             RUEDA_OK);
        }
        for (int op = 0; op < OPS; op++)
            for (int i = 0; i < COUNT; i++)
                assert_true(out[rank][op][i] == (float)(op * (1000 + 3 * i)));
    }
}

/* Start args[rank] on both ranks and wait for both. */
static void run_both(struct pair *pair, const struct rueda_coll_args args[2])
{
    rueda_handle handles[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(rueda_start(pair->ctx[i], &args[i], &handles[i]),
                         RUEDA_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rueda_wait(pair->ctx[i], handles[i], 20000), RUEDA_OK);
}

static void who_shuts_down_fails_the_others_in_words(void **state)
{
    struct pair *pair = *state;
    rueda_handle handles[2];

    handles[0] = start_barrier(pair->ctx[0]);
    handles[1] = start_barrier(pair->ctx[0]);
    rueda_shutdown(pair->ctx[1]);
    pair->ctx[1] = NULL;

    for (int i = 0; i < 2; i++)
        assert_int_equal(rueda_wait(pair->ctx[0], handles[i], 20000),
                         RUEDA_ERR_PEER_LOST);
    assert_non_null(strstr(rueda_error(pair->ctx[0]), "rank 1 (pid "));
    assert_non_null(strstr(rueda_error(pair->ctx[0]),
                           "shut down while rank 0 was in barrier number 0"));
    assert_int_equal(rueda_barrier(pair->ctx[0]), RUEDA_ERR_PEER_LOST);
}

static void a_shutdown_does_not_wait_for_what_still_runs(void **state)
{
    struct pair *pair = *state;

    start_barrier(pair->ctx[0]);
    start_barrier(pair->ctx[0]);
    rueda_shutdown(pair->ctx[0]);
    pair->ctx[0] = NULL;
}

static void messages_serve_where_settings_ask_for_them(void **state)
{
    static const char *const transports[] = {"messages", "loop"};
    static const char *const ways[] = {"shm", "loop"};

    (void)state;
    for (int t = 0; t < 2; t++) {
        float bufs[2][5] = {{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}};
        struct rueda_coll_args args[2];
        struct pair pair = {{NULL}};

        setenv("RUEDA_TRANSPORT", transports[t], 1);
        assert_int_equal(rueda_init_threads(2, NULL, pair.ctx), RUEDA_OK);
        assert_string_equal(rueda_internal_transport(pair.ctx[0]), ways[t]);
        for (int i = 0; i < 2; i++)
            args[i] = allreduce_of(bufs[i], bufs[i], 5);
        run_both(&pair, args);
        for (int i = 0; i < 5; i++)
            assert_true(bufs[0][i] == (float)(11 * (i + 1)));
        assert_memory_equal(bufs[0], bufs[1], sizeof(bufs[0]));
        rueda_shutdown(pair.ctx[0]);
        rueda_shutdown(pair.ctx[1]);
    }
}

/* ---- What cannot start ----------------------------------------------- */

/* rueda_init() fails with this status, and these words are in its error. */
static void check_no_start(struct rueda_init_args args, rueda_status status,
                           const char *words)
{
    int before = count_descriptors();
    rueda_ctx *ctx = NULL;
    char error[512] = "";

    args.error = error;
    args.error_bytes = sizeof(error);
    assert_int_equal(rueda_init(&args, &ctx), status);
    assert_null(ctx);
    assert_non_null(strstr(error, words));
    assert_string_equal(rueda_last_error(), error);
    assert_int_equal(count_descriptors(), before);
}

/* The same for one variable of the environment. */
static void check_no_start_with(const char *name, const char *value,
                                rueda_status status, const char *words)
{
    const struct rueda_init_args none = RUEDA_INIT_ARGS_INIT;

    setenv(name, value, 1);
    check_no_start(none, status, words);
    unsetenv(name);
}

static void a_place_that_cannot_be_is_refused(void **state)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;

    (void)state;
    args.rank = 2;
    check_no_start(args, RUEDA_ERR_INVALID, "rank is set (2) and size is not");
    args.size = 2;
    check_no_start(args, RUEDA_ERR_INVALID,
                   "rank 2 in a job of 2; ranks go from 0 to 1");
    args.rank = -1;
    check_no_start(args, RUEDA_ERR_INVALID, "size is set (2) and rank is not");
}

static void arguments_of_a_start_that_cannot_be_are_refused(void **state)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char job[RUEDA_CONFIG_NAME_BYTES + 1];
    rueda_ctx *ctx = NULL;

    (void)state;
    memset(job, 'j', sizeof(job));
    job[RUEDA_CONFIG_NAME_BYTES] = '\0';
    args.job = job;
    check_no_start(args, RUEDA_ERR_INVALID, "over 63 characters");
    args.job = NULL;
    args.key_file = "/tmp/rueda_no_such_key";
    check_no_start(args, RUEDA_ERR_IO, "/tmp/rueda_no_such_key");
    args.key_file = NULL;
    args.struct_size = 4;
    assert_int_equal(rueda_init(&args, &ctx), RUEDA_ERR_INVALID);
    assert_non_null(strstr(last_line, "RUEDA_INIT_ARGS_INIT"));
    assert_non_null(strstr(rueda_last_error(), "RUEDA_INIT_ARGS_INIT"));
    assert_null(ctx);
}

/* The arguments end where a program of the first release knew them to, before
 * the places in the host; what follows in memory means nothing. */
static void arguments_of_older_and_newer_programs_are_taken(void **state)
{
    struct {
        struct rueda_init_args args;
        char more[64];
    } newer = {.args = RUEDA_INIT_ARGS_INIT};
    struct rueda_init_args older = RUEDA_INIT_ARGS_INIT;
    rueda_ctx *ctx;

    (void)state;
    older.struct_size = offsetof(struct rueda_init_args, local_rank);
    memset(&older.local_rank, 0x5a, sizeof(older) - older.struct_size);
    assert_int_equal(rueda_init(&older, &ctx), RUEDA_OK);
    assert_int_equal(rueda_local_size(ctx), 1);
    rueda_shutdown(ctx);

    newer.args.struct_size = sizeof(newer);
    memset(newer.more, 0x5a, sizeof(newer.more));
    assert_int_equal(rueda_init(&newer.args, &ctx), RUEDA_OK);
    assert_int_equal(rueda_size(ctx), 1);
    rueda_shutdown(ctx);
}

static void threads_that_cannot_be_leave_the_result_alone(void **state)
{
    rueda_ctx *ctx[1] = {NULL};

    (void)state;
    assert_int_equal(rueda_init_threads(0, NULL, ctx), RUEDA_ERR_LIMIT);
    assert_non_null(strstr(rueda_last_error(), "0 ranks as threads"));
    assert_null(ctx[0]);
}

static void settings_that_cannot_be_are_refused(void **state)
{
    (void)state;
    check_no_start_with("RUEDA_SIZE", "many", RUEDA_ERR_INVALID, "\"many\"");
    check_no_start_with("RUEDA_TRANSPORT", "loop", RUEDA_ERR_INVALID,
                        "take shm or auto");
    check_no_start_with("RUEDA_KERNELS", "abacus", RUEDA_ERR_INVALID,
                        "RUEDA_KERNELS is \"abacus\"");
    check_no_start_with("RUEDA_ALGO", "allreduce:magic", RUEDA_ERR_INVALID,
                        "magic");
    check_no_start_with("RUEDA_TUNE_FILE", "/tmp/rueda_no_such_table",
                        RUEDA_ERR_IO, "RUEDA_TUNE_FILE");
}

static void a_table_of_algorithms_is_read_from_its_file(void **state)
{
    struct folder *folder = *state;
    char longer[RUEDA_PATH_BYTES + 8];
    rueda_ctx *ctx;

    clear(state);
    setenv("RUEDA_TUNE_FILE",
           folder_write(folder, "good", "allreduce:0-4k:tree\n"), 1);
    assert_int_equal(rueda_init(NULL, &ctx), RUEDA_OK);
    rueda_shutdown(ctx);
    memset(longer, ';', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    check_no_start_with("RUEDA_TUNE_FILE", folder_write(folder, "long", longer),
                        RUEDA_ERR_LIMIT, "too long a table");
    stop_hearing(state);
}

static void a_rank_that_waits_in_vain_says_for_whom(void **state)
{
    struct rueda_init_args args = RUEDA_INIT_ARGS_INIT;
    char job[32];

    (void)state;
    snprintf(job, sizeof(job), "unit-%d", (int)getpid());
    args.job = job;
    args.timeout_ms = 30;
    args.rank = 0;
    args.size = 12;
    check_no_start(args, RUEDA_ERR_TIMEOUT, "11 of 12 ranks of job \"unit-");
    check_no_start(args, RUEDA_ERR_TIMEOUT,
                   "rank 1, 2, 3, 4, 5, 6, 7, 8 and others");
    args.rank = 1;
    check_no_start(args, RUEDA_ERR_TIMEOUT, "did not show up in time");
}

static void without_room_for_words_they_go_to_the_log(void **state)
{
    rueda_ctx *ctx = NULL;

    (void)state;
    setenv("RUEDA_SIZE", "many", 1);
    assert_int_equal(rueda_init(NULL, &ctx), RUEDA_ERR_INVALID);
    assert_non_null(strstr(last_line, "RUEDA_SIZE is \"many\""));
    last_line[0] = '\0';
    assert_int_equal(rueda_init_threads(2, NULL, &ctx), RUEDA_ERR_INVALID);
    assert_non_null(strstr(last_line, "RUEDA_SIZE is \"many\""));
    unsetenv("RUEDA_SIZE");
    assert_int_equal(rueda_init_threads(0, NULL, &ctx), RUEDA_ERR_LIMIT);
    setenv("RUEDA_KERNELS", "abacus", 1);
    assert_int_equal(rueda_init_threads(1, NULL, &ctx), RUEDA_ERR_INVALID);
    assert_null(ctx);
}

#define CLEAR(test) cmocka_unit_test_setup_teardown(test, clear, stop_hearing)
#define PAIR(test)  cmocka_unit_test_setup_teardown(test, pair_open, pair_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAR(without_settings_a_job_has_one_rank),
        CLEAR(every_collective_of_one_rank_gives_its_input),
        CLEAR(a_handle_is_gone_once_it_was_waited_for),
        CLEAR(polling_ends_without_anybody_waiting),
        CLEAR(arguments_that_cannot_be_are_refused_in_the_log),
        CLEAR(memory_of_a_context_comes_and_goes),
        CLEAR(a_child_is_told_that_the_context_is_its_parents),
        CLEAR(tools_can_ask_what_a_context_uses),
        PAIR(an_operation_outlives_a_wait_that_is_too_short),
        PAIR(operations_end_in_the_order_in_which_they_started),
        PAIR(who_shuts_down_fails_the_others_in_words),
        PAIR(a_shutdown_does_not_wait_for_what_still_runs),
        CLEAR(messages_serve_where_settings_ask_for_them),
        CLEAR(a_place_that_cannot_be_is_refused),
        CLEAR(arguments_of_a_start_that_cannot_be_are_refused),
        CLEAR(arguments_of_older_and_newer_programs_are_taken),
        CLEAR(threads_that_cannot_be_leave_the_result_alone),
        CLEAR(settings_that_cannot_be_are_refused),
        cmocka_unit_test_setup_teardown(
            a_table_of_algorithms_is_read_from_its_file, folder_make,
            folder_drop),
        CLEAR(a_rank_that_waits_in_vain_says_for_whom),
        CLEAR(without_room_for_words_they_go_to_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
