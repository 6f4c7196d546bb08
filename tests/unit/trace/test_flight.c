/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/flight.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct views {
    struct rueda_segment *of[2];
};

static int open_views(void **state)
{
    static struct views views;
    struct rueda_text error = {{0}};

    *state = &views;
    return rueda_segment_threads(2, views.of, &error) == RUEDA_OK ? 0 : -1;
}

static int close_views(void **state)
{
    struct views *views = *state;

    rueda_segment_close(views->of[0]);
    rueda_segment_close(views->of[1]);
    return 0;
}

static void note(struct rueda_segment *segment, uint64_t number)
{
    const struct rueda_flight_event event = {
        .step = number % 2 == 0 ? RUEDA_FLIGHT_STARTED : RUEDA_FLIGHT_ENDED,
        .kind = RUEDA_ALLGATHER,
        .number = number,
        .bytes = 10 * number,
    };

    rueda_flight_note(segment, &event);
}

static void others_read_what_a_rank_noted(void **state)
{
    struct views *views = *state;
    struct rueda_flight_event event;

    note(views->of[1], 6);
    note(views->of[1], 7);

    assert_int_equal(rueda_flight_count(views->of[0], 1), 2);
    assert_int_equal(rueda_flight_count(views->of[0], 0), 0);
    assert_true(rueda_flight_read(views->of[0], 1, 1, &event));
    assert_int_equal(event.step, RUEDA_FLIGHT_ENDED);
    assert_int_equal(event.kind, RUEDA_ALLGATHER);
    assert_int_equal(event.number, 7);
    assert_int_equal(event.bytes, 70);
    assert_false(rueda_flight_read(views->of[0], 1, 2, &event));
}

static void old_events_give_way_to_new_ones(void **state)
{
    struct views *views = *state;
    struct rueda_flight_event event;

    for (uint64_t i = 0; i < 1000; i++)
        note(views->of[0], i);

    assert_int_equal(rueda_flight_count(views->of[1], 0), 1000);
    assert_false(rueda_flight_read(views->of[1], 0, 0, &event));
    for (uint64_t i = 900; i < 1000; i++) {
        assert_true(rueda_flight_read(views->of[1], 0, i, &event));
        assert_int_equal(event.number, i);
    }
    /* Its neighbour's are untouched. */
    assert_int_equal(rueda_flight_count(views->of[1], 1), 0);
}

static void the_last_event_is_told_in_words(void **state)
{
    struct views *views = *state;
    struct rueda_text words = {"rank 1 died"};

    rueda_flight_tell(views->of[0], 1, &words);
    assert_string_equal(words.chars, "rank 1 died");
    note(views->of[1], 4);
    rueda_flight_tell(views->of[0], 1, &words);
    assert_string_equal(
        words.chars, "rank 1 died; it was in allgather number 4 of 40 bytes");
}

#define NOTED 300000

static void *note_many(void *arg)
{
    for (uint64_t i = 0; i < NOTED; i++)
        note(arg, i);
    return NULL;
}

/* The oldest events, since those are overwritten next. */
static void an_event_is_whole_while_others_are_written(void **state)
{
    struct views *views = *state;
    struct rueda_flight_event event;
    pthread_t writer;
    uint64_t count;

    assert_int_equal(pthread_create(&writer, NULL, note_many, views->of[0]), 0);
    do {
        count = rueda_flight_count(views->of[1], 0);
        for (uint64_t i = count > 130 ? count - 130 : 0; i < count; i++) {
            if (!rueda_flight_read(views->of[1], 0, i, &event))
                continue;
            assert_int_equal(event.number, i);
            assert_int_equal(event.bytes, 10 * i);
            assert_int_equal(event.step, i % 2 == 0 ? RUEDA_FLIGHT_STARTED
                                                    : RUEDA_FLIGHT_ENDED);
        }
    } while (count < NOTED);
    pthread_join(writer, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_read_what_a_rank_noted,
                                        open_views, close_views),
        cmocka_unit_test_setup_teardown(old_events_give_way_to_new_ones,
                                        open_views, close_views),
        cmocka_unit_test_setup_teardown(
            an_event_is_whole_while_others_are_written, open_views,
            close_views),
        cmocka_unit_test_setup_teardown(the_last_event_is_told_in_words,
                                        open_views, close_views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
