/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* Longer than any text. */
static void fill(char *words, size_t bytes)
{
    memset(words, 'x', bytes - 1);
    words[bytes - 1] = '\0';
}

static void a_text_keeps_the_first_words(void **state)
{
    struct rueda_text text = {{0}};

    (void)state;
    assert_true(rueda_text_is_empty(&text));
    rueda_text_set(&text, "rank %d died", 3);
    rueda_text_set(&text, "rank %d complains", 4);

    assert_false(rueda_text_is_empty(&text));
    assert_string_equal(text.chars, "rank 3 died");
}

static void words_can_be_added(void **state)
{
    struct rueda_text text = {{0}};

    (void)state;
    rueda_text_add(&text, "ranks %d", 1);
    rueda_text_add(&text, ", %d", 2);

    assert_string_equal(text.chars, "ranks 1, 2");
}

static void long_words_are_cut(void **state)
{
    struct {
        struct rueda_text text;
        char guard[8];
    } room = {.guard = "untouch"};
    char words[2000];

    (void)state;
    fill(words, sizeof(words));

    rueda_text_set(&room.text, "%s", words);
    assert_int_equal(strlen(room.text.chars), sizeof(room.text.chars) - 1);
    rueda_text_add(&room.text, "more");
    assert_int_equal(strlen(room.text.chars), sizeof(room.text.chars) - 1);

    memset(&room.text, 0, sizeof(room.text));
    rueda_text_set(&room.text, "begin ");
    rueda_text_add(&room.text, "%s", words);
    assert_int_equal(strlen(room.text.chars), sizeof(room.text.chars) - 1);
    assert_int_equal(strncmp(room.text.chars, "begin xxx", 9), 0);
    assert_string_equal(room.guard, "untouch");
}

static void words_of_others_move_no_cursor(void **state)
{
    struct rueda_text text = {"rank 3 \033[2J\r\n\177died \xc3\xa9"};

    (void)state;
    rueda_text_clean(&text);
    assert_string_equal(text.chars, "rank 3  [2J   died \xc3\xa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_keeps_the_first_words),
        cmocka_unit_test(words_can_be_added),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(words_of_others_move_no_cursor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
