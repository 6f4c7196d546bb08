/* SPDX-License-Identifier: Apache-2.0 */
#include "auth/admission.h"

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
#define CROWD  200

/* An admission at a Unix socket, and what its owner has seen. */
struct desk {
    struct rueda_admission admission;
    struct rueda_key key;
    char name[64];
    int listener;
    int64_t now_ns;
    int proven;
    int taken;
    rueda_status answer;
    int lines;
    char last[512];
};

static void hear(void *arg, rueda_log_level level, const char *line)
{
    struct desk *desk = arg;

    (void)level;
    desk->lines++;
    snprintf(desk->last, sizeof(desk->last), "%s", line);
}

static rueda_status on_proven(void *arg, int fd,
                              const struct rueda_handshake *shake,
                              const struct rueda_address *from,
                              struct rueda_text *why)
{
    struct desk *desk = arg;
    size_t bytes;

    assert_memory_equal(rueda_handshake_peer_about(shake, &bytes), "me", 2);
    assert_int_equal(from->len, 0);
    desk->proven++;
    if (desk->answer == RUEDA_OK)
        desk->taken = fd;
    if (desk->answer < 0)
        rueda_text_set(why, "it does not fit");
    return desk->answer;
}

static int open_desk(void **state)
{
    static const struct rueda_admission_calls calls = {.proven = on_proven};
    struct desk *desk = calloc(1, sizeof(*desk));
    const struct rueda_admission_args args = {.who = "the desk",
                                              .purpose = RUEDA_FOR_STORE,
                                              .key = &desk->key,
                                              .calls = &calls,
                                              .arg = desk};

    *state = desk;
    desk->taken = -1;
    desk->now_ns = SECOND;
    rueda_key_create(&desk->key);
    snprintf(desk->name, sizeof(desk->name), "rueda-admission-%d", getpid());
    rueda_log_set_sink(hear, desk);
    return rueda_unix_listen(desk->name, &desk->listener) != RUEDA_OK ||
           rueda_admission_init(&desk->admission, &args) != RUEDA_OK ||
           rueda_admission_listen(&desk->admission, desk->listener, true) !=
               RUEDA_OK;
}

static int close_desk(void **state)
{
    struct desk *desk = *state;

    rueda_admission_fini(&desk->admission);
    rueda_admission_fini(&desk->admission);
    rueda_log_set_sink(NULL, NULL);
    rueda_fd_close(desk->taken);
    rueda_fd_close(desk->listener);
    free(desk);
    return 0;
}

static int dial(const struct desk *desk)
{
    int fd;

    assert_int_equal(rueda_unix_connect(desk->name, &fd), RUEDA_OK);
    return fd;
}

static void progress(struct desk *desk)
{
    rueda_admission_progress(&desk->admission, desk->now_ns);
}

static bool is_hung_up_on(int fd)
{
    unsigned char byte;
    size_t bytes;
    rueda_status status;

    do
        status = rueda_stream_recv(fd, &byte, 1, &bytes);
    while (status == RUEDA_OK);
    return status == RUEDA_ERR_PEER_LOST;
}

/* Dial and prove the key, as far as that goes. */
static rueda_status prove(struct desk *desk, int fd)
{
    struct rueda_handshake shake;
    rueda_status status = RUEDA_IN_PROGRESS;

    rueda_handshake_init(&shake, RUEDA_INITIATOR, RUEDA_FOR_STORE, &desk->key,
                         "me", 2);
    for (int i = 0; i < 8 && status == RUEDA_IN_PROGRESS; i++) {
        status = rueda_shake_step(fd, &shake);
        progress(desk);
    }
    rueda_handshake_fini(&shake);
    return status;
}

static void a_proven_connection_is_handed_over(void **state)
{
    struct desk *desk = *state;
    int fd = dial(desk);

    assert_int_equal(rueda_admission_next_ns(&desk->admission), INT64_MAX);
    progress(desk);
    assert_int_equal(rueda_admission_next_ns(&desk->admission),
                     desk->now_ns + RUEDA_ADMISSION_NS);
    assert_int_equal(prove(desk, fd), RUEDA_OK);
    assert_int_equal(desk->proven, 1);
    assert_true(desk->taken >= 0);
    assert_int_equal(rueda_admission_next_ns(&desk->admission), INT64_MAX);
    assert_int_equal(desk->lines, 0);
    rueda_fd_close(fd);
}

static void an_owner_may_wait_for_more_or_refuse(void **state)
{
    struct desk *desk = *state;
    int fd = dial(desk);
    size_t bytes;

    desk->answer = RUEDA_IN_PROGRESS;
    assert_int_equal(prove(desk, fd), RUEDA_OK);
    assert_int_equal(desk->proven, 1);
    progress(desk);
    assert_int_equal(desk->proven, 1);
    desk->answer = RUEDA_ERR_MISMATCH;
    assert_int_equal(rueda_stream_send(fd, "x", 1, &bytes), RUEDA_OK);
    progress(desk);
    assert_int_equal(desk->proven, 2);
    assert_true(is_hung_up_on(fd));
    assert_non_null(strstr(desk->last, "the desk refused a caller"));
    assert_non_null(strstr(desk->last, "it does not fit"));
    rueda_fd_close(fd);
}

static void a_slow_stranger_is_refused(void **state)
{
    struct desk *desk = *state;
    int fd = dial(desk);

    progress(desk);
    desk->now_ns += RUEDA_ADMISSION_NS - 1;
    progress(desk);
    assert_false(is_hung_up_on(fd));
    desk->now_ns++;
    progress(desk);
    assert_true(is_hung_up_on(fd));
    assert_non_null(strstr(desk->last, "did not say in time"));
    rueda_fd_close(fd);
}

static void the_oldest_of_a_crowd_gives_way(void **state)
{
    struct desk *desk = *state;
    int fds[CROWD];
    int held = 0;
    int fd;

    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial(desk);
        progress(desk);
    }
    for (int i = 0; i < CROWD; i++) {
        bool is_gone = is_hung_up_on(fds[i]);

        assert_int_equal(is_gone, i < CROWD - RUEDA_ADMISSION_MOST);
        held += !is_gone;
    }
    assert_int_equal(held, RUEDA_ADMISSION_MOST);
    assert_int_equal(desk->lines, 1);
    fd = dial(desk);
    assert_int_equal(prove(desk, fd), RUEDA_OK);
    assert_int_equal(desk->proven, 1);
    for (int i = 0; i < CROWD; i++)
        rueda_fd_close(fds[i]);
    rueda_fd_close(fd);
}

/* A connection for which there is no descriptor is closed, not left waiting. */
static void a_lack_of_descriptors_is_told_to_both_ends(void **state)
{
    struct desk *desk = *state;
    struct rlimit old;
    struct rlimit none;
    int fds[3];
    int lowest;

    for (int i = 0; i < 3; i++)
        fds[i] = dial(desk);
    lowest = dup(0);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &old);
    none = (struct rlimit){(rlim_t)lowest, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    progress(desk);
    assert_int_equal(rueda_admission_short_ns(&desk->admission), desk->now_ns);
    setrlimit(RLIMIT_NOFILE, &old);
    /* The spare descriptor is below the limit and can be had again. */
    for (int i = 0; i < 3; i++)
        assert_true(is_hung_up_on(fds[i]));
    assert_int_equal(desk->lines, 1);
    assert_non_null(strstr(desk->last, "raise `ulimit -n`"));
    for (int i = 0; i < 3; i++)
        rueda_fd_close(fds[i]);
    fds[0] = dial(desk);
    assert_int_equal(prove(desk, fds[0]), RUEDA_OK);
    assert_int_equal(rueda_admission_short_ns(&desk->admission), 0);
    rueda_fd_close(fds[0]);
}

#define DESK(test) cmocka_unit_test_setup_teardown(test, open_desk, close_desk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DESK(a_proven_connection_is_handed_over),
        DESK(an_owner_may_wait_for_more_or_refuse),
        DESK(a_slow_stranger_is_refused),
        DESK(the_oldest_of_a_crowd_gives_way),
        DESK(a_lack_of_descriptors_is_told_to_both_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
