/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets of rank 2 in a job of 6. */
#include "job/set.h"
#include "job/set_text.h"
#include "unit/unit.h"

#define RANK 2
#define SIZE 6

static int table_make(void **state)
{
    *state = rueda_set_table_new(RANK, SIZE);
    return *state != NULL ? 0 : -1;
}

static int table_drop(void **state)
{
    rueda_set_table_free(*state);
    return 0;
}

static int add(struct rueda_set_table *table, const int *ranks, int count)
{
    struct rueda_text error = {{0}};
    int id = -7;

    assert_int_equal(rueda_set_add(table, ranks, count, &id, &error), RUEDA_OK);
    assert_true(rueda_text_is_empty(&error));
    return id;
}

/* Ids grow, and few of them have been used. */
static int count_sets(const struct rueda_set_table *table)
{
    int count = 0;

    for (int id = 0; id <= 2 * RUEDA_SET_MAX; id++)
        count += rueda_set_find(table, id) != NULL ? 1 : 0;
    return count;
}

/* Refused with these words, and nothing has changed. */
static void check_refused(struct rueda_set_table *table, const int *ranks,
                          int count, rueda_status status, const char *words)
{
    struct rueda_text error = {{0}};
    int before = count_sets(table);
    int id = -7;

    assert_int_equal(rueda_set_add(table, ranks, count, &id, &error), status);
    assert_non_null(strstr(error.chars, words));
    assert_int_equal(id, -7);
    assert_int_equal(count_sets(table), before);
}

static void a_table_begins_with_the_set_of_all_ranks(void **state)
{
    struct rueda_set_table *table = *state;
    const struct rueda_set *all = rueda_set_find(table, RUEDA_SET_GLOBAL);

    assert_int_equal(count_sets(table), 1);
    assert_non_null(all);
    assert_int_equal(all->id, 0);
    assert_int_equal(all->size, SIZE);
    assert_int_equal(all->me, RANK);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(all->ranks[i], i);
}

static void ranks_of_a_set_are_in_order(void **state)
{
    static const int ranks[] = {5, 0, 2};
    struct rueda_set_table *table = *state;
    const struct rueda_set *set = rueda_set_find(table, add(table, ranks, 3));

    assert_int_equal(set->size, 3);
    assert_int_equal(set->ranks[0], 0);
    assert_int_equal(set->ranks[1], 2);
    assert_int_equal(set->ranks[2], 5);
    assert_int_equal(set->me, 1);
    assert_int_equal(rueda_set_index(set, 0), 0);
    assert_int_equal(rueda_set_index(set, 5), 2);
    assert_int_equal(rueda_set_index(set, 3), -1);
    assert_int_equal(rueda_set_index(set, -1), -1);
    assert_true(rueda_set_has(set, 2));
    assert_false(rueda_set_has(set, 6));
}

static void i_need_not_be_a_member(void **state)
{
    static const int ranks[] = {4, 1};
    struct rueda_set_table *table = *state;

    assert_int_equal(rueda_set_find(table, add(table, ranks, 2))->me, -1);
}

static void lists_that_cannot_be_are_refused(void **state)
{
    static const int twice[] = {3, 1, 3};
    static const int high[] = {1, 6};
    static const int low[] = {1, -1};
    struct rueda_set_table *table = *state;

    check_refused(table, twice, 0, RUEDA_ERR_INVALID, "without ranks");
    check_refused(table, twice, -1, RUEDA_ERR_INVALID, "without ranks");
    check_refused(table, NULL, 2, RUEDA_ERR_INVALID, "without ranks");
    check_refused(table, twice, 3, RUEDA_ERR_INVALID,
                  "rank 3 is in a process "
                  "set twice");
    check_refused(table, high, 2, RUEDA_ERR_INVALID,
                  "rank 6 in a process set; the job's ranks go from 0 to 5");
    check_refused(table, low, 2, RUEDA_ERR_INVALID, "rank -1");
}

static void a_set_that_is_there_is_not_made_again(void **state)
{
    static const int ranks[] = {1, 3};
    static const int turned[] = {3, 1};
    static const int prefix[] = {1, 3, 4};
    static const int all[] = {5, 4, 3, 2, 1, 0};
    struct rueda_set_table *table = *state;
    struct rueda_text error = {{0}};

    assert_int_equal(add(table, ranks, 2), 1);
    check_refused(table, turned, 2, RUEDA_ERR_INVALID,
                  "process set 1 has these ranks already");
    check_refused(table, all, SIZE, RUEDA_ERR_INVALID,
                  "process set 0 has these ranks already");
    assert_int_equal(add(table, prefix, 3), 2);
    assert_int_equal(rueda_set_remove(table, 1, &error), RUEDA_OK);
    assert_int_equal(add(table, turned, 2), 3);
}

static void ids_grow_and_are_never_used_again(void **state)
{
    struct rueda_set_table *table = *state;
    struct rueda_text error = {{0}};

    for (int rank = 0; rank < 4; rank++)
        assert_int_equal(add(table, &rank, 1), rank + 1);
    assert_int_equal(rueda_set_remove(table, 4, &error), RUEDA_OK);
    assert_int_equal(rueda_set_remove(table, 2, &error), RUEDA_OK);
    assert_int_equal(add(table, (int[]){1}, 1), 5);
    assert_null(rueda_set_find(table, 2));
    assert_null(rueda_set_find(table, 4));
    assert_null(rueda_set_find(table, 6));
    assert_null(rueda_set_find(table, -1));
    assert_int_equal(rueda_set_find(table, 3)->ranks[0], 2);
    assert_int_equal(rueda_set_find(table, 5)->ranks[0], 1);
}

static void what_is_not_there_is_not_removed(void **state)
{
    struct rueda_set_table *table = *state;
    struct rueda_text error = {{0}};

    assert_int_equal(rueda_set_remove(table, 0, &error), RUEDA_ERR_INVALID);
    assert_non_null(strstr(error.chars, "set 0 has all ranks and stays"));
    memset(&error, 0, sizeof(error));
    assert_int_equal(rueda_set_remove(table, 1, &error), RUEDA_ERR_INVALID);
    assert_string_equal(error.chars, "there is no process set 1");
    memset(&error, 0, sizeof(error));
    add(table, (int[]){1}, 1);
    assert_int_equal(rueda_set_remove(table, 1, &error), RUEDA_OK);
    assert_int_equal(rueda_set_remove(table, 1, &error), RUEDA_ERR_INVALID);
    assert_string_equal(error.chars, "there is no process set 1 any more");
    assert_int_equal(count_sets(table), 1);
}

static void there_is_room_for_a_limited_number_of_sets(void **state)
{
    struct rueda_set_table *table = rueda_set_table_new(0, 12);
    struct rueda_text error = {{0}};
    int ranks[12];
    int id = 0;

    (void)state;
    assert_non_null(table);
    /* The bits of a number choose the ranks: no list comes twice. */
    for (unsigned bits = 1; bits <= RUEDA_SET_MAX; bits++) {
        int count = 0;

        for (int rank = 0; rank < 12; rank++)
            if ((bits >> rank & 1) != 0)
                ranks[count++] = rank;
        if (bits < RUEDA_SET_MAX)
            assert_int_equal(add(table, ranks, count), bits);
        else
            check_refused(table, ranks, count, RUEDA_ERR_LIMIT,
                          "1024 process sets");
    }
    assert_int_equal(count_sets(table), RUEDA_SET_MAX);
    assert_int_equal(rueda_set_remove(table, 7, &error), RUEDA_OK);
    ranks[0] = 10;
    assert_int_equal(rueda_set_add(table, ranks, 1, &id, &error), RUEDA_OK);
    assert_int_equal(id, RUEDA_SET_MAX);
    rueda_set_table_free(table);
}

/* ---- As text ------------------------------------------------------------ */

static void test_text(void **state)
{
    const char *text = "0,2; 4-6,1;3";
    struct rueda_text error = {""};
    int ranks[8];

    (void)state;
    assert_int_equal(rueda_set_text_next(&text, 8, ranks, &error), 2);
    assert_int_equal(ranks[0], 0);
    assert_int_equal(ranks[1], 2);
    assert_int_equal(rueda_set_text_next(&text, 8, ranks, &error), 4);
    assert_int_equal(ranks[0], 4);
    assert_int_equal(ranks[2], 6);
    assert_int_equal(ranks[3], 1);
    assert_int_equal(rueda_set_text_next(&text, 8, ranks, &error), 1);
    assert_int_equal(rueda_set_text_next(&text, 8, ranks, &error), 0);
    assert_string_equal(error.chars, "");
}

static void test_text_that_is_none(void **state)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"a", "process sets are ranks"},
        {"1,,2", "process sets are ranks"},
        {"1 2", "process sets are ranks"},
        {"3-1", "process sets are ranks"},
        {"-1", "process sets are ranks"},
        {"8", "rank 8 in a job of 8"},
        {"2-99", "rank 99 in a job of 8"},
        {"0-7,0", "twice"},
        {"1-", "process sets are ranks"},
        {"99999999999999999999", "in a job of 8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = cases[i].text;
        struct rueda_text error = {""};
        int ranks[8];

        assert_int_equal(rueda_set_text_next(&text, 8, ranks, &error), -1);
        assert_non_null(strstr(error.chars, cases[i].words));
    }
}

static void assert_word(const char *text, const char *shown)
{
    char word[RUEDA_SET_WORD_BYTES];

    assert_int_equal(rueda_set_word(text, 1000, word), RUEDA_OK);
    if (shown[0] == '\0')
        assert_string_equal(word, "");
    else
        assert_string_equal(word + 17, shown);
}

static void long_lists_of_sets_are_shortened(void **state)
{
    struct rueda_text list = {{0}};
    struct rueda_text error = {{0}};
    char words[2][RUEDA_SET_WORD_BYTES];

    (void)state;
    assert_word("", "");
    assert_word(" ; ", "");
    assert_word("0,2;1-3", "0,2;1-3");
    for (int i = 0; i < 100; i++)
        rueda_text_add(&list, i > 0 ? ";1" : "1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rueda_set_word(list.chars, 1000, words[i]), RUEDA_OK);
        assert_int_equal(strlen(words[i]), RUEDA_SET_WORD_BYTES - 1);
        rueda_text_add(&list, ";777");
    }
    assert_false(rueda_set_word_is_same(words[0], words[1]));
    rueda_set_word_explain(3, words[0], 5, words[1], &error);
    assert_non_null(strstr(error.chars, "rank 3 has \"1;1;1"));
    assert_non_null(strstr(error.chars, "...;1;1"));
    assert_non_null(strstr(error.chars, ";1;1;777\"; all ranks"));
}

int main(void)
{
#define with_table(test)                                                       \
    cmocka_unit_test_setup_teardown(test, table_make, table_drop)
    const struct CMUnitTest tests[] = {
        with_table(a_table_begins_with_the_set_of_all_ranks),
        with_table(ranks_of_a_set_are_in_order),
        with_table(i_need_not_be_a_member),
        with_table(lists_that_cannot_be_are_refused),
        with_table(a_set_that_is_there_is_not_made_again),
        with_table(ids_grow_and_are_never_used_again),
        with_table(what_is_not_there_is_not_removed),
        cmocka_unit_test(there_is_room_for_a_limited_number_of_sets),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_that_is_none),
        cmocka_unit_test(long_lists_of_sets_are_shortened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
