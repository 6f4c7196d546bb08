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
struct recorded_store {
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
    struct recorded_store *recorded = arg;

    (void)level;
    recorded->lines++;
    snprintf(recorded->last, sizeof(recorded->last), "%s", line);
}

static rueda_status on_proven(void *arg, int fd,
                              const struct rueda_handshake *shake,
                              const struct rueda_address *from,
                              struct rueda_text *why)
{
    struct recorded_store *recorded = arg;
    size_t bytes;

    assert_memory_equal(rueda_handshake_peer_about(shake, &bytes), "me", 2);
    assert_int_equal(from->len, 0);
    recorded->proven++;
    if (recorded->answer == RUEDA_OK)
        recorded->taken = fd;
    if (recorded->answer < 0)
        rueda_text_set(why, "it does not fit");
    return recorded->answer;
}

static int open_desk(void **state)
{
    static const struct rueda_admission_ops ops = {.proven = on_proven};
    struct recorded_store *recorded = calloc(1, sizeof(*recorded));
    const struct rueda_admission_args args = {.who = "the recorded",
                                              .purpose = RUEDA_FOR_STORE,
                                              .key = &recorded->key,
                                              .ops = &ops,
                                              .arg = recorded};

    *state = recorded;
    recorded->taken = -1;
    recorded->now_ns = SECOND;
    rueda_key_create(&recorded->key);
    snprintf(recorded->name, sizeof(recorded->name), "rueda-admission-%d",
             getpid());
    rueda_log_set_sink(hear, recorded);
    return rueda_unix_listen(recorded->name, &recorded->listener) != RUEDA_OK ||
           rueda_admission_init(&recorded->admission, &args) != RUEDA_OK ||
           rueda_admission_listen(&recorded->admission, recorded->listener,
                                  true) != RUEDA_OK;
}

static int close_desk(void **state)
{
    struct recorded_store *recorded = *state;

    rueda_admission_fini(&recorded->admission);
    rueda_admission_fini(&recorded->admission);
    rueda_log_set_sink(NULL, NULL);
    rueda_fd_close(recorded->taken);
    rueda_fd_close(recorded->listener);
    free(recorded);
    return 0;
}

static int dial(const struct recorded_store *recorded)
{
    int fd;

    assert_int_equal(rueda_unix_connect(recorded->name, &fd), RUEDA_OK);
    return fd;
}

static void progress(struct recorded_store *recorded)
{
    rueda_admission_progress(&recorded->admission, recorded->now_ns);
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
static rueda_status prove(struct recorded_store *recorded, int fd)
{
    struct rueda_handshake shake;
    rueda_status status = RUEDA_IN_PROGRESS;

    rueda_handshake_init(&shake, RUEDA_INITIATOR, RUEDA_FOR_STORE,
                         &recorded->key, "me", 2);
    for (int i = 0; i < 8 && status == RUEDA_IN_PROGRESS; i++) {
        status = rueda_shake_step(fd, &shake);
        progress(recorded);
    }
    rueda_handshake_fini(&shake);
    return status;
}

static void a_proven_connection_is_handed_over(void **state)
{
    struct recorded_store *recorded = *state;
    int fd = dial(recorded);

    assert_int_equal(rueda_admission_next_ns(&recorded->admission), INT64_MAX);
    progress(recorded);
    assert_int_equal(rueda_admission_next_ns(&recorded->admission),
                     recorded->now_ns + RUEDA_ADMISSION_NS);
    assert_int_equal(prove(recorded, fd), RUEDA_OK);
    assert_int_equal(recorded->proven, 1);
    assert_true(recorded->taken >= 0);
    assert_int_equal(rueda_admission_next_ns(&recorded->admission), INT64_MAX);
    assert_int_equal(recorded->lines, 0);
    rueda_fd_close(fd);
}

static void an_owner_may_wait_for_more_or_refuse(void **state)
{
    struct recorded_store *recorded = *state;
    int fd = dial(recorded);
    size_t bytes;

    recorded->answer = RUEDA_IN_PROGRESS;
    assert_int_equal(prove(recorded, fd), RUEDA_OK);
    assert_int_equal(recorded->proven, 1);
    progress(recorded);
    assert_int_equal(recorded->proven, 1);
    recorded->answer = RUEDA_ERR_MISMATCH;
    assert_int_equal(rueda_stream_send(fd, "x", 1, &bytes), RUEDA_OK);
    progress(recorded);
    assert_int_equal(recorded->proven, 2);
    assert_true(is_hung_up_on(fd));
    assert_non_null(strstr(recorded->last, "the recorded refused a caller"));
    assert_non_null(strstr(recorded->last, "it does not fit"));
    rueda_fd_close(fd);
}

static void a_slow_stranger_is_refused(void **state)
{
    struct recorded_store *recorded = *state;
    int fd = dial(recorded);

    progress(recorded);
    recorded->now_ns += RUEDA_ADMISSION_NS - 1;
    progress(recorded);
    assert_false(is_hung_up_on(fd));
    recorded->now_ns++;
    progress(recorded);
    assert_true(is_hung_up_on(fd));
    assert_non_null(strstr(recorded->last, "did not prove itself in time"));
    rueda_fd_close(fd);
}

static void the_oldest_of_a_crowd_gives_way(void **state)
{
    struct recorded_store *recorded = *state;
    int fds[CROWD];
    int held = 0;
    int fd;

    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial(recorded);
        progress(recorded);
    }
    for (int i = 0; i < CROWD; i++) {
        bool is_gone = is_hung_up_on(fds[i]);

        assert_int_equal(is_gone, i < CROWD - RUEDA_ADMISSION_MOST);
        held += !is_gone;
    }
    assert_int_equal(held, RUEDA_ADMISSION_MOST);
    assert_int_equal(recorded->lines, 1);
    fd = dial(recorded);
    assert_int_equal(prove(recorded, fd), RUEDA_OK);
    assert_int_equal(recorded->proven, 1);
    for (int i = 0; i < CROWD; i++)
        rueda_fd_close(fds[i]);
    rueda_fd_close(fd);
}

/* A connection for which there is no descriptor is closed, not left waiting. */
static void a_lack_of_descriptors_is_told_to_both_ends(void **state)
{
    struct recorded_store *recorded = *state;
    struct rlimit old;
    struct rlimit none;
    int fds[3];
    int lowest;

    for (int i = 0; i < 3; i++)
        fds[i] = dial(recorded);
    lowest = dup(0);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &old);
    none = (struct rlimit){(rlim_t)lowest, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    progress(recorded);
    assert_int_equal(rueda_admission_short_ns(&recorded->admission),
                     recorded->now_ns);
    setrlimit(RLIMIT_NOFILE, &old);
    /* The spare descriptor is below the limit and can be had again. */
    for (int i = 0; i < 3; i++)
        assert_true(is_hung_up_on(fds[i]));
    assert_int_equal(recorded->lines, 1);
    assert_non_null(strstr(recorded->last, "raise `ulimit -n`"));
    for (int i = 0; i < 3; i++)
        rueda_fd_close(fds[i]);
    fds[0] = dial(recorded);
    assert_int_equal(prove(recorded, fds[0]), RUEDA_OK);
    assert_int_equal(rueda_admission_short_ns(&recorded->admission), 0);
    rueda_fd_close(fds[0]);
}

#define RECORDED(test)                                                         \
    cmocka_unit_test_setup_teardown(test, open_desk, close_desk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDED(a_proven_connection_is_handed_over),
        RECORDED(an_owner_may_wait_for_more_or_refuse),
        RECORDED(a_slow_stranger_is_refused),
        RECORDED(the_oldest_of_a_crowd_gives_way),
        RECORDED(a_lack_of_descriptors_is_told_to_both_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
