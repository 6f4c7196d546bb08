/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "job/pmi_wire.h"
#include "os/clock.h"
#include "unit/unit.h"

#define MS ((int64_t)1000000)

/* A wire whose other end the test holds. */
struct ends {
    struct rueda_pmi_wire wire;
    struct rueda_text error;
    int peer;
};

static int ends_open(void **state)
{
    static struct ends ends;
    int pair[2];

    *state = &ends;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return -1;
    ends.peer = pair[1];
    ends.error.chars[0] = '\0';
    rueda_pmi_wire_init(&ends.wire, pair[0], rueda_clock_ns() + 20000 * MS,
                        &ends.error);
    return 0;
}

static int ends_close(void **state)
{
    struct ends *ends = *state;

    close(ends->wire.fd);
    close(ends->peer);
    return 0;
}

/* ---- Pairs, numbers, digits ---------------------------------------------- */

static const char *value_in(bool is_counted, const char *answer,
                            const char *key, char *out, size_t bytes)
{
    struct rueda_pmi_wire *wire = calloc(1, sizeof(*wire));
    bool is_there;

    assert_non_null(wire);
    wire->is_counted = is_counted;
    snprintf(wire->answer, sizeof(wire->answer), "%s", answer);
    is_there = rueda_pmi_value(wire, key, out, bytes);
    free(wire);
    return is_there ? out : "(none)";
}

static void a_value_is_found_by_its_whole_key(void **state)
{
    static const struct {
        bool is_counted;
        const char *answer;
        const char *value;
    } cases[] = {
        {false, "cmd=a key=b", "b"},
        {false, "key=b cmd=a", "b"},
        {false, "  cmd=a   key=b  ", "b"},
        {false, "cmd=a key=", ""},
        {false, "cmd=a key=b=c", "b=c"},
        {false, "cmd=a key=b;c", "b;c"},
        {false, "cmd=a key=b key=c", "b"},
        {false, "cmd=a keys=b", "(none)"},
        {false, "cmd=a akey=b", "(none)"},
        {false, "cmd=a key", "(none)"},
        {false, "cmd=key=b", "(none)"},
        {false, "", "(none)"},
        {false, " ", "(none)"},
        {false, "=", "(none)"},
        {true, "cmd=a;key=b;", "b"},
        {true, "cmd=a;key=b c;", "b c"},
        {true, "cmd=a;;;key=b", "b"},
        {true, ";", "(none)"},
        {true, "cmd=a key=b;", "(none)"},
    };
    char out[16];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(value_in(cases[i].is_counted, cases[i].answer,
                                     "key", out, sizeof(out)),
                            cases[i].value);
}

static void a_value_that_does_not_fit_is_none(void **state)
{
    char out[4] = "old";

    (void)state;
    assert_string_equal(value_in(false, "key=1234", "key", out, 4), "(none)");
    assert_string_equal(out, "old");
    assert_string_equal(value_in(false, "key=123", "key", out, 4), "123");
}

static void every_byte_survives_as_digits(void **state)
{
    unsigned char bytes[256];
    unsigned char back[256];
    char text[513];

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    rueda_pmi_hex_write(bytes, sizeof(bytes), text);
    assert_int_equal(strlen(text), 512);
    assert_true(rueda_pmi_hex_read(text, back, sizeof(back)));
    assert_memory_equal(back, bytes, sizeof(bytes));
}

static void digits_that_are_not_ours_are_refused(void **state)
{
    static const char *const none[] = {"",     "1",     "123",  "12345",
                                       "12g4", "12 34", "-123", "12A4"};
    char out[2];

    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(rueda_pmi_hex_read(none[i], out, 2));
    assert_true(rueda_pmi_hex_read("12a4", out, 2));
}

/* ---- Messages ------------------------------------------------------------ */

/* What came to the other end, as text. */
static const char *heard(struct ends *ends)
{
    static char text[2048];
    ssize_t got = recv(ends->peer, text, sizeof(text) - 1, MSG_DONTWAIT);

    text[got > 0 ? got : 0] = '\0';
    return text;
}

static void say(struct ends *ends, const char *bytes, size_t len)
{
    assert_int_equal(send(ends->peer, bytes, len, 0), len);
}

/* The head, and as much after it as makes a line of this length. */
static void long_line(char *out, size_t bytes, const char *head)
{
    size_t len = (size_t)snprintf(out, bytes, "%s", head);

    memset(out + len, 'x', bytes - len);
    out[bytes - 1] = '\n';
}

static void a_line_goes_out_and_a_line_comes_in(void **state)
{
    struct ends *ends = *state;

    say(ends, "cmd=b x=1\ncmd=d\n", 16);
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a n=%d", 5),
                     RUEDA_OK);
    assert_string_equal(ends->wire.answer, "cmd=b x=1");
    assert_string_equal(heard(ends), "cmd=a n=5\n");
    assert_int_equal(rueda_pmi_ask(&ends->wire, "d", "cmd=c"), RUEDA_OK);
    assert_string_equal(ends->wire.answer, "cmd=d");
}

static void a_counted_message_has_its_length_before_it(void **state)
{
    struct ends *ends = *state;

    ends->wire.is_counted = true;
    say(ends, "6     cmd=b;     6cmd=d;", 24);
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a;"), RUEDA_OK);
    assert_string_equal(heard(ends), "6     cmd=a;");
    assert_int_equal(rueda_pmi_ask(&ends->wire, "d", "cmd=c;"), RUEDA_OK);
}

static void the_longest_answers_are_taken(void **state)
{
    static char text[RUEDA_PMI_MOST_IN];
    struct ends *ends = *state;

    long_line(text, sizeof(text), "cmd=b ");
    say(ends, text, sizeof(text));
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a"), RUEDA_OK);

    ends->wire.is_counted = true;
    long_line(text, sizeof(text), "4090  cmd=b;");
    say(ends, text, sizeof(text));
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a;"), RUEDA_OK);
}

static void too_long_a_command_is_not_sent(void **state)
{
    static char name[RUEDA_PMI_MOST_OUT];
    struct ends *ends = *state;

    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=%s", name),
                     RUEDA_ERR_INVALID);
    assert_string_equal(heard(ends), "");
}

static void a_zero_in_an_answer_is_refused(void **state)
{
    struct ends *ends = *state;

    say(ends, "cmd=b\0x=1\n", 10);
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a"),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(ends->error.chars, "a zero in it"));
}

static void words_of_the_other_side_are_kept_short(void **state)
{
    struct ends *ends = *state;
    char text[400];

    long_line(text, sizeof(text), "cmd=b rc=1 msg=");
    say(ends, text, sizeof(text));
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a"),
                     RUEDA_ERR_INVALID);
    assert_non_null(strstr(ends->error.chars, "code 1"));
    assert_null(strstr(ends->error.chars, "xxxx"));
}

static void a_full_socket_is_waited_for_until_the_deadline(void **state)
{
    static char bytes[65536];
    struct ends *ends = *state;

    while (send(ends->wire.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
    ends->wire.deadline_ns = rueda_clock_ns() + 20 * MS;
    assert_int_equal(rueda_pmi_ask(&ends->wire, "b", "cmd=a"),
                     RUEDA_ERR_TIMEOUT);
}

#define ENDS(test) cmocka_unit_test_setup_teardown(test, ends_open, ends_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_its_whole_key),
        cmocka_unit_test(a_value_that_does_not_fit_is_none),
        cmocka_unit_test(every_byte_survives_as_digits),
        cmocka_unit_test(digits_that_are_not_ours_are_refused),
        ENDS(a_line_goes_out_and_a_line_comes_in),
        ENDS(a_counted_message_has_its_length_before_it),
        ENDS(the_longest_answers_are_taken),
        ENDS(too_long_a_command_is_not_sent),
        ENDS(a_zero_in_an_answer_is_refused),
        ENDS(words_of_the_other_side_are_kept_short),
        ENDS(a_full_socket_is_waited_for_until_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
