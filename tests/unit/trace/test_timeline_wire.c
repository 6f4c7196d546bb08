/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/timeline_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES RUEDA_TIMELINE_RECORD_MAX

static const struct rueda_timeline_record records[] = {
    {.what = RUEDA_TIMELINE_NAME, .id = 1, .name = "a\0b", .name_len = 3},
    {.what = RUEDA_TIMELINE_BEGIN,
     .activity = RUEDA_TIMELINE_QUEUE,
     .id = RUEDA_TIMELINE_NAMES,
     .time_ns = INT64_MAX},
    {.what = RUEDA_TIMELINE_END, .id = 7, .time_ns = 12, .dims = -1},
    {.what = RUEDA_TIMELINE_END,
     .id = 7,
     .dtype = RUEDA_BFLOAT16,
     .dims = 2,
     .shape = {3, UINT64_MAX}},
    {.what = RUEDA_TIMELINE_END, .id = 7, .dims = 0},
    {.what = RUEDA_TIMELINE_ARRIVAL, .id = 3, .rank = 4095},
    {.what = RUEDA_TIMELINE_CYCLE, .time_ns = 99},
    {.what = RUEDA_TIMELINE_LOST, .lost = (uint64_t)1 << 40},
};
#define RECORDS (sizeof(records) / sizeof(records[0]))

static void what_is_written_is_read(void **state)
{
    unsigned char bytes[BYTES];
    struct rueda_timeline_record record;

    (void)state;
    for (size_t i = 0; i < RECORDS; i++) {
        const size_t len = rueda_timeline_write(&records[i], bytes);

        assert_int_equal(rueda_timeline_read(bytes, len, &record), len);
        assert_int_equal(record.what, records[i].what);
        assert_int_equal(record.id, records[i].id);
        assert_int_equal(record.time_ns, records[i].time_ns);
        if (record.what == RUEDA_TIMELINE_NAME) {
            assert_int_equal(record.name_len, 3);
            assert_memory_equal(record.name, "a\0b", 3);
        } else if (record.what == RUEDA_TIMELINE_BEGIN) {
            assert_int_equal(record.activity, records[i].activity);
        } else if (record.what == RUEDA_TIMELINE_END) {
            assert_int_equal(record.dims, records[i].dims);
            for (int j = 0; j < record.dims; j++)
                assert_true(record.shape[j] == records[i].shape[j]);
        } else if (record.what == RUEDA_TIMELINE_ARRIVAL) {
            assert_int_equal(record.rank, 4095);
        } else if (record.what == RUEDA_TIMELINE_LOST) {
            assert_true(record.lost == records[i].lost);
        }
    }
}

static void a_record_that_is_cut_is_none(void **state)
{
    unsigned char bytes[BYTES];
    struct rueda_timeline_record record;

    (void)state;
    for (size_t i = 0; i < RECORDS; i++) {
        const size_t len = rueda_timeline_write(&records[i], bytes);

        for (size_t cut = 0; cut < len; cut++) {
            unsigned char *part = malloc(cut + 1);

            assert_non_null(part);
            memcpy(part, bytes, cut);
            assert_int_equal(rueda_timeline_read(part, cut, &record), 0);
            free(part);
        }
    }
}

/* Change one byte of a record; it must be refused. */
static void refuses(size_t which, size_t at, unsigned char value)
{
    unsigned char bytes[BYTES] = {0};
    struct rueda_timeline_record record;

    rueda_timeline_write(&records[which], bytes);
    bytes[at] = value;
    assert_int_equal(rueda_timeline_read(bytes, sizeof(bytes), &record), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    refuses(0, 0, 6);    /* no such kind */
    refuses(0, 2, 0);    /* an empty name */
    refuses(0, 4, 0);    /* a name without a number */
    refuses(0, 1, 1);    /* a code where there is none */
    refuses(1, 1, 255);  /* no such activity */
    refuses(1, 2, 1);    /* bytes behind a begin */
    refuses(1, 4, 1);    /* a number beyond the last */
    refuses(1, 15, 128); /* a time before all times */
    refuses(3, 16, 11);  /* no such dtype */
    refuses(3, 17, 3);   /* fewer bytes than dimensions */
    refuses(3, 17, 33);  /* too many dimensions */
    refuses(5, 19, 255); /* a negative rank */
    refuses(6, 4, 1);    /* a cycle of a tensor */
    refuses(7, 2, 7);    /* half of a count */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_record_that_is_cut_is_none),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
