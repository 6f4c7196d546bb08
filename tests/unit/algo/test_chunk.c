/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "algo/chunk.h"

static void assert_range(struct rueda_range range, size_t at, size_t count)
{
    assert_int_equal(range.at, at);
    assert_int_equal(range.count, count);
}

static void even_chunks_differ_by_one_at_most_and_leave_no_gap(void **state)
{
    (void)state;
    for (int parts = 1; parts <= 17; parts++)
        for (size_t count = 0; count <= 40; count++) {
            size_t at = 0;

            for (int i = 0; i < parts; i++) {
                const struct rueda_range chunk =
                    rueda_chunk_even(count, parts, i);

                assert_int_equal(chunk.at, at);
                assert_in_range(chunk.count, count / (size_t)parts,
                                count / (size_t)parts + 1);
                at = rueda_chunk_end(chunk);
            }
            assert_int_equal(at, count);
        }
}

static void listed_chunks_follow_one_another(void **state)
{
    const size_t counts[] = {3, 0, 5, 1};

    (void)state;
    assert_range(rueda_chunk_listed(counts, 9, 0), 0, 3);
    assert_range(rueda_chunk_listed(counts, 9, 1), 3, 0);
    assert_range(rueda_chunk_listed(counts, 9, 2), 3, 5);
    assert_range(rueda_chunk_listed(counts, 9, 3), 8, 1);
    assert_int_equal(rueda_chunk_total(counts, 9, 4), 9);
    assert_int_equal(rueda_chunk_longest(counts, 9, 4), 5);
}

static void chunks_without_a_list_are_equal(void **state)
{
    (void)state;
    assert_range(rueda_chunk_listed(NULL, 7, 3), 21, 7);
    assert_int_equal(rueda_chunk_total(NULL, 7, 4), 28);
    assert_int_equal(rueda_chunk_longest(NULL, 7, 4), 7);
}

static void pieces_cover_a_range_and_are_empty_beyond_it(void **state)
{
    const struct rueda_range range = {100, 10};
    const struct rueda_range nothing = {100, 0};

    (void)state;
    assert_int_equal(rueda_chunk_pieces(10, 4), 3);
    assert_int_equal(rueda_chunk_pieces(8, 4), 2);
    assert_int_equal(rueda_chunk_pieces(0, 4), 0);
    assert_range(rueda_chunk_piece(range, 4, 0), 100, 4);
    assert_range(rueda_chunk_piece(range, 4, 2), 108, 2);
    assert_range(rueda_chunk_piece(range, 4, 3), 110, 0);
    assert_range(rueda_chunk_piece(nothing, 4, 0), 100, 0);
}

static void halved_ranges_of_all_ranks_cover_the_vector_once(void **state)
{
    (void)state;
    for (int levels = 0; levels <= 4; levels++)
        for (size_t count = 0; count <= 40; count++) {
            int covered[40] = {0};

            for (int rank = 0; rank < 1 << levels; rank++) {
                const struct rueda_range range =
                    rueda_chunk_halved(count, rank, levels);

                for (size_t i = 0; i < range.count; i++)
                    covered[range.at + i]++;
            }
            for (size_t i = 0; i < count; i++)
                assert_int_equal(covered[i], 1);
        }
}

static void partners_split_what_both_had(void **state)
{
    (void)state;
    for (int rank = 0; rank < 16; rank++)
        for (int level = 0; level < 4; level++) {
            const int upper = rank | 1 << level;
            const int lower = upper ^ 1 << level;
            const struct rueda_range both = rueda_chunk_halved(37, rank, level);
            const struct rueda_range low =
                rueda_chunk_halved(37, lower, level + 1);
            const struct rueda_range high =
                rueda_chunk_halved(37, upper, level + 1);

            assert_int_equal(low.at, both.at);
            assert_int_equal(high.at, rueda_chunk_end(low));
            assert_int_equal(rueda_chunk_end(high), rueda_chunk_end(both));
        }
}

static void log2_is_that_of_the_power_of_two_below(void **state)
{
    (void)state;
    assert_int_equal(rueda_chunk_log2(1), 0);
    assert_int_equal(rueda_chunk_log2(2), 1);
    assert_int_equal(rueda_chunk_log2(3), 1);
    assert_int_equal(rueda_chunk_log2(4), 2);
    assert_int_equal(rueda_chunk_log2(1023), 9);
    assert_int_equal(rueda_chunk_log2(1024), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_chunks_differ_by_one_at_most_and_leave_no_gap),
        cmocka_unit_test(listed_chunks_follow_one_another),
        cmocka_unit_test(chunks_without_a_list_are_equal),
        cmocka_unit_test(pieces_cover_a_range_and_are_empty_beyond_it),
        cmocka_unit_test(halved_ranges_of_all_ranks_cover_the_vector_once),
        cmocka_unit_test(partners_split_what_both_had),
        cmocka_unit_test(log2_is_that_of_the_power_of_two_below),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
