/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ends of a meeting say to each other, over a socket pair. */
#include <sys/socket.h>

#include "auth/shake.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "segment/wire.h"
#include "unit/unit.h"

#define MS   ((int64_t)1000000)
#define SOON (rueda_clock_ns() + 5 * MS)
#define LATE (rueda_clock_ns() + 20000 * MS)

struct line {
    int a;
    int b;
    struct rueda_text words;
};

static int line_open(void **state)
{
    static struct line line;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
        return -1;
    line = (struct line){.a = ends[0], .b = ends[1]};
    *state = &line;
    return 0;
}

static int line_close(void **state)
{
    struct line *line = *state;

    rueda_fd_close(line->a);
    rueda_fd_close(line->b);
    return 0;
}

static void hang_up(struct line *line)
{
    rueda_fd_close(line->a);
    line->a = -1;
}

/* ---- The caller -------------------------------------------------- */

static void who_i_am_survives_the_way(void **state)
{
    static const int pairs[][2] = {
        {0, 1}, {3, 8}, {1023, 1024}, {0, 65536}, {INT32_MAX - 1, INT32_MAX}};

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        unsigned char about[RUEDA_MEET_ABOUT_BYTES];
        int rank = -7;
        int size = -7;

        rueda_meet_about_write(about, pairs[i][0], pairs[i][1]);
        assert_true(rueda_meet_about_read(about, sizeof(about), &rank, &size));
        assert_int_equal(rank, pairs[i][0]);
        assert_int_equal(size, pairs[i][1]);
    }
}

static void numbers_travel_lowest_byte_first(void **state)
{
    static const unsigned char wanted[] = {4, 3, 2, 1, 8, 7, 6, 5};
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];

    (void)state;
    rueda_meet_about_write(about, 0x01020304, 0x05060708);
    assert_memory_equal(about, wanted, sizeof(wanted));
}

static void hostile_bytes_are_no_rank(void **state)
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES + 1];
    int rank = -7;
    int size = -7;

    (void)state;
    memset(about, 0xff, sizeof(about));
    assert_false(rueda_meet_about_read(NULL, 8, &rank, &size));
    for (size_t bytes = 0; bytes <= sizeof(about); bytes++)
        if (bytes != RUEDA_MEET_ABOUT_BYTES)
            assert_false(rueda_meet_about_read(about, bytes, &rank, &size));
    assert_int_equal(rank, -7);
    assert_int_equal(size, -7);
    /* Numbers beyond an int come out negative, which fits no job. */
    assert_true(
        rueda_meet_about_read(about, RUEDA_MEET_ABOUT_BYTES, &rank, &size));
    assert_int_equal(rank, -1);
    assert_int_equal(size, -1);
}

/* Every user can list the names of sockets. */
static void a_socket_has_a_name_of_user_and_job_that_shows_no_job(void **state)
{
    char wanted[128];
    char other[128];
    char name[128];

    (void)state;
    snprintf(wanted, sizeof(wanted), "rueda-%u-", (unsigned)geteuid());
    rueda_meet_name(name, sizeof(name), "night");
    assert_memory_equal(name, wanted, strlen(wanted));
    assert_null(strstr(name, "night"));
    rueda_meet_name(other, sizeof(other), "night");
    assert_string_equal(name, other);
    rueda_meet_name(other, sizeof(other), "nighs");
    assert_string_not_equal(name, other);
}

/* ---- Bytes and descriptors ------------------------------------------- */

static void all_bytes_come_or_the_deadline(void **state)
{
    struct line *line = *state;
    char got[8] = "";

    assert_int_equal(rueda_stream_send_all(line->a, "12345", 5, LATE),
                     RUEDA_OK);
    assert_int_equal(rueda_stream_recv_all(line->b, got, 3, LATE), RUEDA_OK);
    assert_string_equal(got, "123");
    assert_int_equal(rueda_stream_recv_all(line->b, got, 3, SOON),
                     RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_stream_recv_all(line->b, got, 1, 0),
                     RUEDA_ERR_TIMEOUT);
    hang_up(line);
    assert_int_equal(rueda_stream_recv_all(line->b, got, 1, LATE),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_stream_send_all(line->b, got, 1, LATE),
                     RUEDA_ERR_PEER_LOST);
}

static void
a_peer_that_does_not_read_costs_no_more_than_the_deadline(void **state)
{
    static char bytes[4 << 20];
    struct line *line = *state;

    assert_int_equal(rueda_stream_send_all(line->a, bytes, sizeof(bytes), SOON),
                     RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_meet_send_fds(line->a, &line->b, 1, SOON),
                     RUEDA_ERR_TIMEOUT);
}

static void more_descriptors_than_one_message_holds_pass_in_parts(void **state)
{
    enum {
        COUNT = 2 * RUEDA_UNIX_MOST_FDS + 1
    };
    struct line *line = *state;
    int before = count_descriptors();
    int sent[COUNT];
    int got[COUNT];

    for (int i = 0; i < COUNT; i++)
        sent[i] = line->a;
    assert_int_equal(rueda_meet_send_fds(line->a, sent, COUNT, LATE), RUEDA_OK);
    assert_int_equal(rueda_meet_recv_fds(line->b, got, COUNT, LATE), RUEDA_OK);

    assert_int_equal(count_descriptors(), before + COUNT);
    for (int i = 0; i < COUNT; i++)
        close(got[i]);
}

static void descriptors_that_do_not_come_are_a_failure(void **state)
{
    struct line *line = *state;
    int got[2];

    assert_int_equal(rueda_meet_recv_fds(line->b, got, 2, SOON),
                     RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_stream_send_all(line->a, "f", 1, LATE), RUEDA_OK);
    assert_int_equal(rueda_meet_recv_fds(line->b, got, 2, LATE),
                     RUEDA_ERR_INVALID);
    hang_up(line);
    assert_int_equal(rueda_meet_recv_fds(line->b, got, 2, LATE),
                     RUEDA_ERR_PEER_LOST);
    assert_int_equal(rueda_meet_send_fds(line->b, got, 0, LATE), RUEDA_OK);
    assert_int_equal(rueda_meet_send_fds(line->b, &line->b, 1, LATE),
                     RUEDA_ERR_PEER_LOST);
}

/* ---- Kinds ----------------------------------------------------------- */

/* What the receiver makes of these bytes, after which the sender hangs up. */
static rueda_status kind_of(struct line *line, const void *bytes, size_t len)
{
    rueda_status status;

    assert_int_equal(rueda_stream_send_all(line->a, bytes, len, LATE),
                     RUEDA_OK);
    hang_up(line);
    status = rueda_meet_recv_kind(line->b, RUEDA_MEET_GO, LATE, &line->words);
    if (status != RUEDA_ERR_TIMEOUT)
        assert_true(rueda_text_is_empty(&line->words));
    return status;
}

static void the_kind_that_is_wanted_is_success(void **state)
{
    assert_int_equal(kind_of(*state, "g", 1), RUEDA_OK);
}

static void another_kind_is_not_understood(void **state)
{
    assert_int_equal(kind_of(*state, "r", 1), RUEDA_ERR_INVALID);
}

static void a_failure_brings_its_status_and_words(void **state)
{
    struct line *line = *state;
    struct rueda_text why = {"rank 3 came twice"};

    rueda_meet_fail(line->a, RUEDA_ERR_TIMEOUT, &why);
    assert_int_equal(kind_of(line, "", 0), RUEDA_ERR_TIMEOUT);
    assert_string_equal(line->words.chars, why.chars);
}

static void the_longest_words_pass_whole(void **state)
{
    struct line *line = *state;
    struct rueda_text why;

    memset(why.chars, 'w', sizeof(why.chars) - 1);
    why.chars[sizeof(why.chars) - 1] = '\0';
    rueda_meet_fail(line->a, RUEDA_ERR_TIMEOUT, &why);
    assert_int_equal(kind_of(line, "", 0), RUEDA_ERR_TIMEOUT);
    assert_string_equal(line->words.chars, why.chars);
}

static void words_too_long_are_not_read(void **state)
{
    assert_int_equal(kind_of(*state, "f\x01\x00\x04xxx", 7), RUEDA_ERR_INVALID);
}

static void the_most_words_are_not_read(void **state)
{
    assert_int_equal(kind_of(*state, "f\x01\xff\xff", 4), RUEDA_ERR_INVALID);
}

static void words_that_break_off_are_a_lost_peer(void **state)
{
    assert_int_equal(kind_of(*state, "f\x01\x05\x00wor", 7),
                     RUEDA_ERR_PEER_LOST);
}

static void a_length_that_breaks_off_is_a_lost_peer(void **state)
{
    assert_int_equal(kind_of(*state, "f\x01\x05", 3), RUEDA_ERR_PEER_LOST);
}

static void a_failure_without_a_status_is_not_understood(void **state)
{
    assert_int_equal(kind_of(*state, "f\x00\x01\x00w", 5), RUEDA_ERR_INVALID);
}

static void no_kind_at_all_is_a_lost_peer(void **state)
{
    assert_int_equal(kind_of(*state, "", 0), RUEDA_ERR_PEER_LOST);
}

static void nobody_to_tell_why_is_no_harm(void **state)
{
    struct line *line = *state;
    struct rueda_text why = {"nobody hears this"};

    hang_up(line);
    rueda_meet_fail(line->b, RUEDA_ERR_TIMEOUT, &why);
}

/* ---- Handshake ------------------------------------------------------- */

/* Both ends of a handshake, stepped in turn until both have ended. */
static void shake(struct line *line, struct rueda_handshake ends[2],
                  rueda_status out[2])
{
    int fds[2] = {line->a, line->b};

    out[0] = out[1] = RUEDA_IN_PROGRESS;
    for (int turn = 0; turn < 100; turn++) {
        int i = turn % 2;

        if (out[i] == RUEDA_IN_PROGRESS)
            out[i] = rueda_shake_step(fds[i], &ends[i]);
        if (out[i] < 0)
            shutdown(fds[i], SHUT_RDWR);
    }
}

static void shake_init(struct rueda_handshake ends[2],
                       const struct rueda_key keys[2])
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];

    rueda_meet_about_write(about, 3, 8);
    assert_int_equal(rueda_handshake_init(&ends[0], RUEDA_INITIATOR,
                                          RUEDA_FOR_SEGMENT, &keys[0], about,
                                          sizeof(about)),
                     RUEDA_OK);
    assert_int_equal(rueda_handshake_init(&ends[1], RUEDA_ACCEPTOR,
                                          RUEDA_FOR_SEGMENT, &keys[1], NULL, 0),
                     RUEDA_OK);
}

static void a_handshake_swallows_nothing_that_follows_it(void **state)
{
    const struct rueda_key keys[2] = {{.present = false}, {.present = false}};
    struct line *line = *state;
    struct rueda_handshake ends[2];
    rueda_status status[2];
    const void *about;
    size_t bytes;
    int rank;
    int size;
    int fd;

    shake_init(ends, keys);
    shake(line, ends, status);
    assert_int_equal(status[0], RUEDA_OK);
    assert_int_equal(status[1], RUEDA_OK);
    about = rueda_handshake_peer_about(&ends[1], &bytes);
    assert_true(rueda_meet_about_read(about, bytes, &rank, &size));
    assert_int_equal(rank, 3);
    assert_int_equal(size, 8);

    assert_int_equal(rueda_meet_send_fds(line->a, &line->a, 1, LATE), RUEDA_OK);
    assert_int_equal(rueda_shake_step(line->b, &ends[1]), RUEDA_OK);
    assert_int_equal(rueda_meet_recv_fds(line->b, &fd, 1, LATE), RUEDA_OK);
    close(fd);
    rueda_handshake_fini(&ends[0]);
    rueda_handshake_fini(&ends[1]);
}

static void different_keys_do_not_agree(void **state)
{
    struct rueda_key keys[2] = {{.present = true}, {.present = true}};
    struct line *line = *state;
    struct rueda_handshake ends[2];
    rueda_status status[2];

    keys[1].bytes[5] = 1;
    shake_init(ends, keys);
    shake(line, ends, status);
    assert_int_equal(status[0], RUEDA_ERR_AUTH);
    assert_int_equal(status[1], RUEDA_ERR_AUTH);
    rueda_handshake_fini(&ends[0]);
    rueda_handshake_fini(&ends[1]);
}

static void who_hangs_up_during_a_handshake_is_lost(void **state)
{
    const struct rueda_key keys[2] = {{.present = false}, {.present = false}};
    struct line *line = *state;
    struct rueda_handshake ends[2];

    shake_init(ends, keys);
    assert_int_equal(rueda_shake_step(line->b, &ends[1]), RUEDA_IN_PROGRESS);
    hang_up(line);
    assert_int_equal(rueda_shake_step(line->b, &ends[1]), RUEDA_ERR_PEER_LOST);
    rueda_handshake_fini(&ends[0]);
    rueda_handshake_fini(&ends[1]);
}

#define LINE(test) cmocka_unit_test_setup_teardown(test, line_open, line_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_i_am_survives_the_way),
        cmocka_unit_test(numbers_travel_lowest_byte_first),
        cmocka_unit_test(hostile_bytes_are_no_rank),
        cmocka_unit_test(a_socket_has_a_name_of_user_and_job_that_shows_no_job),
        LINE(all_bytes_come_or_the_deadline),
        LINE(a_peer_that_does_not_read_costs_no_more_than_the_deadline),
        LINE(more_descriptors_than_one_message_holds_pass_in_parts),
        LINE(descriptors_that_do_not_come_are_a_failure),
        LINE(the_kind_that_is_wanted_is_success),
        LINE(another_kind_is_not_understood),
        LINE(a_failure_brings_its_status_and_words),
        LINE(the_longest_words_pass_whole),
        LINE(words_too_long_are_not_read),
        LINE(the_most_words_are_not_read),
        LINE(words_that_break_off_are_a_lost_peer),
        LINE(a_length_that_breaks_off_is_a_lost_peer),
        LINE(a_failure_without_a_status_is_not_understood),
        LINE(no_kind_at_all_is_a_lost_peer),
        LINE(nobody_to_tell_why_is_no_harm),
        LINE(a_handshake_swallows_nothing_that_follows_it),
        LINE(different_keys_do_not_agree),
        LINE(who_hangs_up_during_a_handshake_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
