/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings whose ranks are threads of this process: each maps the segment for
 * itself, as a process would.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/stream.h"
#include "os/thread.h"
#include "os/unix_socket.h"
#include "segment/meet.h"
#include "segment/segment.h"
#include "segment/wire.h"
#include "unit/unit.h"

#define MS   ((int64_t)1000000)
#define MOST 5

/* One who comes to a meeting. */
struct guest {
    struct rueda_meeting meeting;
    struct rueda_segment *segment;
    struct rueda_text error;
    rueda_status status;
    pthread_t thread;
};

/* A meeting, with its guests as they are going to come. */
struct meeting {
    char job[64];
    struct rueda_key key;
    struct guest guests[MOST];
    int count;
    int descriptors;
};

static rueda_status prepare(void *arg, struct rueda_segment *segment,
                            struct rueda_text *error)
{
    (void)arg;
    (void)error;
    if (segment->me == 0)
        segment->common->slab_offset = 4321;
    segment->members[segment->me].pairs_offset = 100 + (uint64_t)segment->me;
    return RUEDA_OK;
}

static rueda_status prepare_badly(void *arg, struct rueda_segment *segment,
                                  struct rueda_text *error)
{
    (void)arg;
    rueda_text_set(error, "rank %d has no mind to", segment->me);
    return RUEDA_ERR_LIMIT;
}

static void hush(void *arg, rueda_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    (void)line;
}

static int meeting_open(void **state)
{
    static struct meeting meeting;
    static int number;

    memset(&meeting, 0, sizeof(meeting));
    snprintf(meeting.job, sizeof(meeting.job), "unit-%d-%d", (int)getpid(),
             number++);
    meeting.descriptors = count_descriptors();
    rueda_log_set_sink(hush, NULL);
    *state = &meeting;
    return 0;
}

static int meeting_close(void **state)
{
    struct meeting *meeting = *state;

    for (int i = 0; i < meeting->count; i++)
        rueda_segment_close(meeting->guests[i].segment);
    rueda_log_set_sink(NULL, NULL);
    return count_descriptors() == meeting->descriptors ? 0 : -1;
}

static struct guest *invite(struct meeting *meeting, int rank, int size,
                            int64_t timeout_ms)
{
    struct guest *guest = &meeting->guests[meeting->count++];

    guest->meeting = (struct rueda_meeting){
        .rank = rank,
        .size = size,
        .job = meeting->job,
        .key = &meeting->key,
        .deadline_ns = rueda_clock_ns() + timeout_ms * MS,
        .inherited = -1,
        .prepare = prepare,
    };
    return guest;
}

static void *come(void *arg)
{
    struct guest *guest = arg;

    guest->status =
        rueda_segment_meet(&guest->meeting, &guest->segment, &guest->error);
    return NULL;
}

/* All come at once; done when the last has an answer. */
static void meet(struct meeting *meeting)
{
    for (int i = 0; i < meeting->count; i++)
        assert_int_equal(rueda_thread_start(&meeting->guests[i].thread, come,
                                            &meeting->guests[i]),
                         RUEDA_OK);
    for (int i = 0; i < meeting->count; i++)
        assert_int_equal(pthread_join(meeting->guests[i].thread, NULL), 0);
}

static void check_all_met(struct meeting *meeting)
{
    for (int i = 0; i < meeting->count; i++) {
        struct guest *guest = &meeting->guests[i];

        assert_int_equal(guest->status, RUEDA_OK);
        assert_int_equal(guest->segment->common->slab_offset, 4321);
        for (int k = 0; k < meeting->count; k++) {
            const struct rueda_member *member = &guest->segment->members[k];

            assert_int_equal(member->presence, RUEDA_PRESENT);
            assert_int_equal(member->pid, getpid());
            assert_int_equal(member->pairs_offset, 100 + k);
        }
    }
}

static void check_failed(const struct guest *guest, rueda_status status,
                         const char *words)
{
    assert_int_equal(guest->status, status);
    assert_non_null(strstr(guest->error.chars, words));
    assert_null(guest->segment);
}

static void ranks_meet_and_can_wake_each_other(void **state)
{
    struct meeting *meeting = *state;

    for (int rank = 0; rank < 4; rank++)
        invite(meeting, rank, 4, 20000);
    meet(meeting);

    check_all_met(meeting);
    for (int i = 0; i < 4; i++) {
        struct rueda_segment *asleep = meeting->guests[i].segment;
        int64_t before = rueda_clock_ns();

        rueda_segment_arm(asleep);
        rueda_segment_notify(meeting->guests[(i + 1) % 4].segment, i);
        rueda_segment_wait(asleep, 20000 * MS);
        assert_true(rueda_clock_ns() - before < 10000 * MS);
    }
}

static void a_rank_alone_meets_nobody(void **state)
{
    struct meeting *meeting = *state;

    invite(meeting, 0, 1, 20000);
    meet(meeting);
    check_all_met(meeting);
}

static void ranks_with_the_same_key_meet(void **state)
{
    struct meeting *meeting = *state;

    meeting->key.present = true;
    memset(meeting->key.bytes, 9, sizeof(meeting->key.bytes));
    for (int rank = 0; rank < 3; rank++)
        invite(meeting, rank, 3, 20000);
    meet(meeting);
    check_all_met(meeting);
}

static void another_key_is_refused(void **state)
{
    struct meeting *meeting = *state;
    struct rueda_key other = {.present = true, .bytes = {1}};
    struct guest *host;
    struct guest *stranger;

    meeting->key.present = true;
    host = invite(meeting, 0, 2, 300);
    stranger = invite(meeting, 1, 2, 300);
    stranger->meeting.key = &other;
    meet(meeting);

    check_failed(host, RUEDA_ERR_TIMEOUT, "1 of 2 ranks of job");
    check_failed(stranger, RUEDA_ERR_AUTH, "rank 0 and rank 1 do not agree");
}

static void another_number_of_ranks_is_refused_in_words(void **state)
{
    struct meeting *meeting = *state;
    struct guest *host = invite(meeting, 0, 2, 300);
    struct guest *guest = invite(meeting, 1, 3, 300);

    meet(meeting);
    check_failed(host, RUEDA_ERR_TIMEOUT, "did not come in time: rank 1");
    check_failed(guest, RUEDA_ERR_MISMATCH, "has 3 ranks, rank 0 says 2");
}

static void a_rank_that_comes_twice_ends_the_start_of_all(void **state)
{
    struct meeting *meeting = *state;

    for (int i = 0; i < 3; i++)
        invite(meeting, i < 2 ? i : 1, 4, 10000);
    meet(meeting);
    for (int i = 0; i < 3; i++) {
        check_failed(&meeting->guests[i], RUEDA_ERR_MISMATCH,
                     "two processes say that they are rank 1");
        check_failed(&meeting->guests[i], RUEDA_ERR_MISMATCH,
                     "set another RUEDA_JOB");
    }
}

static void a_second_rank_0_ends_the_start_of_all(void **state)
{
    struct meeting *meeting = *state;

    invite(meeting, 0, 3, 10000);
    invite(meeting, 0, 3, 10000);
    invite(meeting, 1, 3, 1000); /* it may come too late to hear of it */
    meet(meeting);
    for (int i = 0; i < 2; i++)
        check_failed(&meeting->guests[i], RUEDA_ERR_MISMATCH,
                     "two processes say that they are rank 0");
    assert_true(meeting->guests[2].status < 0);
    assert_null(meeting->guests[2].segment);
}

static void a_name_by_program_is_claimed_while_the_job_runs(void **state)
{
    struct meeting *meeting = *state;
    struct guest *second;
    struct guest *third;

    for (int i = 0; i < 2; i++)
        invite(meeting, i, 2, 20000)->meeting.is_by_program = true;
    meet(meeting);
    check_all_met(meeting);

    second = invite(meeting, 0, 2, 50);
    second->meeting.is_by_program = true;
    come(second);
    check_failed(second, RUEDA_ERR_MISMATCH, "runs already");
    check_failed(second, RUEDA_ERR_MISMATCH, "set another RUEDA_JOB");

    /* It is free again when rank 0 leaves. */
    rueda_segment_close(meeting->guests[0].segment);
    meeting->guests[0].segment = NULL;
    third = invite(meeting, 0, 2, 50);
    third->meeting.is_by_program = true;
    come(third);
    check_failed(third, RUEDA_ERR_TIMEOUT, "did not come in time: rank 1");
}

static void a_rank_that_cannot_be_is_refused_in_words(void **state)
{
    struct meeting *meeting = *state;
    struct guest *host = invite(meeting, 0, 2, 300);
    struct guest *guest = invite(meeting, 7, 2, 300);

    meet(meeting);
    check_failed(host, RUEDA_ERR_TIMEOUT, "1 of 2 ranks");
    check_failed(guest, RUEDA_ERR_MISMATCH, "there is no rank 7 in a job of 2");
}

static void a_guest_that_cannot_start_fails_the_host(void **state)
{
    struct meeting *meeting = *state;
    struct guest *host = invite(meeting, 0, 2, 20000);
    struct guest *guest = invite(meeting, 1, 2, 20000);

    guest->meeting.prepare = prepare_badly;
    meet(meeting);
    check_failed(host, RUEDA_ERR_PEER_LOST,
                 "rank 1 went away while the job started");
    check_failed(guest, RUEDA_ERR_LIMIT, "rank 1 has no mind to");
}

static void a_host_that_cannot_start_is_missed(void **state)
{
    struct meeting *meeting = *state;
    struct guest *host = invite(meeting, 0, 2, 300);
    struct guest *guest = invite(meeting, 1, 2, 300);

    host->meeting.prepare = prepare_badly;
    meet(meeting);
    check_failed(host, RUEDA_ERR_LIMIT, "rank 0 has no mind to");
    check_failed(guest, RUEDA_ERR_TIMEOUT, "did not show up in time");
}

/* Rank 0 as it is when it dies or has no descriptors: it takes calls, and hangs
 * up. */
static void *hang_up(void *arg)
{
    const int listener = *(int *)arg;
    int fd = 0;

    while (fd >= 0) {
        fd = accept(listener, NULL, NULL);
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static void a_host_that_hangs_up_is_told_from_one_with_another_key(void **state)
{
    struct meeting *meeting = *state;
    struct guest *guest = invite(meeting, 1, 2, 300);
    pthread_t thread;
    char name[128];
    int listener;

    rueda_meet_name(name, sizeof(name), meeting->job);
    assert_int_equal(rueda_unix_listen(name, &listener), RUEDA_OK);
    /* It blocks from now on. */
    assert_int_equal(fcntl(listener, F_SETFL, 0), 0);
    assert_int_equal(rueda_thread_start(&thread, hang_up, &listener), RUEDA_OK);
    meet(meeting);
    shutdown(listener, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rueda_fd_close(listener);
    check_failed(guest, RUEDA_ERR_PEER_LOST,
                 "rank 0 hung up during the handshake: it has ended");
}

/* Calls before the meeting is complete, and is no rank. */
struct intruder {
    const char *job;
    const char *words; /* what it says; NULL: it just hangs up */
    bool is_silent;    /* stays, and says nothing */
    int fd;
};

static void *intrude(void *arg)
{
    struct intruder *intruder = arg;
    int64_t deadline = rueda_clock_ns() + 10000 * MS;
    char name[128];

    rueda_meet_name(name, sizeof(name), intruder->job);
    while (rueda_unix_connect(name, &intruder->fd) != RUEDA_OK &&
           rueda_clock_ns() < deadline)
        rueda_sleep_ns(MS / 10);
    if (intruder->words != NULL)
        rueda_stream_send_all(intruder->fd, intruder->words,
                              strlen(intruder->words), deadline);
    if (!intruder->is_silent) {
        rueda_fd_close(intruder->fd);
        intruder->fd = -1;
    }
    return NULL;
}

static void strangers_do_not_keep_the_ranks_from_meeting(void **state)
{
    struct meeting *meeting = *state;
    struct intruder all[3] = {
        {.job = meeting->job, .fd = -1, .words = "GET / HTTP/1.1\r\n\r\n"},
        {.job = meeting->job, .fd = -1, .is_silent = true},
        {.job = meeting->job, .fd = -1},
    };
    struct guest *host = invite(meeting, 0, 2, 20000);
    struct guest *guest = invite(meeting, 1, 2, 20000);

    assert_int_equal(rueda_thread_start(&host->thread, come, host), RUEDA_OK);
    for (int i = 0; i < 3; i++)
        intrude(&all[i]);
    assert_int_equal(rueda_thread_start(&guest->thread, come, guest), RUEDA_OK);
    assert_int_equal(pthread_join(host->thread, NULL), 0);
    assert_int_equal(pthread_join(guest->thread, NULL), 0);
    for (int i = 0; i < 3; i++)
        rueda_fd_close(all[i].fd);

    check_all_met(meeting);
}

static void count_line(void *arg, rueda_log_level level, const char *line)
{
    (void)level;
    (void)line;
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* Rank 0 holds some, drops the oldest, and does not log each of them. */
static void a_crowd_does_not_keep_the_ranks_from_meeting(void **state)
{
    struct meeting *meeting = *state;
    struct guest *host = invite(meeting, 0, 2, 20000);
    struct guest *guest = invite(meeting, 1, 2, 20000);
    struct intruder crowd[300];
    atomic_int lines = 0;

    rueda_log_set_sink(count_line, &lines);
    assert_int_equal(rueda_thread_start(&host->thread, come, host), RUEDA_OK);
    for (int i = 0; i < 300; i++) {
        crowd[i] =
            (struct intruder){.job = meeting->job, .fd = -1, .is_silent = true};
        intrude(&crowd[i]);
    }
    assert_int_equal(rueda_thread_start(&guest->thread, come, guest), RUEDA_OK);
    assert_int_equal(pthread_join(host->thread, NULL), 0);
    assert_int_equal(pthread_join(guest->thread, NULL), 0);
    rueda_log_set_sink(NULL, NULL);
    for (int i = 0; i < 300; i++)
        rueda_fd_close(crowd[i].fd);
    check_all_met(meeting);
    /* The first one, and how many more there were. */
    assert_int_equal(lines, 2);
}

static void a_name_that_is_taken_is_told_with_the_remedy(void **state)
{
    struct meeting *meeting = *state;
    struct guest *host = invite(meeting, 0, 2, 30);
    char name[128];
    int taken;

    rueda_meet_name(name, sizeof(name), meeting->job);
    assert_int_equal(rueda_unix_listen(name, &taken), RUEDA_OK);
    meet(meeting);
    rueda_fd_close(taken);
    check_failed(host, RUEDA_ERR_IO, "is starting, set RUEDA_JOB");
}

#define MEETING(test)                                                          \
    cmocka_unit_test_setup_teardown(test, meeting_open, meeting_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEETING(ranks_meet_and_can_wake_each_other),
        MEETING(a_rank_alone_meets_nobody),
        MEETING(ranks_with_the_same_key_meet),
        MEETING(another_key_is_refused),
        MEETING(another_number_of_ranks_is_refused_in_words),
        MEETING(a_rank_that_comes_twice_ends_the_start_of_all),
        MEETING(a_second_rank_0_ends_the_start_of_all),
        MEETING(a_name_by_program_is_claimed_while_the_job_runs),
        MEETING(a_rank_that_cannot_be_is_refused_in_words),
        MEETING(a_guest_that_cannot_start_fails_the_host),
        MEETING(a_host_that_cannot_start_is_missed),
        MEETING(a_host_that_hangs_up_is_told_from_one_with_another_key),
        MEETING(strangers_do_not_keep_the_ranks_from_meeting),
        MEETING(a_crowd_does_not_keep_the_ranks_from_meeting),
        MEETING(a_name_that_is_taken_is_told_with_the_remedy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
