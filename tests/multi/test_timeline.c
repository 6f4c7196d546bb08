/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 starts and stops the timeline, which has what all ranks do meanwhile,
 * whatever the others call. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/json.h"
#include "support/processes.h"

#define STEPS     5
#define PATH_ROOM 64

/* How long a stop may take that waits for a rank that does not answer. */
#define STOP_MOST_MS (RANK_IS_SLOW ? 8000 : 3500)

/* ---- What ranks do ------------------------------------------------------- */

static rueda_handle submit(struct test_rank *me, const char *name, float *x)
{
    static const size_t one = 1;
    struct rueda_submit_args args = RUEDA_SUBMIT_ARGS_INIT;
    rueda_handle handle = 0;

    args.kind = RUEDA_ALLREDUCE;
    args.name = name;
    args.dtype = RUEDA_FLOAT32;
    args.reduction = RUEDA_SUM;
    args.dims = 1;
    args.shape = &one;
    args.send = x;
    args.recv = x;
    rank_expect(me, rueda_submit(me->ctx, &args, &handle), RUEDA_OK, "submit");
    return handle;
}

static int step(struct test_rank *me, const char *name)
{
    float x = 1;
    rueda_handle handle = submit(me, name, &x);

    if (handle == 0 ||
        rank_expect(me, rueda_wait(me->ctx, handle, 10000), RUEDA_OK, name))
        return 1;
    return x == (float)me->size ? 0 : rank_says(me, "%s: %f", name, x);
}

static int steps(struct test_rank *me, const char *title)
{
    char name[32];

    for (int i = 0; i < STEPS; i++) {
        snprintf(name, sizeof(name), "%s.%d", title, i);
        if (step(me, name) != 0)
            return 1;
    }
    return 0;
}

static int start(struct test_rank *me, const char *path)
{
    return rank_expect(me, rueda_timeline_start(me->ctx, path, 0), RUEDA_OK,
                       "start");
}

static int stop(struct test_rank *me)
{
    return rank_expect(me, rueda_timeline_stop(me->ctx), RUEDA_OK, "stop");
}

static void path_of(const struct test_rank *me, const char *title,
                    char out[PATH_ROOM])
{
    snprintf(out, PATH_ROOM, "/tmp/rueda_timeline_%d_%s.json",
             (int)(me->job != NULL ? getppid() : getpid()), title);
}

/* ---- What is in a file --------------------------------------------------- */

static char *load(const char *path)
{
    FILE *file = fopen(path, "re");
    size_t room = (size_t)1 << 22;
    char *text = calloc(1, room);

    if (file != NULL && text != NULL)
        text[fread(text, 1, room - 1, file)] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

/* The event after this one. */
static const char *next_of(const char *event)
{
    const char *end = json_skip(event);

    return end != NULL && *end == ',' ? end + 1 : NULL;
}

/* The number of the tensor, or -1. */
static int pid_of(const char *json, const char *tensor)
{
    const char *event = json_element(json, 0);

    for (; event != NULL; event = next_of(event))
        if (json_is_text(json_field(event, "name"), "process_name") &&
            json_is_text(json_field(json_field(event, "args"), "name"), tensor))
            return (int)json_number(json_field(event, "pid"));
    return -1;
}

/* How often this rank has negotiated the tensor, where phase is B, or has ended
 * it, where that is E. */
static int count(const char *json, const char *tensor, int rank,
                 const char *phase)
{
    const int pid = pid_of(json, tensor);
    const char *event = json_element(json, 0);
    int found = 0;

    for (; event != NULL; event = next_of(event)) {
        const char *tid = json_field(event, "tid");
        const char *args = json_field(event, "args");
        const char *name = json_field(event, "name");

        if (json_number(json_field(event, "pid")) == pid &&
            (tid != NULL ? (int)json_number(tid) : 0) == rank &&
            json_is_text(json_field(event, "ph"), phase))
            found += *phase == 'B' ? json_is_text(name, "NEGOTIATE_ALLREDUCE")
                                   : json_field(args, "dtype") != NULL;
    }
    return found;
}

/* All ranks have done these steps, once each; or none has. Those who were
 * ahead may have begun them. */
static int expect_steps(struct test_rank *me, const char *json,
                        const char *title, bool is_there)
{
    char name[32];

    for (int i = 0; i < STEPS; i++) {
        snprintf(name, sizeof(name), "%s.%d", title, i);
        for (int rank = 0; rank < me->size; rank++) {
            const int begun = count(json, name, rank, "B");
            const int ended = count(json, name, rank, "E");

            if (ended != is_there || (is_there && begun != 1))
                return rank_says(me, "%s of rank %d has %d begins, %d ends",
                                 name, rank, begun, ended);
        }
    }
    return 0;
}

/* No rank has begun it, though some were ahead. */
static int expect_none(struct test_rank *me, const char *path, const char *name)
{
    char *json = me->rank == 0 ? load(path) : NULL;
    int found = 0;

    for (int rank = 0; rank < me->size && json != NULL; rank++)
        found += count(json, name, rank, "B");
    free(json);
    return found == 0 ? 0 : rank_says(me, "%d have begun %s", found, name);
}

/* A file that has the one and not the other, on rank 0; it is gone then. */
static int expect_file(struct test_rank *me, const char *path,
                       const char *title, const char *other)
{
    char *json;
    int failed;

    if (me->rank != 0)
        return 0;
    json = load(path);
    failed = json == NULL || !json_is_valid(json)
                 ? rank_says(me, "%s is no JSON", path)
                 : expect_steps(me, json, title, true) ||
                       expect_steps(me, json, other, false);
    free(json);
    unlink(path);
    return failed;
}

/* ---- Rank 0 alone -------------------------------------------------------- */

/* The others work on, or rest, while it stops. */
static int rank_0_calls(struct test_rank *me)
{
    const bool *rests = me->arg;
    char path[PATH_ROOM];

    path_of(me, "alone", path);
    for (int round = 0; round < 3; round++)
        if (steps(me, "before") != 0 || (me->rank == 0 && start(me, path)) ||
            steps(me, "during") != 0 || (me->rank == 0 && stop(me)) ||
            expect_file(me, path, "during", "before") != 0)
            return 1;
        else if (*rests && me->rank != 0)
            rank_sleep_ms(300);
    return steps(me, "after");
}

static void rank_0_alone_is_enough(void **state)
{
    bool rests = false;

    rank_run(*state, 3, rank_0_calls, &rests);
    rests = true;
    rank_run(*state, 3, rank_0_calls, &rests);
}

/* What the others handed over before is in it as well. */
static int others_are_early(struct test_rank *me)
{
    char path[PATH_ROOM];
    char *json;
    int failed;

    path_of(me, "early", path);
    if (me->rank == 0) {
        rank_sleep_ms(50);
        if (start(me, path) != 0)
            return 1;
    }
    if (step(me, "early") != 0)
        return 1;
    if (me->rank != 0)
        return 0;
    if (stop(me) != 0)
        return 1;
    json = load(path);
    failed = count(json, "early", 1, "B") != 1 ||
             count(json, "early", 1, "E") != 1 ||
             count(json, "early", 0, "B") != 1;
    free(json);
    unlink(path);
    return failed ? rank_says(me, "what was handed over early is missing") : 0;
}

static void what_others_have_handed_over_is_in_it(void **state)
{
    rank_run(*state, 2, others_are_early, NULL);
}

/* ---- All of them --------------------------------------------------------- */

/* Now one comes late, now another. */
static int all_call(struct test_rank *me)
{
    char path[PATH_ROOM];

    path_of(me, "all", path);
    for (int round = 0; round < 2 * me->size; round++) {
        const bool is_late = round % me->size == me->rank;

        rank_sleep_ms(is_late ? 20 : 0);
        if (start(me, path) != 0 || steps(me, "during") != 0)
            return 1;
        rank_sleep_ms(is_late && round >= me->size ? 20 : 0);
        if (stop(me) != 0 || expect_none(me, path, "after.0") != 0 ||
            expect_file(me, path, "during", "after") != 0 ||
            steps(me, "after") != 0)
            return 1;
    }
    return 0;
}

static void all_may_call(void **state)
{
    rank_run(*state, 3, all_call, NULL);
}

static int rank_1_calls(struct test_rank *me)
{
    char path[PATH_ROOM];
    char other[PATH_ROOM];

    path_of(me, "one", path);
    path_of(me, "other", other);
    if ((me->rank == 1 && (start(me, other) || stop(me) || start(me, NULL))) ||
        steps(me, "before") || (me->rank == 0 && start(me, path)) ||
        steps(me, "before") || (me->rank == 1 && (start(me, other))) ||
        steps(me, "during") || (me->rank == 0 && stop(me)))
        return 1;
    if (access(other, F_OK) == 0)
        return rank_says(me, "rank 1 has made a file");
    if (me->rank == 0)
        unlink(path);
    return 0;
}

static void others_alone_change_nothing(void **state)
{
    rank_run(*state, 2, rank_1_calls, NULL);
}

static int none_is_stopped(struct test_rank *me)
{
    for (int i = 0; i < 3; i++)
        if (stop(me) != 0 || steps(me, "step") != 0)
            return 1;
    return 0;
}

static void none_may_be_stopped(void **state)
{
    rank_run(*state, 2, none_is_stopped, NULL);
    rank_run(*state, 1, none_is_stopped, NULL);
}

/* ---- Files --------------------------------------------------------------- */

/* `arg` says whether all ranks call, or rank 0 alone. */
static int switches(struct test_rank *me)
{
    const bool calls = me->rank == 0 || *(const bool *)me->arg;
    char first[PATH_ROOM];
    char second[PATH_ROOM];

    path_of(me, "first", first);
    path_of(me, "second", second);
    if ((calls && start(me, first)) || steps(me, "one") ||
        (calls && start(me, second)) || steps(me, "two") ||
        expect_file(me, first, "one", "two") || (calls && start(me, second)) ||
        steps(me, "three") || (calls && stop(me)))
        return 1;
    if (me->rank == 0) {
        char *json = load(second);
        const int failed = expect_steps(me, json, "two", true);

        free(json);
        if (failed != 0)
            return 1;
    }
    return expect_file(me, second, "three", "one");
}

static void the_next_takes_over(void **state)
{
    bool calls_all = false;

    rank_run(*state, 3, switches, &calls_all);
    calls_all = true;
    rank_run(*state, 3, switches, &calls_all);
}

/* Only rank 0 hears of it, and what there is goes on. */
static int has_no_file(struct test_rank *me)
{
    const rueda_status wanted = me->rank == 0 ? RUEDA_ERR_IO : RUEDA_OK;
    char path[PATH_ROOM];

    path_of(me, "good", path);
    for (int i = 0; i < 2; i++) {
        if (rank_expect(me, rueda_timeline_start(me->ctx, "/nowhere/t.json", 0),
                        wanted, "start nowhere") != 0 ||
            steps(me, "nowhere") != 0)
            return 1;
        if (me->rank == 0 &&
            strstr(rueda_last_error(), "/nowhere/t.json") == NULL)
            return rank_says(me, "%s", rueda_last_error());
    }
    if (start(me, path) != 0 ||
        (me->rank == 0 &&
         (rank_expect(me, rueda_timeline_start(me->ctx, NULL, 0),
                      RUEDA_ERR_INVALID, "start without a name") ||
          rank_expect(me, rueda_timeline_start(me->ctx, "/nowhere/t.json", 0),
                      RUEDA_ERR_IO, "start elsewhere"))) ||
        steps(me, "good") || stop(me))
        return 1;
    return expect_file(me, path, "good", "nowhere");
}

static void a_file_that_cannot_be_made_is_rank_0s_own(void **state)
{
    rank_run(*state, 2, has_no_file, NULL);
}

/* ---- Those who do not answer --------------------------------------------- */

static int stop_in_time(struct test_rank *me)
{
    const int64_t before = rank_now_ms();

    if (stop(me) != 0)
        return 1;
    return rank_now_ms() - before < STOP_MOST_MS
               ? 0
               : rank_says(me, "stopping took %d ms",
                           (int)(rank_now_ms() - before));
}

/* Rank 1 holds still, with notes that are not sent; when it sends them, there
 * is another timeline. */
static int holds_still(struct test_rank *me)
{
    _Atomic pid_t *sleeper = (void *)me->board->room;
    char first[PATH_ROOM];
    char second[PATH_ROOM];

    path_of(me, "first", first);
    path_of(me, "second", second);
    if (me->rank == 0 && start(me, first) != 0)
        return 1;
    if (steps(me, "one") != 0)
        return 1;
    if (me->rank == 1) {
        *sleeper = getpid();
        raise(SIGSTOP);
    } else {
        rank_sleep_ms(500);
        if (stop_in_time(me) != 0 || start(me, second) != 0)
            return 1;
        kill(*sleeper, SIGCONT);
    }
    if (steps(me, "two") != 0 || (me->rank == 0 && stop_in_time(me) != 0))
        return 1;
    unlink(first);
    return expect_file(me, second, "two", "one");
}

static void who_holds_still_is_not_waited_for(void **state)
{
    rank_skip_without_fork();
    rank_run(*state, 2, holds_still, NULL);
}

/* `arg` says whether rank 0 stops then, or fails first. */
static int one_dies(struct test_rank *me)
{
    const bool *stops = me->arg;
    char path[PATH_ROOM];
    float x = 1;
    rueda_handle handle;

    path_of(me, "death", path);
    if ((me->rank == 0 && start(me, path)) || steps(me, "alive"))
        return 1;
    rank_sleep_ms(me->rank == 1 ? 500 : 1000);
    if (me->rank == 1)
        kill(getpid(), SIGKILL);
    if (*stops)
        return stop_in_time(me);
    handle = submit(me, "never", &x);
    if (rueda_wait(me->ctx, handle, 10000) == RUEDA_OK)
        return rank_says(me, "rank 1 lives");
    return rueda_timeline_stop(me->ctx) != RUEDA_OK
               ? 0
               : rank_says(me, "stopped after a failure");
}

static void a_death_leaves_the_file_whole(void **state)
{
    static bool ways[2] = {false, true};
    const struct rank_setup *setup = *state;

    rank_skip_without_fork();
    setenv("RUEDA_TRANSPORT", setup->transport, 1);
    for (int i = 0; i < 2; i++) {
        struct test_rank me = {.size = 2};
        struct processes processes;
        char path[PATH_ROOM];
        char *json;

        processes_start(&processes, 2, processes_join, one_dies, &ways[i]);
        processes.expected[1] = PROCESS_SIGNAL - SIGKILL;
        assert_int_equal(processes_end(&processes, RANK_DEADLINE_MS), 0);
        path_of(&me, "death", path);
        json = load(path);
        assert_true(json_is_valid(json));
        for (int rank = 0; rank < 2; rank++)
            assert_int_equal(count(json, "alive.4", rank, "E"), 1);
        free(json);
        unlink(path);
    }
    unsetenv("RUEDA_TRANSPORT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RANK_EVERYWHERE(rank_0_alone_is_enough),
        RANK_EVERYWHERE(what_others_have_handed_over_is_in_it),
        RANK_EVERYWHERE(all_may_call),
        RANK_EVERYWHERE(others_alone_change_nothing),
        RANK_EVERYWHERE(none_may_be_stopped),
        RANK_EVERYWHERE(the_next_takes_over),
        RANK_EVERYWHERE(a_file_that_cannot_be_made_is_rank_0s_own),
        RANK_IN_PROCESSES(who_holds_still_is_not_waited_for),
        RANK_IN_PROCESSES(a_death_leaves_the_file_whole),
    };

    rank_hush();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
