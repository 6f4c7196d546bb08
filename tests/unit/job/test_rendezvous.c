/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and changes of an elastic job as bytes; the seat that asks for ranks.
 */
#include "job/rendezvous.h"
#include "unit/unit.h"

static const struct rueda_rendezvous_ranks example = {.term = 7,
                                                      .rank = 4,
                                                      .size = 6,
                                                      .local_rank = 1,
                                                      .local_size = 3,
                                                      .cross_rank = 0,
                                                      .cross_size = 2};

static void a_place_is_read_as_it_was_written(void **state)
{
    unsigned char bytes[RUEDA_RENDEZVOUS_BYTES];
    struct rueda_text words = {{0}};
    struct rueda_rendezvous_ranks place;

    (void)state;
    rueda_rendezvous_write(&example, bytes);
    assert_int_equal(
        rueda_rendezvous_read(bytes, sizeof(bytes), &place, &words), RUEDA_OK);
    assert_memory_equal(&place, &example, sizeof(place));
}

static void expect_nonsense(struct rueda_rendezvous_ranks place)
{
    unsigned char bytes[RUEDA_RENDEZVOUS_BYTES];
    struct rueda_text words = {{0}};
    struct rueda_rendezvous_ranks out;

    rueda_rendezvous_write(&place, bytes);
    assert_int_equal(rueda_rendezvous_read(bytes, sizeof(bytes), &out, &words),
                     RUEDA_ERR_INVALID);
}

static void places_that_make_no_sense_are_rejected(void **state)
{
    unsigned char bytes[RUEDA_RENDEZVOUS_BYTES];
    struct rueda_text words = {{0}};
    struct rueda_rendezvous_ranks place = example;

    (void)state;
    place.term = 0;
    expect_nonsense(place);
    place = example;
    place.rank = 6;
    expect_nonsense(place);
    place.rank = -1;
    expect_nonsense(place);
    place = example;
    place.local_rank = 3;
    expect_nonsense(place);
    place = example;
    place.cross_size = 7;
    expect_nonsense(place);
    place = example;
    place.size = 0;
    expect_nonsense(place);
    rueda_rendezvous_write(&example, bytes);
    for (size_t len = 0; len < sizeof(bytes); len++)
        assert_int_equal(rueda_rendezvous_read(bytes, len, &place, &words),
                         RUEDA_ERR_INVALID);
}

static void a_refusal_has_words(void **state)
{
    unsigned char bytes[1 + RUEDA_TEXT_BYTES];
    struct rueda_text words = {{0}};
    struct rueda_rendezvous_ranks place;
    const size_t len = rueda_rendezvous_write_refusal("not any more", bytes);

    (void)state;
    assert_int_equal(rueda_rendezvous_read(bytes, len, &place, &words),
                     RUEDA_ERR_CLOSED);
    assert_string_equal(words.chars, "not any more");
}

static void changes_are_read_as_they_were_written(void **state)
{
    const struct rueda_rendezvous_change example_change = {.term = 3,
                                                           .flags = 2};
    unsigned char bytes[RUEDA_RENDEZVOUS_CHANGE_BYTES];
    struct rueda_rendezvous_change change;

    (void)state;
    rueda_rendezvous_change_write(&example_change, bytes);
    assert_true(rueda_rendezvous_change_read(bytes, sizeof(bytes), &change));
    assert_memory_equal(&change, &example_change, sizeof(change));
    assert_false(
        rueda_rendezvous_change_read(bytes, sizeof(bytes) - 1, &change));
}

/* ---- Seats -------------------------------------------------------------- */

static const char *worker = NULL;

static const char *environment(void *arg, const char *name)
{
    (void)arg;
    if (strcmp(name, "RUEDA_RANK") == 0)
        return "0";
    if (strcmp(name, "RUEDA_SIZE") == 0)
        return "1";
    if (strcmp(name, "RUEDA_STORE") == 0)
        return "127.0.0.1:4000";
    return strcmp(name, "RUEDA_ELASTIC_WORKER") == 0 ? worker : NULL;
}

static void a_numbered_process_has_a_store_even_if_it_is_alone(void **state)
{
    const struct rueda_seat_query query = {.environment = environment,
                                           .rank = -1,
                                           .size = -1,
                                           .local_rank = -1,
                                           .local_size = -1,
                                           .cross_rank = -1,
                                           .cross_size = -1};
    struct rueda_text error = {{0}};
    struct rueda_seat seat;

    (void)state;
    worker = NULL;
    assert_int_equal(rueda_seat_find(&query, &seat, &error), RUEDA_OK);
    assert_int_equal(seat.worker, -1);
    worker = "12";
    assert_int_equal(rueda_seat_find(&query, &seat, &error), RUEDA_OK);
    assert_int_equal(seat.worker, 12);
    assert_string_equal(seat.store, "127.0.0.1:4000");
    worker = "-1";
    assert_int_equal(rueda_seat_find(&query, &seat, &error), RUEDA_ERR_INVALID);
    assert_non_null(strstr(error.chars, "only ruedarun sets it"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_read_as_it_was_written),
        cmocka_unit_test(places_that_make_no_sense_are_rejected),
        cmocka_unit_test(a_refusal_has_words),
        cmocka_unit_test(changes_are_read_as_they_were_written),
        cmocka_unit_test(a_numbered_process_has_a_store_even_if_it_is_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
