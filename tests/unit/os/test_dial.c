/* SPDX-License-Identifier: Apache-2.0 */
#include "os/dial.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "unit/unit.h"

#define SECOND ((int64_t)1000000000)
#define PAUSE  ((int64_t)1000000)

/* A dialler with two addresses, one of which may have a listener. The time is
 * the test's own. */
struct phone {
    struct rueda_dial dial;
    struct rueda_address addresses[2];
    int listeners[2];
    int64_t now_ns;
    int watched;
    int lines;
    char last[512];
};

static void hear(void *arg, rueda_log_level level, const char *line)
{
    struct phone *phone = arg;

    (void)level;
    phone->lines++;
    snprintf(phone->last, sizeof(phone->last), "%s", line);
}

static void on_watch(void *arg, int fd)
{
    assert_true(fd >= 0);
    ((struct phone *)arg)->watched++;
}

static void begin(struct phone *phone, int64_t limit_ns)
{
    const struct rueda_dial_args args = {.addresses = phone->addresses,
                                         .address_count = 2,
                                         .first_pause_ns = PAUSE,
                                         .most_pause_ns = 4 * PAUSE,
                                         .limit_ns = limit_ns,
                                         .watch = on_watch,
                                         .arg = phone};

    rueda_dial_init(&phone->dial, &args, 0, phone->now_ns);
}

static int open_phone(void **state)
{
    struct phone *phone = calloc(1, sizeof(*phone));
    struct rueda_text error = {{0}};
    struct rueda_address any;

    *state = phone;
    phone->now_ns = SECOND;
    phone->dial.fd = -1;
    rueda_log_set_sink(hear, phone);
    if (rueda_address_find("127.0.0.1:0", &any, 1, &error) != 1)
        return -1;
    for (int i = 0; i < 2; i++)
        if (rueda_socket_listen(&any, &phone->listeners[i],
                                &phone->addresses[i]) != RUEDA_OK)
            return -1;
    return 0;
}

static void stop_listening(struct phone *phone, int i)
{
    rueda_fd_close(phone->listeners[i]);
    phone->listeners[i] = -1;
}

static int close_phone(void **state)
{
    struct phone *phone = *state;

    rueda_dial_fini(&phone->dial);
    rueda_dial_fini(&phone->dial);
    stop_listening(phone, 0);
    stop_listening(phone, 1);
    rueda_log_set_sink(NULL, NULL);
    free(phone);
    return 0;
}

/* Step until it is connected, pauses or gives up; loopback takes no time. */
static rueda_status step(struct phone *phone, bool *out_is_new)
{
    rueda_status status;

    for (int i = 0; i < 1000; i++) {
        status = rueda_dial_step(&phone->dial, phone->now_ns, out_is_new);
        if (phone->dial.stage != RUEDA_DIAL_CONNECTING)
            return status;
        rueda_fd_wait(phone->dial.fd, true, SECOND / 100);
    }
    return RUEDA_ERR_TIMEOUT;
}

static void the_next_address_is_tried_after_a_refusal(void **state)
{
    struct phone *phone = *state;
    bool is_new;

    stop_listening(phone, 0);
    begin(phone, INT64_MAX);
    assert_int_equal(step(phone, &is_new), RUEDA_OK);
    assert_true(is_new);
    assert_int_equal(phone->dial.way, 1);
    assert_int_equal(phone->dial.cause, ECONNREFUSED);
    assert_true(phone->watched > 0);
    assert_int_equal(step(phone, &is_new), RUEDA_OK);
    assert_false(is_new);
    rueda_fd_close(rueda_dial_take(&phone->dial));
    assert_int_equal(phone->dial.fd, -1);
}

static void each_round_is_followed_by_a_longer_pause(void **state)
{
    static const int64_t pauses[] = {PAUSE, 2 * PAUSE, 4 * PAUSE, 4 * PAUSE};
    struct phone *phone = *state;
    bool is_new;

    stop_listening(phone, 0);
    stop_listening(phone, 1);
    begin(phone, INT64_MAX);
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_int_equal(step(phone, &is_new), RUEDA_IN_PROGRESS);
        assert_int_equal(phone->dial.dead_ends, 2 * (i + 1));
        assert_int_equal(rueda_dial_next_ns(&phone->dial) - phone->now_ns,
                         pauses[i]);
        phone->now_ns = rueda_dial_next_ns(&phone->dial);
    }
}

static void it_gives_up_at_the_limit_with_the_reason(void **state)
{
    struct phone *phone = *state;
    bool is_new;

    stop_listening(phone, 0);
    stop_listening(phone, 1);
    begin(phone, SECOND);
    assert_int_equal(step(phone, &is_new), RUEDA_IN_PROGRESS);
    phone->now_ns += SECOND;
    assert_int_equal(step(phone, &is_new), RUEDA_ERR_TIMEOUT);
    assert_int_equal(rueda_dial_next_ns(&phone->dial), 0);
    assert_non_null(strstr(phone->dial.why.chars, "Connection refused"));
}

static void a_silent_process_has_more_time_each_time(void **state)
{
    struct phone *phone = *state;
    bool is_new;

    begin(phone, SECOND);
    for (int64_t patience = RUEDA_DIAL_NS; patience < 60 * SECOND;
         patience *= 2) {
        while (step(phone, &is_new) == RUEDA_IN_PROGRESS)
            phone->now_ns = rueda_dial_next_ns(&phone->dial);
        assert_true(is_new);
        assert_int_equal(rueda_dial_next_ns(&phone->dial) - phone->now_ns,
                         patience);
        phone->now_ns = rueda_dial_next_ns(&phone->dial);
    }
    assert_non_null(strstr(phone->dial.why.chars, "the process is silent"));
}

static void a_refusal_is_believed_after_a_second(void **state)
{
    struct phone *phone = *state;
    bool is_new;

    begin(phone, INT64_MAX);
    assert_int_equal(step(phone, &is_new), RUEDA_OK);
    rueda_dial_fail(&phone->dial, EACCES, "another key", phone->now_ns);
    assert_false(rueda_dial_is_refused(&phone->dial, phone->now_ns));
    assert_true(rueda_dial_is_refused(&phone->dial, phone->now_ns + SECOND));
    /* Two attempts later it does not count any more. */
    rueda_dial_fail(&phone->dial, ECONNREFUSED, NULL, phone->now_ns);
    assert_true(rueda_dial_is_refused(&phone->dial, phone->now_ns + SECOND));
    rueda_dial_fail(&phone->dial, ECONNREFUSED, NULL, phone->now_ns);
    assert_false(rueda_dial_is_refused(&phone->dial, phone->now_ns + SECOND));
}

static void without_descriptors_it_says_so_once_and_gives_up(void **state)
{
    struct phone *phone = *state;
    struct rlimit before;
    struct rlimit now;
    bool is_new;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    begin(phone, SECOND);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(step(phone, &is_new), RUEDA_IN_PROGRESS);
    phone->now_ns += SECOND;
    assert_int_equal(step(phone, &is_new), RUEDA_ERR_TIMEOUT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(phone->lines, 1);
    assert_non_null(strstr(phone->last, "raise `ulimit -n`"));
    assert_non_null(strstr(phone->dial.why.chars, "raise `ulimit -n`"));
}

static void a_unix_socket_is_tried_before_addresses(void **state)
{
    struct phone *phone = *state;
    struct rueda_dial_args args = {.addresses = phone->addresses,
                                   .address_count = 2,
                                   .first_pause_ns = PAUSE,
                                   .most_pause_ns = PAUSE,
                                   .limit_ns = INT64_MAX};
    char name[64];
    int listener;
    bool is_new;

    snprintf(name, sizeof(name), "rueda-dial-%d", getpid());
    assert_int_equal(rueda_unix_listen(name, &listener), RUEDA_OK);
    args.socket = name;
    rueda_dial_init(&phone->dial, &args, 0, phone->now_ns);
    assert_int_equal(rueda_dial_ways(&phone->dial), 3);
    assert_int_equal(step(phone, &is_new), RUEDA_OK);
    assert_int_equal(phone->dial.way, 0);
    rueda_fd_close(listener);
    rueda_dial_rest(&phone->dial, phone->now_ns);
    assert_int_equal(step(phone, &is_new), RUEDA_OK);
    assert_int_equal(phone->dial.way, 1);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, open_phone, close_phone)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_next_address_is_tried_after_a_refusal),
        TEST(each_round_is_followed_by_a_longer_pause),
        TEST(it_gives_up_at_the_limit_with_the_reason),
        TEST(a_silent_process_has_more_time_each_time),
        TEST(a_refusal_is_believed_after_a_second),
        TEST(without_descriptors_it_says_so_once_and_gives_up),
        TEST(a_unix_socket_is_tried_before_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
