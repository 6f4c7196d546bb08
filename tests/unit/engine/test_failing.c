/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing in steps that do not wait. The store is kept by a process of its own,
 * which is stopped where it must not answer: a call that waited for it would
 * come back with the stage behind it.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "api/ctx.h"
#include "base/log.h"
#include "engine/drive.h"
#include "job/failure_report.h"
#include "job/store/keeper.h"
#include "os/clock.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

/* A store, and a rank of a job of two that uses it. */
struct scene {
    struct rueda_key key;
    struct rueda_address address;
    pid_t keeper;
    struct rueda_job job;
    struct rueda_formation formation;
};

static void hush(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static void keep_store(struct scene *scene, int out)
{
    const struct rueda_keeper_args args = {.size = 2,
                                           .key = &scene->key,
                                           .addresses = &scene->address,
                                           .address_count = 1};
    struct rueda_text error = {{0}};
    struct rueda_keeper *keeper;
    int count;

    if (rueda_keeper_open(&args, &keeper, &error) != RUEDA_OK ||
        write(out, rueda_keeper_addresses(keeper, &count),
              sizeof(scene->address)) < 0)
        _exit(1);
    for (;;)
        pause();
}

static void fork_store(struct scene *scene)
{
    struct rueda_text error = {{0}};
    int ends[2];

    assert_int_equal(rueda_key_create(&scene->key), RUEDA_OK);
    assert_int_equal(
        rueda_address_find("127.0.0.1:0", &scene->address, 1, &error), 1);
    assert_int_equal(pipe(ends), 0);
    scene->keeper = fork();
    assert_true(scene->keeper >= 0);
    if (scene->keeper == 0)
        keep_store(scene, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &scene->address, sizeof(scene->address)),
                     (int)sizeof(scene->address));
    close(ends[0]);
}

static struct rueda_client *client_for(struct scene *scene,
                                       struct rueda_job *job)
{
    const struct rueda_client_args args = {.rank = job->formation->rank,
                                           .size = 2,
                                           .addresses = &scene->address,
                                           .address_count = 1,
                                           .key = &scene->key,
                                           .on_event = rueda_failure_event,
                                           .arg = job};
    struct rueda_client *client = NULL;
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_client_open(&args, rueda_clock_ns() + 20000 * MS,
                                       &client, &error),
                     RUEDA_OK);
    return client;
}

static int scene_open(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));

    if (scene == NULL)
        return -1;
    *state = scene;
    rueda_log_set_sink(hush, NULL);
    fork_store(scene);
    scene->job.formation = &scene->formation;
    scene->formation.rank = 1;
    scene->formation.size = 2;
    scene->job.config.store_keeper = RUEDA_STORE_BY_LAUNCHER;
    pthread_mutex_init(&scene->job.failure_lock, NULL);
    scene->job.client = client_for(scene, &scene->job);
    return 0;
}

static int scene_close(void **state)
{
    struct scene *scene = *state;

    rueda_client_close(scene->job.client);
    pthread_mutex_destroy(&scene->job.failure_lock);
    kill(scene->keeper, SIGKILL);
    waitpid(scene->keeper, NULL, 0);
    rueda_log_set_sink(NULL, NULL);
    free(scene);
    return 0;
}

static void stop_store(const struct scene *scene)
{
    int status;

    assert_int_equal(kill(scene->keeper, SIGSTOP), 0);
    assert_int_equal(waitpid(scene->keeper, &status, WUNTRACED), scene->keeper);
    assert_true(WIFSTOPPED(status));
}

/* What the store has under the key of failures. */
static void read_words(struct rueda_job *job, char *out, size_t room)
{
    struct rueda_store_request get = {
        .kind = RUEDA_STORE_GET, .key = "failed", .key_bytes = 6};
    struct rueda_text error = {{0}};
    struct rueda_store_reply reply;

    assert_int_equal(rueda_client_ask(job->client, &get,
                                      rueda_clock_ns() + 20000 * MS, &reply,
                                      &error),
                     RUEDA_OK);
    snprintf(out, room, "%.*s", (int)reply.value_bytes,
             (const char *)reply.value);
}

static void a_failure_is_told_in_steps(void **state)
{
    struct scene *scene = *state;
    char words[256];

    stop_store(scene);
    rueda_failure_tell(&scene->job, "out of coffee");
    assert_false(rueda_failure_is_told(&scene->job));
    kill(scene->keeper, SIGCONT);
    rueda_failure_await_told(&scene->job);
    assert_true(rueda_failure_is_told(&scene->job));
    read_words(&scene->job, words, sizeof(words));
    assert_non_null(strstr(words, "rank 1 (pid "));
    assert_non_null(strstr(words, "failed: out of coffee"));
}

static void telling_ends_though_the_store_does_not_answer(void **state)
{
    struct scene *scene = *state;

    stop_store(scene);
    rueda_failure_tell(&scene->job, "out of coffee");
    rueda_failure_await_told(&scene->job);
    assert_int_equal(rueda_client_posted(scene->job.client), RUEDA_IN_PROGRESS);
}

static void what_was_posted_outlives_its_connection(void **state)
{
    struct scene *scene = *state;
    struct rueda_client *client = scene->job.client;
    const struct rueda_store_request set = {.kind = RUEDA_STORE_SET,
                                            .key = "failed",
                                            .key_bytes = 6,
                                            .value = "again",
                                            .value_bytes = 5};
    const int64_t until = rueda_clock_ns() + 20000 * MS;
    char words[256];

    stop_store(scene);
    rueda_client_post(client, &set);
    assert_int_equal(rueda_client_posted(client), RUEDA_IN_PROGRESS);
    shutdown(rueda_client_fd(client), SHUT_RDWR);
    kill(scene->keeper, SIGCONT);
    while (rueda_client_posted(client) == RUEDA_IN_PROGRESS &&
           rueda_clock_ns() < until) {
        rueda_client_reconnect(client);
        rueda_sleep_ns(MS);
    }
    assert_int_equal(rueda_client_posted(client), RUEDA_OK);
    read_words(&scene->job, words, sizeof(words));
    assert_string_equal(words, "again");
}

static void a_dead_store_ends_what_was_posted(void **state)
{
    struct scene *scene = *state;

    kill(scene->keeper, SIGKILL);
    rueda_failure_tell(&scene->job, "out of coffee");
    rueda_failure_await_told(&scene->job);
    assert_true(rueda_failure_has_come(&scene->job));
    assert_non_null(strstr(scene->job.failure.chars, "the launcher"));
}

/* A start that fails has neither a segment nor a table of hosts yet. */
static void a_store_that_dies_during_the_start_is_told(void **state)
{
    struct scene *scene = *state;

    scene->job.config.store_keeper = RUEDA_STORE_BY_RANK_0;
    kill(scene->keeper, SIGKILL);
    rueda_failure_tell(&scene->job, "out of coffee");
    rueda_failure_await_told(&scene->job);
    assert_true(rueda_failure_has_come(&scene->job));
    assert_non_null(strstr(scene->job.failure.chars, "rank 0 (on host ?)"));
}

/* Returns the last stage. */
static rueda_hearing_stage hear_to_the_end(struct rueda_job *job,
                                           struct rueda_text *words)
{
    const int64_t until = rueda_clock_ns() + 20000 * MS;
    struct rueda_hearing hearing;
    int peer = -1;

    rueda_failure_hear(&hearing);
    assert_false(rueda_failure_has_heard(job, &hearing, &peer, words));
    assert_int_equal(hearing.stage, RUEDA_HEARING_WORDS);
    while (!rueda_failure_has_heard(job, &hearing, &peer, words)) {
        assert_true(rueda_clock_ns() < until);
        rueda_sleep_ns(MS);
    }
    return hearing.stage;
}

static void hearing_ends_when_a_store_without_words_answers(void **state)
{
    struct scene *scene = *state;
    struct rueda_text words = {{0}};

    assert_int_equal(hear_to_the_end(&scene->job, &words),
                     RUEDA_HEARING_ANSWER);
    assert_true(rueda_text_is_empty(&words));
}

static void hearing_lasts_longer_where_the_store_is_silent(void **state)
{
    struct scene *scene = *state;
    struct rueda_text words = {{0}};

    stop_store(scene);
    assert_int_equal(hear_to_the_end(&scene->job, &words), RUEDA_HEARING_HUB);
    assert_true(rueda_text_is_empty(&words));
}

/* ---- The engine --------------------------------------------------------- */

/* Two ranks that are threads; the first one has a store, which is stopped, and
 * has started a barrier. The caller holds its token. */
struct pair {
    rueda_ctx *ctx[2];
    struct rueda_ticket ticket;
};

static struct rueda_engine *pair_open(struct pair *pair, struct scene *scene)
{
    struct rueda_engine *engine;

    memset(pair, 0, sizeof(*pair));
    assert_int_equal(rueda_init_threads(2, NULL, pair->ctx), RUEDA_OK);
    pair->ctx[0]->job->client = client_for(scene, pair->ctx[0]->job);
    pair->ctx[0]->job->config.store_keeper = RUEDA_STORE_BY_LAUNCHER;
    stop_store(scene);
    engine = &pair->ctx[0]->engine;
    assert_true(rueda_drive_take(engine));
    rueda_op_init(&pair->ticket.op);
    rueda_ticket_init(&pair->ticket, RUEDA_BARRIER);
    pair->ticket.op.is_ordered = true;
    pair->ticket.op.is_laid_out = true;
    rueda_op_push(&engine->lanes.arrived, &pair->ticket.op);
    engine_turn(engine);
    assert_int_equal(rueda_op_status(&pair->ticket.op), RUEDA_IN_PROGRESS);
    assert_int_equal(pair->ctx[0]->job->formation->term, 1);
    assert_int_equal(pair->ctx[0]->job->formation->mesh.term, 1);
    return engine;
}

/* Turns, none of which waits, until the operation has ended. */
static void pair_end(struct pair *pair, rueda_status status)
{
    struct rueda_engine *engine = &pair->ctx[0]->engine;
    const int64_t until = rueda_clock_ns() + 20000 * MS;
    int turns = 0;

    while (rueda_op_status(&pair->ticket.op) == RUEDA_IN_PROGRESS) {
        assert_true(rueda_clock_ns() < until);
        engine_turn(engine);
        turns++;
        rueda_sleep_ns(MS);
    }
    assert_true(turns > 1);
    assert_int_equal(rueda_op_status(&pair->ticket.op), status);
    assert_false(rueda_failing_is_on(engine));
    rueda_drive_release(engine);
    rueda_shutdown(pair->ctx[1]);
    rueda_shutdown(pair->ctx[0]);
}

static void operations_end_after_turns_that_do_not_wait(void **state)
{
    struct pair pair;
    struct rueda_engine *engine = pair_open(&pair, *state);

    rueda_failing_begin_by_peer(engine, 1);
    assert_true(rueda_failing_is_on(engine));
    assert_int_equal(engine->failing.stage, RUEDA_FAILING_HEARING);
    assert_int_equal(engine->failing.size, RUEDA_FAILING_TERM);
    assert_int_equal(rueda_op_status(&pair.ticket.op), RUEDA_IN_PROGRESS);
    assert_int_equal(rueda_ctx_check(pair.ctx[0]), RUEDA_OK);
    pair_end(&pair, RUEDA_ERR_PEER_LOST);
}

static void a_failure_of_this_rank_is_told_between_turns(void **state)
{
    struct pair pair;
    struct rueda_engine *engine = pair_open(&pair, *state);

    rueda_failing_begin(engine, RUEDA_ERR_MISMATCH, "a shape differs");
    assert_int_equal(engine->failing.stage, RUEDA_FAILING_TELLING);
    assert_int_equal(engine->failing.size, RUEDA_FAILING_CONTEXT);
    assert_int_equal(rueda_op_status(&pair.ticket.op), RUEDA_IN_PROGRESS);
    assert_string_equal(rueda_error(pair.ctx[0]), "a shape differs");
    rueda_failing_begin_by_peer(engine, 1); /* comes second */
    assert_int_equal(engine->failing.stage, RUEDA_FAILING_TELLING);
    pair_end(&pair, RUEDA_ERR_MISMATCH);
}

static void words_of_the_program_end_the_wait_for_others(void **state)
{
    struct pair pair;
    struct rueda_engine *engine = pair_open(&pair, *state);

    rueda_failing_begin_by_peer(engine, 1);
    engine_turn(engine);
    assert_true(rueda_failing_is_on(engine));
    assert_true(
        rueda_engine_keep_first(engine, RUEDA_ERR_CANCELLED, "no coffee"));
    engine_turn(engine);
    assert_int_equal(rueda_op_status(&pair.ticket.op), RUEDA_ERR_CANCELLED);
    assert_int_equal(engine->failing.size, RUEDA_FAILING_CONTEXT);
    assert_string_equal(rueda_error(pair.ctx[0]), "no coffee");
    rueda_drive_release(engine);
    rueda_shutdown(pair.ctx[1]);
    rueda_shutdown(pair.ctx[0]);
}

static void a_context_that_fails_can_be_shut_down(void **state)
{
    struct pair pair;
    struct rueda_engine *engine = pair_open(&pair, *state);

    rueda_failing_begin_by_peer(engine, 1);
    assert_true(rueda_failing_is_on(engine));
    rueda_drive_release(engine);
    rueda_shutdown(pair.ctx[1]);
    rueda_shutdown(pair.ctx[0]);
    assert_int_equal(rueda_op_status(&pair.ticket.op), RUEDA_ERR_PEER_LOST);
}

/* ---- Sizes ------------------------------------------------------------ */

static void a_failure_has_one_of_three_sizes(void **state)
{
    (void)state;
    assert_int_equal(rueda_failing_size_of(RUEDA_ERR_MISMATCH, true),
                     RUEDA_FAILING_OPERATION);
    assert_int_equal(rueda_failing_size_of(RUEDA_ERR_PEER_LOST, true),
                     RUEDA_FAILING_TERM);
    assert_int_equal(rueda_failing_size_of(RUEDA_ERR_PEER_LOST, false),
                     RUEDA_FAILING_TERM);
    assert_int_equal(rueda_failing_size_of(RUEDA_ERR_MISMATCH, false),
                     RUEDA_FAILING_CONTEXT);
    assert_int_equal(rueda_failing_size_of(RUEDA_ERR_NOMEM, true),
                     RUEDA_FAILING_CONTEXT);
    assert_int_equal(rueda_failing_size_of(RUEDA_ERR_STALLED, false),
                     RUEDA_FAILING_CONTEXT);
}

static void a_lost_peer_fails_the_term(void **state)
{
    struct pair pair;
    struct rueda_engine *engine = pair_open(&pair, *state);

    rueda_failing_take(engine, RUEDA_ERR_PEER_LOST, 1, "no words of this");
    assert_int_equal(engine->failing.size, RUEDA_FAILING_TERM);
    assert_int_equal(engine->failing.stage, RUEDA_FAILING_HEARING);
    assert_int_equal(engine->failing.peer, 1);
    pair_end(&pair, RUEDA_ERR_PEER_LOST);
}

static void what_else_a_turn_returns_fails_the_context(void **state)
{
    struct pair pair;
    struct rueda_engine *engine = pair_open(&pair, *state);

    rueda_failing_take(engine, RUEDA_ERR_LIMIT, 1, "too many of them");
    assert_int_equal(engine->failing.size, RUEDA_FAILING_CONTEXT);
    assert_string_equal(rueda_error(pair.ctx[0]), "too many of them");
    pair_end(&pair, RUEDA_ERR_LIMIT);
}

#define SCENE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, scene_open, scene_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_failure_is_told_in_steps),
        SCENE(telling_ends_though_the_store_does_not_answer),
        SCENE(what_was_posted_outlives_its_connection),
        SCENE(a_dead_store_ends_what_was_posted),
        SCENE(a_store_that_dies_during_the_start_is_told),
        SCENE(hearing_ends_when_a_store_without_words_answers),
        SCENE(hearing_lasts_longer_where_the_store_is_silent),
        SCENE(operations_end_after_turns_that_do_not_wait),
        SCENE(a_failure_of_this_rank_is_told_between_turns),
        SCENE(words_of_the_program_end_the_wait_for_others),
        SCENE(a_context_that_fails_can_be_shut_down),
        SCENE(a_lost_peer_fails_the_term),
        SCENE(what_else_a_turn_returns_fails_the_context),
        cmocka_unit_test(a_failure_has_one_of_three_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
