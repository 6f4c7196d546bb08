/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks print: lines, the last of them, and the exception among them. */
#include "launch/lines.h"
#include "launch/tail.h"
#include "unit/unit.h"

/* Pieces as they are delivered: "<a\n>" begins a line, "+<b>" goes on. */
struct record {
    char text[512];
    size_t bytes; /* of all pieces */
};

static void note(void *arg, const char *bytes, size_t len, bool is_begin)
{
    struct record *record = arg;
    const size_t at = strlen(record->text);

    snprintf(record->text + at, sizeof(record->text) - at, "%s<%.*s>",
             is_begin ? "" : "+", (int)(len < 64 ? len : 64), bytes);
    record->bytes += len;
}

static void feed(struct rueda_lines *lines, struct record *record,
                 const char *text)
{
    rueda_lines_feed(lines, text, strlen(text), note, record);
}

static void a_line_is_delivered_when_its_end_comes(void **state)
{
    struct rueda_lines lines = {.bytes = NULL};
    struct record record = {.bytes = 0};

    (void)state;
    feed(&lines, &record, "a");
    assert_string_equal(record.text, "");
    feed(&lines, &record, "b\nc");
    assert_string_equal(record.text, "<ab\n>");
    feed(&lines, &record, "\n\nd\n");
    assert_string_equal(record.text, "<ab\n><c\n><\n><d\n>");
    rueda_lines_end(&lines, note, &record);
    assert_string_equal(record.text, "<ab\n><c\n><\n><d\n>");
}

static void the_rest_comes_at_the_end_as_it_is(void **state)
{
    struct rueda_lines lines = {.bytes = NULL};
    struct record record = {.bytes = 0};

    (void)state;
    feed(&lines, &record, "a\nrest");
    rueda_lines_end(&lines, note, &record);
    assert_string_equal(record.text, "<a\n><rest>");
}

static void a_return_ends_a_line_as_progress_bars_want_it(void **state)
{
    struct rueda_lines lines = {.bytes = NULL};
    struct record record = {.bytes = 0};

    (void)state;
    feed(&lines, &record, "10%\r20%\r30%");
    assert_string_equal(record.text, "<10%\r><20%\r>");
    feed(&lines, &record, "\r\nx\r");
    assert_string_equal(record.text, "<10%\r><20%\r><30%\r\n><x\r>");
    feed(&lines, &record, "\ny\n");
    assert_string_equal(record.text, "<10%\r><20%\r><30%\r\n><x\r>+<\n><y\n>");
    rueda_lines_end(&lines, note, &record);
}

static void any_byte_may_be_in_a_line(void **state)
{
    struct rueda_lines lines = {.bytes = NULL};
    struct record record = {.bytes = 0};
    char all[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    rueda_lines_feed(&lines, all, sizeof(all), note, &record);
    rueda_lines_end(&lines, note, &record);
    assert_int_equal(record.bytes, 256);
}

static void a_long_line_stays_whole(void **state)
{
    const size_t len = (size_t)10 << 20;
    struct rueda_lines lines = {.bytes = NULL};
    struct record record = {.bytes = 0};
    char *text = malloc(len);

    (void)state;
    assert_non_null(text);
    memset(text, 'x', len);
    text[len - 1] = '\n';
    for (size_t at = 0; at < len; at += 4096)
        rueda_lines_feed(&lines, text + at, 4096, note, &record);
    assert_int_equal(record.bytes, len);
    assert_null(strchr(record.text, '+'));
    rueda_lines_end(&lines, note, &record);
    free(text);
}

static void a_line_without_end_is_not_kept_for_ever(void **state)
{
    struct rueda_lines lines = {.bytes = NULL};
    struct record record = {.bytes = 0};
    const size_t piece = (size_t)1 << 20;
    char *text = malloc(piece);

    (void)state;
    assert_non_null(text);
    memset(text, 'x', piece);
    for (size_t fed = 0; fed < RUEDA_LINES_MOST + 2 * piece; fed += piece)
        rueda_lines_feed(&lines, text, piece, note, &record);
    assert_int_equal(record.bytes, RUEDA_LINES_MOST);
    rueda_lines_feed(&lines, "\n", 1, note, &record);
    assert_int_equal(record.bytes, RUEDA_LINES_MOST + 2 * piece + 1);
    assert_non_null(strstr(record.text, ">+<"));
    rueda_lines_end(&lines, note, &record);
    free(text);
}

/* ---- The last lines ----------------------------------------------------- */

static bool add(struct rueda_tail *tail, const char *line)
{
    return rueda_tail_add(tail, line, strlen(line));
}

static void the_last_lines_are_kept_in_order(void **state)
{
    struct rueda_tail tail = {.count = 0};
    char line[16];

    (void)state;
    assert_null(rueda_tail_line(&tail, 0));
    for (int i = 0; i < RUEDA_TAIL_LINES + 5; i++) {
        snprintf(line, sizeof(line), "line %d\n", i);
        add(&tail, line);
        add(&tail, "\n");
    }
    assert_string_equal(rueda_tail_line(&tail, 0), "line 5");
    assert_string_equal(rueda_tail_line(&tail, RUEDA_TAIL_LINES - 1),
                        "line 14");
    assert_null(rueda_tail_line(&tail, RUEDA_TAIL_LINES));
}

static void what_a_terminal_would_obey_is_not_repeated(void **state)
{
    struct rueda_tail tail = {.count = 0};

    (void)state;
    add(&tail, "\033[31mred\a\r\n");
    assert_string_equal(rueda_tail_line(&tail, 0), "?[31mred?");
}

static void the_exception_of_a_traceback_is_found(void **state)
{
    struct rueda_tail tail = {.count = 0};

    (void)state;
    assert_false(add(&tail, "ValueError: not in a traceback\n"));
    assert_false(add(&tail, "Traceback (most recent call last):\n"));
    assert_false(add(&tail, "  File \"a.py\", line 1, in <module>\n"));
    assert_false(add(&tail, "    f()\n"));
    assert_true(add(&tail, "ValueError: no\n"));
    assert_string_equal(tail.exception, "ValueError: no");
    assert_false(add(&tail, "\n"));
    assert_false(add(&tail, "During handling of the above exception, another "
                            "exception occurred:\n"));
    assert_false(add(&tail, "Traceback (most recent call last):\n"));
    assert_false(add(&tail, "  File \"a.py\", line 3, in <module>\n"));
    assert_true(add(&tail, "KeyError: 'x'\n"));
    assert_string_equal(tail.exception, "KeyError: 'x'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_delivered_when_its_end_comes),
        cmocka_unit_test(the_rest_comes_at_the_end_as_it_is),
        cmocka_unit_test(a_return_ends_a_line_as_progress_bars_want_it),
        cmocka_unit_test(any_byte_may_be_in_a_line),
        cmocka_unit_test(a_long_line_stays_whole),
        cmocka_unit_test(a_line_without_end_is_not_kept_for_ever),
        cmocka_unit_test(the_last_lines_are_kept_in_order),
        cmocka_unit_test(what_a_terminal_would_obey_is_not_repeated),
        cmocka_unit_test(the_exception_of_a_traceback_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
