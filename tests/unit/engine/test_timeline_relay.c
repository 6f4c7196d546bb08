/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of other ranks as they come to rank 0, whatever is in them. */
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "engine/lanes.h"
#include "job/job.h"
#include "unit/unit.h"

#define RANKS  3
#define NUMBER 7 /* of the timeline */
#define HEAD   5

static struct rueda_formation formation = {.rank = 0, .size = RANKS};
static struct rueda_job job = {.formation = &formation};
static bool told[RANKS];

static struct rueda_lanes open_lanes(void)
{
    const struct rueda_timeline_args args = {.ranks = RANKS,
                                             .path = "/dev/null"};
    struct rueda_lanes lanes = {.job = &job,
                                .formation = &formation,
                                .relay = {.number = NUMBER, .told = told}};
    struct rueda_text error = {{0}};

    memset(told, 0, sizeof(told));
    assert_int_equal(rueda_timeline_open(&args, &lanes.relay.file, &error),
                     RUEDA_OK);
    return lanes;
}

static void hear(struct rueda_lanes *lanes, int rank, uint32_t number,
                 bool is_last, size_t len)
{
    unsigned char message[HEAD + 32];

    memset(message, 0xff, sizeof(message));
    rueda_put_u32(message, number);
    message[4] = is_last;
    rueda_relay_heard(lanes, rank, message, len);
}

static void who_has_told_all_is_counted(void **state)
{
    struct rueda_lanes lanes = open_lanes();

    (void)state;
    hear(&lanes, 1, NUMBER, true, HEAD);
    hear(&lanes, 1, NUMBER, true, HEAD);
    assert_int_equal(lanes.relay.told_count, 1);
    hear(&lanes, 2, NUMBER, true, HEAD);
    assert_int_equal(lanes.relay.told_count, 2);
    /* It goes on. */
    hear(&lanes, 1, NUMBER, false, HEAD);
    assert_int_equal(lanes.relay.told_count, 1);
    assert_true(told[2] && !told[1]);
    rueda_timeline_close(lanes.relay.file);
}

static void notes_of_another_timeline_are_left_out(void **state)
{
    struct rueda_lanes lanes = open_lanes();
    struct rueda_timeline *file = lanes.relay.file;

    (void)state;
    hear(&lanes, 1, NUMBER - 1, true, HEAD);
    hear(&lanes, 1, NUMBER + 1, true, HEAD + 32);
    assert_int_equal(lanes.relay.told_count, 0);
    lanes.relay.file = NULL;
    hear(&lanes, 1, NUMBER, true, HEAD);
    assert_int_equal(lanes.relay.told_count, 0);
    rueda_timeline_close(file);
}

static void what_makes_no_sense_counts_for_nothing(void **state)
{
    static const int ranks[] = {-1, 0, RANKS, 1 << 30, INT32_MIN};
    struct rueda_lanes lanes = open_lanes();

    (void)state;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
        hear(&lanes, ranks[i], NUMBER, true, HEAD);
    for (size_t len = 0; len < HEAD; len++)
        hear(&lanes, 1, NUMBER, true, len);
    for (size_t len = HEAD + 1; len <= HEAD + 32; len++)
        hear(&lanes, 1, NUMBER, true, len);
    assert_int_equal(lanes.relay.told_count, 0);
    rueda_timeline_close(lanes.relay.file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_told_all_is_counted),
        cmocka_unit_test(notes_of_another_timeline_are_left_out),
        cmocka_unit_test(what_makes_no_sense_counts_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
