/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/timeline.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "support/json.h"
#include "trace/timeline_wire.h"

struct fixture {
    char path[64];
    int64_t now_ns;
    char *text;
    int complaints;
};

static int64_t now_of(void *arg)
{
    return ((struct fixture *)arg)->now_ns;
}

static void count_line(void *arg, rueda_log_level level, const char *line)
{
    struct fixture *fixture = arg;

    if (level == RUEDA_LOG_ERROR && strstr(line, fixture->path) != NULL)
        fixture->complaints++;
}

static int set_up(void **state)
{
    static struct fixture fixture;
    int fd;

    memset(&fixture, 0, sizeof(fixture));
    strcpy(fixture.path, "/tmp/rueda_timeline_XXXXXX");
    fd = mkstemp(fixture.path);
    if (fd < 0)
        return -1;
    close(fd);
    fixture.now_ns = 5000000;
    *state = &fixture;
    rueda_log_set_sink(count_line, &fixture);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    rueda_log_set_sink(NULL, NULL);
    free(fixture->text);
    return unlink(fixture->path);
}

static struct rueda_timeline *open_rank(struct fixture *fixture, int rank,
                                        int ranks, size_t bytes)
{
    const struct rueda_timeline_args args = {
        .rank = rank,
        .ranks = ranks,
        .path = fixture->path,
        .marks_cycles = true,
        .buffer_bytes = bytes,
        .now_ns = now_of,
        .now_arg = fixture,
    };
    struct rueda_text error = {{0}};
    struct rueda_timeline *timeline = NULL;

    assert_int_equal(rueda_timeline_open(&args, &timeline, &error), RUEDA_OK);
    assert_true(rueda_text_is_empty(&error));
    return timeline;
}

/* The file, which is a whole JSON text at any time. */
static const char *load(struct fixture *fixture)
{
    FILE *file = fopen(fixture->path, "re");
    size_t len;

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    len = (size_t)ftell(file);
    rewind(file);
    free(fixture->text);
    fixture->text = malloc(len + 1);
    assert_non_null(fixture->text);
    assert_int_equal(fread(fixture->text, 1, len, file), len);
    fixture->text[len] = '\0';
    fclose(file);
    assert_true(json_is_valid(fixture->text));
    return fixture->text;
}

static bool is_text(const char *event, const char *field, const char *text)
{
    return json_is_text(json_field(event, field), text);
}

/* The event behind this one, or NULL. */
static const char *next_event(const char *event)
{
    const char *end = json_skip(event);

    return end != NULL && *end == ',' ? end + 1 : NULL;
}

/* The first event of this phase and name from here on; NULL: any name. */
static const char *find_from(const char *event, const char *phase,
                             const char *name)
{
    while (event != NULL && !(is_text(event, "ph", phase) &&
                              (name == NULL || is_text(event, "name", name))))
        event = next_event(event);
    return event;
}

static const char *find(const char *json, const char *phase, const char *name)
{
    return find_from(json_element(json, 0), phase, name);
}

static int count_events(const char *json, const char *phase, const char *name)
{
    const char *event = find(json, phase, name);
    int count = 0;

    for (; event != NULL; count++)
        event = find_from(next_event(event), phase, name);
    return count;
}

/* Everything that is in a rank goes to rank 0. */
static void carry(struct rueda_timeline *from, struct rueda_timeline *to,
                  int rank)
{
    unsigned char block[RUEDA_TIMELINE_ROOM_MIN];
    size_t len = rueda_timeline_take(from, block, sizeof(block));

    while (len > 0) {
        assert_int_equal(rueda_timeline_add(to, rank, block, len), RUEDA_OK);
        len = rueda_timeline_take(from, block, sizeof(block));
    }
}

/* ---- What is in the file ------------------------------------------------ */

/* As the header says, a microsecond apart. */
static void note_allreduce(struct fixture *fixture,
                           struct rueda_timeline *timeline, const char *name)
{
    static const uint64_t shape[] = {1, 2, 3};
    static const rueda_timeline_activity inside[] = {
        RUEDA_TIMELINE_QUEUE, RUEDA_TIMELINE_MEMCPY_IN_FUSION_BUFFER,
        RUEDA_TIMELINE_RUEDA_ALLREDUCE,
        RUEDA_TIMELINE_MEMCPY_OUT_FUSION_BUFFER};

    rueda_timeline_begin(
        timeline, name, rueda_timeline_negotiation(RUEDA_ALLREDUCE, RUEDA_SUM));
    fixture->now_ns += 1000;
    rueda_timeline_arrival(timeline, name, 1);
    fixture->now_ns += 1000;
    rueda_timeline_end(timeline, name);
    rueda_timeline_begin(timeline, name,
                         rueda_timeline_operation(RUEDA_ALLREDUCE, RUEDA_SUM));
    for (int i = 0; i < 4; i++) {
        rueda_timeline_begin(timeline, name, inside[i]);
        fixture->now_ns += 1000;
        rueda_timeline_end(timeline, name);
    }
    rueda_timeline_end_with(timeline, name, RUEDA_FLOAT32, 3, shape);
}

static void an_operation_is_in_the_file_as_in_the_contract(void **state)
{
    static const struct {
        const char *phase;
        const char *name;
        double ts;
    } expected[] = {
        {"M", "process_name", 0},
        {"M", "process_sort_index", 0},
        {"M", "process_name", 0},
        {"M", "process_sort_index", 0},
        {"B", "NEGOTIATE_ALLREDUCE", 0},
        {"X", "1", 1},
        {"E", NULL, 2},
        {"B", "ALLREDUCE", 2},
        {"B", "QUEUE", 2},
        {"E", NULL, 3},
        {"B", "MEMCPY_IN_FUSION_BUFFER", 3},
        {"E", NULL, 4},
        {"B", "RUEDA_ALLREDUCE", 4},
        {"E", NULL, 5},
        {"B", "MEMCPY_OUT_FUSION_BUFFER", 5},
        {"E", NULL, 6},
        {"E", NULL, 6},
    };
    const int count = sizeof(expected) / sizeof(expected[0]);
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    const char *json;
    const char *event;

    note_allreduce(fixture, timeline, "allreduce.test");
    rueda_timeline_close(timeline);
    json = load(fixture);
    for (int i = 0; i < count; i++) {
        event = json_element(json, i);
        assert_true(is_text(event, "ph", expected[i].phase));
        if (expected[i].name != NULL)
            assert_true(is_text(event, "name", expected[i].name));
        assert_null(json_field(event, "tid"));
        if (i < 4)
            continue;
        assert_true(json_number(json_field(event, "ts")) == expected[i].ts);
        assert_true(json_number(json_field(event, "pid")) == 1);
    }
    assert_null(json_element(json, count));

    event = json_field(json_element(json, 0), "args");
    assert_true(json_number(json_field(
                    event, "start_time_since_epoch_in_micros")) > 1.6e15);
    event = json_field(json_element(json, 2), "args");
    assert_true(is_text(event, "name", "allreduce.test"));
    event = json_element(json, 5);
    assert_true(json_number(json_field(event, "dur")) == 0);
    event = json_field(json_element(json, count - 1), "args");
    assert_true(is_text(event, "dtype", "float32"));
    assert_true(is_text(event, "shape", "[1, 2, 3]"));
}

static void activities_are_named_after_kinds(void **state)
{
#define IS(function, kind, reduction, text)                                    \
    assert_string_equal(                                                       \
        rueda_timeline_activity_str(function(kind, reduction)), text)
    (void)state;
    IS(rueda_timeline_negotiation, RUEDA_ALLREDUCE, RUEDA_ADASUM,
       "NEGOTIATE_ADASUM");
    IS(rueda_timeline_negotiation, RUEDA_ALLTOALL, RUEDA_SUM,
       "NEGOTIATE_ALLTOALL");
    IS(rueda_timeline_operation, RUEDA_REDUCE_SCATTER, RUEDA_SUM,
       "REDUCESCATTER");
    IS(rueda_timeline_operation, RUEDA_JOIN, RUEDA_SUM, "JOIN");
    IS(rueda_timeline_operation, RUEDA_RECV + 1, RUEDA_SUM, "PROCESS_SET");
    IS(rueda_timeline_collective, RUEDA_BROADCAST, RUEDA_SUM, "RUEDA_BCAST");
    IS(rueda_timeline_collective, RUEDA_BARRIER, RUEDA_SUM, "RUEDA_BARRIER");
    IS(rueda_timeline_collective, RUEDA_ALLREDUCE, RUEDA_ADASUM,
       "RUEDA_ADASUM_ALLREDUCE");
}

static void ranks_share_the_line_of_a_tensor_and_one_clock(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *zero = open_rank(fixture, 0, 4, 0);
    struct rueda_timeline *three = open_rank(fixture, 3, 4, 0);
    const char *json;
    const char *mine;
    const char *theirs;

    /* Their numbers differ, and so do their clocks. */
    rueda_timeline_begin(zero, "b", RUEDA_TIMELINE_BROADCAST);
    rueda_timeline_begin(zero, "a", RUEDA_TIMELINE_ALLREDUCE);
    rueda_timeline_begin(three, "a", RUEDA_TIMELINE_ALLGATHER);
    rueda_timeline_cycle(three);
    rueda_timeline_set_offset(three, 7000); /* found out meanwhile */
    carry(three, zero, 3);
    rueda_timeline_close(three);
    rueda_timeline_close(zero);

    json = load(fixture);
    mine = find(json, "B", "ALLREDUCE");
    theirs = find(json, "B", "ALLGATHER");
    assert_true(json_number(json_field(mine, "pid")) == 2);
    assert_true(json_number(json_field(theirs, "pid")) == 2);
    assert_null(json_field(mine, "tid"));
    assert_true(json_number(json_field(theirs, "tid")) == 3);
    assert_true(json_number(json_field(mine, "ts")) == 0);
    assert_true(json_number(json_field(theirs, "ts")) == 7);
    assert_true(
        json_number(json_field(find(json, "i", "CYCLE_START"), "tid")) == 3);
    assert_int_equal(count_events(json, "M", "process_name"), 3);
    assert_int_equal(count_events(json, "M", "thread_name"), 3);
}

static void times_of_a_rank_never_go_back(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *zero = open_rank(fixture, 0, 2, 0);
    struct rueda_timeline *one = open_rank(fixture, 1, 2, 0);
    const char *json;

    fixture->now_ns += 9000;
    rueda_timeline_begin(one, "a", RUEDA_TIMELINE_ALLREDUCE);
    carry(one, zero, 1);
    rueda_timeline_set_offset(one, -5000);
    rueda_timeline_begin(one, "a", RUEDA_TIMELINE_QUEUE);
    fixture->now_ns += 6500;
    rueda_timeline_begin(one, "a", RUEDA_TIMELINE_WAIT_FOR_DATA);
    carry(one, zero, 1);
    rueda_timeline_close(one);
    rueda_timeline_close(zero);

    json = load(fixture);
    assert_true(json_number(json_field(find(json, "B", "QUEUE"), "ts")) == 9);
    assert_true(json_number(json_field(find(json, "B", "WAIT_FOR_DATA"),
                                       "ts")) == 10.5);
}

static void any_name_makes_a_string(void **state)
{
    static const char *const names[] = {
        "quote \" backslash \\ slash /",
        "\x01\x02\n\t\x1f\x7f",
        "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x92\x83",
        "cut \xe2\x82",
        "wrong \xff\xc0\x80\xed\xa0\x80\xf5\x80\x80\x80 \x80",
        "",
    };
    const int count = sizeof(names) / sizeof(names[0]);
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    const char *json;

    for (int i = 0; i < count; i++)
        rueda_timeline_begin(timeline, names[i], RUEDA_TIMELINE_ALLREDUCE);
    rueda_timeline_begin(timeline, NULL, RUEDA_TIMELINE_BARRIER);
    rueda_timeline_close(timeline);

    json = load(fixture);
    assert_int_equal(count_events(json, "M", "process_name"), 1 + count);
    assert_non_null(strstr(json, "\"quote \\\" backslash \\\\ slash /\""));
    assert_non_null(strstr(json, "\"\\u0001\\u0002\\u000a\\u0009\\u001f"));
    assert_non_null(strstr(json, "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac"));
    assert_non_null(strstr(json, "\"cut \\ufffd\\ufffd\""));
    assert_non_null(strstr(json, "\"unnamed\""));
}

static void long_names_are_cut_and_told_apart(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    char name[10001];
    const char *json;

    memset(name, '\x01', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    rueda_timeline_begin(timeline, name, RUEDA_TIMELINE_ALLREDUCE);
    name[sizeof(name) - 2] = 'x';
    rueda_timeline_begin(timeline, name, RUEDA_TIMELINE_ALLGATHER);
    rueda_timeline_begin(timeline, name, RUEDA_TIMELINE_QUEUE);
    rueda_timeline_close(timeline);

    json = load(fixture);
    assert_int_equal(count_events(json, "M", "process_name"), 3);
    assert_true(json_number(json_field(find(json, "B", "ALLREDUCE"), "pid")) ==
                1);
    assert_true(json_number(json_field(find(json, "B", "ALLGATHER"), "pid")) ==
                2);
    assert_true(json_number(json_field(find(json, "B", "QUEUE"), "pid")) == 2);
    assert_null(find(json, "i", "LOST_EVENTS"));
}

/* Its negotiation is over: nothing of it is there, not even its name. */
static void what_began_before_is_left_out(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    const char *json;

    rueda_timeline_end(timeline, "old");
    rueda_timeline_begin(timeline, "old", RUEDA_TIMELINE_RUEDA_ALLREDUCE);
    rueda_timeline_end(timeline, "old");
    rueda_timeline_end_with(timeline, "old", RUEDA_UINT8, 0, NULL);
    rueda_timeline_begin(timeline, "new", RUEDA_TIMELINE_NEGOTIATE_ALLREDUCE);
    rueda_timeline_close(timeline);

    json = load(fixture);
    assert_int_equal(count_events(json, "B", NULL), 1);
    assert_int_equal(count_events(json, "E", NULL), 0);
    assert_int_equal(count_events(json, "M", "process_name"), 2);
}

static void begins_and_ends_come_in_pairs(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    const char *json;

    /* It began before the timeline did. */
    rueda_timeline_end(timeline, "a");
    /* An operation that was left in the middle. */
    rueda_timeline_begin(timeline, "a", RUEDA_TIMELINE_ALLREDUCE);
    rueda_timeline_begin(timeline, "a", RUEDA_TIMELINE_QUEUE);
    rueda_timeline_begin(timeline, "a", RUEDA_TIMELINE_NEGOTIATE_ALLREDUCE);
    rueda_timeline_end(timeline, "a");
    rueda_timeline_end(timeline, "a");
    rueda_timeline_close(timeline);

    json = load(fixture);
    assert_int_equal(count_events(json, "B", NULL), 3);
    assert_int_equal(count_events(json, "E", NULL), 3);
}

static void cycles_are_marked_where_asked_for(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline_args args = {
        .ranks = 1, .path = fixture->path, .marks_cycles = false};
    struct rueda_text error = {{0}};
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    const char *event;

    rueda_timeline_cycle(timeline);
    rueda_timeline_close(timeline);
    event = find(load(fixture), "i", "CYCLE_START");
    assert_true(is_text(event, "s", "g"));

    assert_int_equal(rueda_timeline_open(&args, &timeline, &error), RUEDA_OK);
    rueda_timeline_cycle(timeline);
    rueda_timeline_close(timeline);
    assert_null(find(load(fixture), "i", "CYCLE_START"));
}

/* ---- Limits ------------------------------------------------------------- */

static void a_full_buffer_drops_pairs_and_counts(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *zero = open_rank(fixture, 0, 2, 1 << 20);
    struct rueda_timeline *one = open_rank(fixture, 1, 2, 65536);
    const int many = 5000;
    const char *json;
    double lost;

    rueda_timeline_begin(one, "a", RUEDA_TIMELINE_ALLREDUCE);
    for (int i = 0; i < many; i++) {
        rueda_timeline_begin(one, "a", RUEDA_TIMELINE_QUEUE);
        rueda_timeline_end(one, "a");
    }
    rueda_timeline_end(one, "a");
    carry(one, zero, 1);
    /* There is room again. */
    rueda_timeline_begin(one, "b", RUEDA_TIMELINE_ALLTOALL);
    carry(one, zero, 1);
    rueda_timeline_close(one);
    rueda_timeline_close(zero);

    json = load(fixture);
    lost = json_number(json_field(
        json_field(find(json, "i", "LOST_EVENTS"), "args"), "count"));
    assert_true(lost > many);
    assert_int_equal(count_events(json, "i", "LOST_EVENTS"), 1);
    assert_int_equal(count_events(json, "B", NULL),
                     1 + count_events(json, "E", NULL));
    assert_int_equal(count_events(json, "B", NULL) +
                         count_events(json, "E", NULL) + lost,
                     2 * many + 3);
    assert_int_equal(count_events(json, "B", "ALLTOALL"), 1);
}

static void rank_0_keeps_names_of_blocks_that_it_drops(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *zero = open_rank(fixture, 0, 2, 65536);
    struct rueda_timeline *one = open_rank(fixture, 1, 2, 1 << 20);
    static unsigned char block[RUEDA_TIMELINE_BLOCK_MAX / 2];
    char name[32];
    const char *json;
    size_t len;

    /* More than the thread can write. */
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "tensor.%d", i);
        for (int j = 0; j < 1000; j++)
            rueda_timeline_arrival(one, name, j);
        len = rueda_timeline_take(one, block, sizeof(block));
        assert_true(len > 1000);
        assert_int_equal(rueda_timeline_add(zero, 1, block, len), RUEDA_OK);
    }
    usleep(300000);
    rueda_timeline_begin(one, "tensor.199", RUEDA_TIMELINE_ALLREDUCE);
    carry(one, zero, 1);
    rueda_timeline_close(one);
    rueda_timeline_close(zero);

    json = load(fixture);
    assert_non_null(find(json, "i", "LOST_EVENTS"));
    assert_non_null(find(json, "B", "ALLREDUCE"));
}

static void a_block_that_is_none_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *zero = open_rank(fixture, 0, 2, 0);
    struct rueda_timeline *one = open_rank(fixture, 1, 2, 0);
    unsigned char block[RUEDA_TIMELINE_ROOM_MIN];
    size_t len;

    rueda_timeline_begin(one, "a", RUEDA_TIMELINE_ALLREDUCE);
    len = rueda_timeline_take(one, block, sizeof(block));
    assert_int_equal(rueda_timeline_take(one, block, sizeof(block)), 0);
    assert_int_equal(rueda_timeline_add(zero, 1, block, len - 1),
                     RUEDA_ERR_INVALID);
    assert_int_equal(rueda_timeline_add(zero, 0, block, len),
                     RUEDA_ERR_INVALID);
    assert_int_equal(rueda_timeline_add(zero, 2, block, len),
                     RUEDA_ERR_INVALID);
    assert_int_equal(rueda_timeline_add(one, 1, block, len), RUEDA_ERR_INVALID);
    rueda_timeline_close(one);
    rueda_timeline_close(zero);
    assert_int_equal(count_events(load(fixture), "B", NULL), 0);
}

static void it_is_due_when_much_or_old(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *one = open_rank(fixture, 1, 2, 0);
    unsigned char block[RUEDA_TIMELINE_BLOCK_MAX];

    fixture->now_ns += 1000000000;
    assert_false(rueda_timeline_is_due(one));
    rueda_timeline_begin(one, "a", RUEDA_TIMELINE_ALLREDUCE);
    assert_true(rueda_timeline_is_due(one));
    assert_true(rueda_timeline_take(one, block, sizeof(block)) > 0);
    rueda_timeline_end(one, "a");
    assert_false(rueda_timeline_is_due(one));
    for (int i = 0; i < 1000; i++)
        rueda_timeline_arrival(one, "a", i);
    assert_true(rueda_timeline_is_due(one));
    rueda_timeline_close(one);
}

/* ---- Files -------------------------------------------------------------- */

static void a_missing_folder_is_said_in_words(void **state)
{
    const struct rueda_timeline_args args = {
        .ranks = 1, .path = "/nonexistent/folder/timeline.json"};
    struct rueda_text error = {{0}};
    struct rueda_timeline *timeline = NULL;

    (void)state;
    assert_int_equal(rueda_timeline_open(&args, &timeline, &error),
                     RUEDA_ERR_IO);
    assert_null(timeline);
    assert_non_null(strstr(error.chars, "/nonexistent/folder/timeline.json"));
    assert_non_null(strstr(error.chars, "is its folder there?"));
}

static void a_full_disk_ends_the_timeline_and_nothing_else(void **state)
{
    const struct rlimit little = {20000, RLIM_INFINITY};
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    for (int i = 0; i < 1000; i++)
        note_allreduce(fixture, timeline, "a");
    rueda_timeline_close(timeline);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);

    assert_int_equal(fixture->complaints, 1);
    assert_true(count_events(load(fixture), "B", NULL) > 10);
}

static void notes_reach_the_file_while_it_is_open(void **state)
{
    struct fixture *fixture = *state;
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 0);
    int begun = 0;

    note_allreduce(fixture, timeline, "a");
    for (int i = 0; i < 1000 && begun < 6; i++) {
        begun = count_events(load(fixture), "B", NULL);
        usleep(20000);
    }
    assert_int_equal(begun, 6);
    rueda_timeline_close(timeline);
}

/* Note as fast as the file can be written, until killed. */
_Noreturn static void note_for_ever(struct fixture *fixture, int ready_fd)
{
    struct rueda_timeline *timeline = open_rank(fixture, 0, 1, 65536);
    char name[32];

    (void)!write(ready_fd, "!", 1);
    for (int i = 0;; i++) {
        snprintf(name, sizeof(name), "tensor.%d", i % 1000);
        note_allreduce(fixture, timeline, name);
    }
}

static void a_job_killed_at_any_moment_leaves_whole_json(void **state)
{
    struct fixture *fixture = *state;
    int most = 0;

    for (int round = 0; round < 20; round++) {
        int ready[2];
        char byte;
        pid_t pid;
        int count;

        assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            note_for_ever(fixture, ready[1]);
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        usleep((useconds_t)(round * 1371 % 20000));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(ready[0]);

        load(fixture);
        count = (int)strlen(fixture->text);
        most = count > most ? count : most;
    }
    assert_true(most > 10000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_operation_is_in_the_file_as_in_the_contract),
        cmocka_unit_test(activities_are_named_after_kinds),
        TEST(ranks_share_the_line_of_a_tensor_and_one_clock),
        TEST(times_of_a_rank_never_go_back),
        TEST(any_name_makes_a_string),
        TEST(long_names_are_cut_and_told_apart),
        TEST(what_began_before_is_left_out),
        TEST(begins_and_ends_come_in_pairs),
        TEST(cycles_are_marked_where_asked_for),
        TEST(a_full_buffer_drops_pairs_and_counts),
        TEST(rank_0_keeps_names_of_blocks_that_it_drops),
        TEST(a_block_that_is_none_is_refused),
        TEST(it_is_due_when_much_or_old),
        cmocka_unit_test(a_missing_folder_is_said_in_words),
        TEST(a_full_disk_ends_the_timeline_and_nothing_else),
        TEST(notes_reach_the_file_while_it_is_open),
        TEST(a_job_killed_at_any_moment_leaves_whole_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
