/* SPDX-License-Identifier: Apache-2.0 */
/* What launcher and agents say, sealed. */
#include "auth/sealed_stream.h"
#include "unit/unit.h"

/* Two ends of a stream, and what is on the way from one to the other. */
struct ends {
    struct rueda_sealed_stream one;
    struct rueda_sealed_stream other;
    struct rueda_buffer wire;
    struct rueda_buffer got;
};

static int make_ends(void **state)
{
    static struct ends ends;
    const struct rueda_key session = {.bytes = {1, 2, 3}, .present = true};

    ends = (struct ends){.wire = {.bytes = NULL}};
    *state = &ends;
    return rueda_sealed_stream_init(&ends.one, &session, RUEDA_INITIATOR) ==
                       RUEDA_OK &&
                   rueda_sealed_stream_init(&ends.other, &session,
                                            RUEDA_ACCEPTOR) == RUEDA_OK
               ? 0
               : -1;
}

static int drop_ends(void **state)
{
    struct ends *ends = *state;

    rueda_sealed_stream_fini(&ends->one);
    rueda_sealed_stream_fini(&ends->other);
    rueda_buffer_fini(&ends->wire);
    rueda_buffer_fini(&ends->got);
    return 0;
}

static void send_text(struct ends *ends, const char *text)
{
    assert_true(rueda_sealed_stream_close(
        &ends->one, (const unsigned char *)text, strlen(text), &ends->wire));
}

static void expect_text(struct ends *ends, const char *text)
{
    assert_int_equal(rueda_buffer_len(&ends->got), strlen(text));
    assert_memory_equal(rueda_buffer_front(&ends->got), text, strlen(text));
}

static void bytes_arrive_however_they_are_cut(void **state)
{
    struct ends *ends = *state;
    struct rueda_buffer part = {.bytes = NULL};

    send_text(ends, "a line");
    send_text(ends, " and more");
    while (rueda_buffer_len(&ends->wire) > 0) {
        assert_true(
            rueda_buffer_add(&part, rueda_buffer_front(&ends->wire), 1));
        rueda_buffer_drop(&ends->wire, 1);
        assert_true(rueda_sealed_stream_open(&ends->other, &part, &ends->got));
    }
    expect_text(ends, "a line and more");
    rueda_buffer_fini(&part);
}

static void nobody_on_the_way_can_read_them(void **state)
{
    struct ends *ends = *state;

    send_text(ends, "a secret of some length");
    assert_null(memmem(rueda_buffer_front(&ends->wire),
                       rueda_buffer_len(&ends->wire), "secret", 6));
    assert_true(
        rueda_sealed_stream_open(&ends->other, &ends->wire, &ends->got));
    expect_text(ends, "a secret of some length");
}

static void a_change_of_any_byte_is_noticed(void **state)
{
    struct ends *ends = *state;
    size_t len;

    send_text(ends, "pay me");
    len = rueda_buffer_len(&ends->wire);
    for (size_t i = 0; i < len; i++) {
        struct rueda_sealed_stream other = ends->other;
        struct rueda_buffer copy = {.bytes = NULL};
        struct rueda_buffer got = {.bytes = NULL};

        assert_true(
            rueda_buffer_add(&copy, rueda_buffer_front(&ends->wire), len));
        copy.bytes[i] ^= 1;
        assert_false(rueda_sealed_stream_open(&other, &copy, &got));
        assert_int_equal(rueda_buffer_len(&got), 0);
        rueda_buffer_fini(&copy);
        rueda_buffer_fini(&got);
    }
}

static void long_ones_go_in_several_pieces(void **state)
{
    struct ends *ends = *state;
    const size_t len = 2 * RUEDA_SEAL_MOST_BYTES + 5;
    unsigned char *bytes = malloc(len);

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(i % 251);
    assert_true(rueda_sealed_stream_close(&ends->one, bytes, len, &ends->wire));
    assert_true(
        rueda_sealed_stream_open(&ends->other, &ends->wire, &ends->got));
    assert_int_equal(rueda_buffer_len(&ends->got), len);
    assert_memory_equal(rueda_buffer_front(&ends->got), bytes, len);
    free(bytes);
}

static void there_is_no_cover_without_a_key(void **state)
{
    const struct rueda_key none = {.present = false};
    struct rueda_sealed_stream stream;

    (void)state;
    assert_int_equal(rueda_sealed_stream_init(&stream, &none, RUEDA_INITIATOR),
                     RUEDA_ERR_AUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_arrive_however_they_are_cut,
                                        make_ends, drop_ends),
        cmocka_unit_test_setup_teardown(nobody_on_the_way_can_read_them,
                                        make_ends, drop_ends),
        cmocka_unit_test_setup_teardown(a_change_of_any_byte_is_noticed,
                                        make_ends, drop_ends),
        cmocka_unit_test_setup_teardown(long_ones_go_in_several_pieces,
                                        make_ends, drop_ends),
        cmocka_unit_test(there_is_no_cover_without_a_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
