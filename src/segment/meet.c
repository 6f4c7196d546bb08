/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 0's side and the guests' side of a meeting (meet.h). Rank 0 makes the
 * segment and admits guests by auth/admission.h; a guest connects, proves
 * itself, and sends its descriptors. Both sides work through the same few
 * messages, which wire.h has, and stop at the same deadline.
 */
#define RUEDA_LOG_TAG "segment"

#include "segment/meet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/shake.h"
#include "base/duration.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/process.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "segment/receive.h"
#include "segment/segment.h"
#include "segment/wire.h"

/* How long between two looks for a listener that is not there yet. */
#define FIRST_RETRY_NS 100000
#define MOST_RETRY_NS  5000000

/* Rank 0 hangs up on a rank in the middle of the handshake when it has another
 * key, and also when many others connect or it is out of descriptors. So a rank
 * dials again for a while before it believes that it is not wanted. */
#define DOUBT_KEY_NS  RUEDA_S(1)
#define DOUBT_LOST_NS RUEDA_S(5)

/* By which the others see my death: a pidfd, or where the system has none
 * (before Linux 5.3, or forbidden in a container) the end of a pipe. */
static rueda_status open_death(int *out_fd, int *out_life)
{
    *out_life = -1;
    if (rueda_death_open_self(out_fd) == RUEDA_OK)
        return RUEDA_OK;
    if (errno != ENOSYS && errno != EPERM)
        return RUEDA_ERR_IO;
    log_debug("no pidfd (%s); a pipe tells of the death of this process",
              strerror(errno));
    return rueda_death_open_pipe(out_fd, out_life);
}

/* My doorbell, the descriptor of my death, and what I keep as long as I live,
 * or -1. */
static rueda_status own_descriptors(int out_fds[2], int *out_life,
                                    struct rueda_text *error)
{
    out_fds[0] = -1;
    out_fds[1] = -1;
    if (rueda_doorbell_open(&out_fds[0]) != RUEDA_OK ||
        open_death(&out_fds[1], out_life) != RUEDA_OK) {
        rueda_text_set(error,
                       "no descriptors for a doorbell and a pidfd: %s; see "
                       "`ulimit -n`",
                       strerror(errno));
        rueda_fd_close(out_fds[0]);
        return RUEDA_ERR_IO;
    }
    return RUEDA_OK;
}

/* ---- The guest: every rank but 0 -------------------------------------- */

static rueda_status find_host(const struct rueda_meeting *meeting, int *out_fd,
                              struct rueda_text *error)
{
    int64_t pause = FIRST_RETRY_NS;
    char name[128];

    rueda_meet_name(name, sizeof(name), meeting->job);
    for (;;) {
        rueda_status status = rueda_unix_connect(name, out_fd);

        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (status < 0) {
            rueda_text_set(error, "cannot reach rank %d of job \"%s\": %s",
                           rueda_meeting_rank(meeting, 0),
                           rueda_meeting_title(meeting), strerror(errno));
            return status;
        }
        if (meeting->is_over != NULL && meeting->is_over(meeting->arg, error))
            return RUEDA_ERR_PEER_LOST;
        if (rueda_clock_ns() + pause >= meeting->deadline_ns) {
            rueda_text_set(error,
                           "rank %d of job \"%s\" did not show up in time; was "
                           "it started by the same user, on this host, %s?",
                           rueda_meeting_rank(meeting, 0),
                           rueda_meeting_title(meeting),
                           meeting->is_by_program
                               ? "with the same program in the same folder, "
                                 "or else with one RUEDA_JOB for all ranks"
                               : "with the same RUEDA_JOB");
            return RUEDA_ERR_TIMEOUT;
        }
        rueda_sleep_ns(pause);
        pause = pause * 2 < MOST_RETRY_NS ? pause * 2 : MOST_RETRY_NS;
    }
}

static rueda_status prove_to_host(const struct rueda_meeting *meeting, int fd,
                                  struct rueda_text *error)
{
    unsigned char about[RUEDA_MEET_ABOUT_BYTES];
    struct rueda_handshake shake;
    rueda_status status;

    if (!meeting->key->present && !rueda_unix_peer_is_us(fd)) {
        rueda_text_set(error,
                       "job \"%s\" is held by another user, or in another "
                       "user namespace, and there is no key; set "
                       "RUEDA_KEY_FILE on all ranks",
                       rueda_meeting_title(meeting));
        return RUEDA_ERR_AUTH;
    }
    rueda_meet_about_write(about, meeting->rank, meeting->size);
    status = rueda_handshake_init(&shake, RUEDA_INITIATOR, RUEDA_FOR_SEGMENT,
                                  meeting->key, about, sizeof(about));
    while (status == RUEDA_OK) {
        status = rueda_shake_step(fd, &shake);
        if (status != RUEDA_IN_PROGRESS)
            break;
        if (rueda_clock_ns() >= meeting->deadline_ns) {
            rueda_text_set(error, "rank %d did not answer in time",
                           rueda_meeting_rank(meeting, 0));
            status = RUEDA_ERR_TIMEOUT;
            break;
        }
        rueda_fd_wait(fd, false, meeting->deadline_ns - rueda_clock_ns());
        status = RUEDA_OK;
    }
    if (status == RUEDA_ERR_PEER_LOST)
        rueda_text_set(error,
                       "rank %d hung up during the handshake: it has ended, or "
                       "it is out of descriptors, see `ulimit -n`",
                       rueda_meeting_rank(meeting, 0));
    else if (status < 0)
        rueda_text_set(error, "rank %d and rank %d do not agree: %s",
                       rueda_meeting_rank(meeting, 0),
                       rueda_meeting_rank(meeting, meeting->rank),
                       rueda_handshake_error(&shake));
    rueda_handshake_fini(&shake);
    return status;
}

/* Connect to rank 0 and prove ourselves, again for a while if rank 0 hangs up.
 * Its first refusal gives the words. */
static rueda_status dial_host(const struct rueda_meeting *meeting, int *out_fd,
                              struct rueda_text *error)
{
    struct rueda_meeting again = *meeting;
    rueda_status refusal = RUEDA_OK;

    for (;;) {
        struct rueda_text why = {{0}};
        rueda_status status = find_host(&again, out_fd, &why);
        bool is_found = status == RUEDA_OK;

        if (is_found)
            status = prove_to_host(meeting, *out_fd, &why);
        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (is_found)
            rueda_fd_close(*out_fd);
        if (refusal == RUEDA_OK) {
            int64_t doubt_ns = status == RUEDA_ERR_PEER_LOST ? DOUBT_LOST_NS
                               : status == RUEDA_ERR_AUTH    ? DOUBT_KEY_NS
                                                             : 0;

            refusal = status;
            *error = why;
            if (again.deadline_ns > rueda_clock_ns() + doubt_ns)
                again.deadline_ns = rueda_clock_ns() + doubt_ns;
        }
        if (rueda_clock_ns() + MOST_RETRY_NS >= again.deadline_ns)
            return refusal;
        rueda_sleep_ns(MOST_RETRY_NS);
    }
}

/* Words for a failure on the socket after the handshake. */
static rueda_status lost_host(const struct rueda_meeting *meeting,
                              rueda_status status, struct rueda_text *error)
{
    int host = rueda_meeting_rank(meeting, 0);

    if (status == RUEDA_ERR_TIMEOUT)
        rueda_text_set(error,
                       "rank %d did not let us start in time; other ranks are "
                       "missing or slow",
                       host);
    else if (status == RUEDA_ERR_INVALID)
        rueda_text_set(error, "not all descriptors of the other ranks could "
                              "be taken; raise `ulimit -n`");
    else
        rueda_text_set(error, "rank %d went away while the job started", host);
    return status == RUEDA_ERR_INVALID ? RUEDA_ERR_LIMIT : status;
}

/* Receive the segment and all descriptors, and enter. fds is room for
 * [2 * size + 1], -1 each. */
static rueda_status enter_as_guest(const struct rueda_meeting *meeting, int fd,
                                   int *fds, struct rueda_segment **out,
                                   struct rueda_text *error)
{
    const int size = meeting->size;
    const int count = 2 * size + 1;
    struct rueda_segment *segment;
    rueda_status status;
    char ready = RUEDA_MEET_READY;

    status =
        rueda_meet_recv_kind(fd, RUEDA_MEET_START, meeting->deadline_ns, error);
    if (status == RUEDA_OK)
        status = rueda_meet_recv_fds(fd, fds, count, meeting->deadline_ns);
    if (status != RUEDA_OK) {
        for (int i = 0; i < count; i++)
            rueda_fd_close(fds[i]);
        return lost_host(meeting, status, error);
    }
    status = rueda_segment_attach(meeting->rank, size, fds[count - 1], &segment,
                                  error);
    if (status != RUEDA_OK) {
        for (int i = 0; i < count - 1; i++)
            rueda_fd_close(fds[i]);
        return status;
    }
    status = rueda_segment_enter(segment, fds, fds + size, error);
    if (status == RUEDA_OK)
        status = meeting->prepare(meeting->arg, segment, error);
    if (status == RUEDA_OK) {
        status = rueda_stream_send_all(fd, &ready, 1, meeting->deadline_ns);
        if (status == RUEDA_OK)
            status = rueda_meet_recv_kind(fd, RUEDA_MEET_GO,
                                          meeting->deadline_ns, error);
        if (status != RUEDA_OK)
            status = lost_host(meeting, status, error);
    }
    if (status != RUEDA_OK) {
        rueda_segment_close(segment);
        return status;
    }
    *out = segment;
    return RUEDA_OK;
}

static rueda_status be_guest(const struct rueda_meeting *meeting,
                             struct rueda_segment **out,
                             struct rueda_text *error)
{
    size_t most = 2 * (size_t)meeting->size + 1;
    int *fds = malloc(most * sizeof(int));
    rueda_status status;
    int own[2];
    int life;
    int fd;

    if (fds == NULL)
        return RUEDA_ERR_NOMEM;
    memset(fds, 0xff, most * sizeof(int)); /* -1 each */
    status = dial_host(meeting, &fd, error);
    if (status != RUEDA_OK)
        goto out_free;
    status = own_descriptors(own, &life, error);
    if (status != RUEDA_OK)
        goto out_close;
    status = rueda_meet_send_fds(fd, own, 2, meeting->deadline_ns);
    rueda_fd_close(own[0]);
    rueda_fd_close(own[1]);
    if (status == RUEDA_OK)
        status = enter_as_guest(meeting, fd, fds, out, error);
    else
        lost_host(meeting, status, error);
    if (status == RUEDA_OK)
        (*out)->life = life;
    else
        rueda_fd_close(life);

out_close:
    rueda_fd_close(fd);
out_free:
    free(fds);
    return status;
}

/* ---- A second rank 0 ---------------------------------------------------- */

rueda_status rueda_segment_contest(const struct rueda_meeting *meeting,
                                   const int own[2], struct rueda_text *error)
{
    struct rueda_text why = {{0}};
    rueda_status status;
    char name[128];
    int fd;

    rueda_meet_name(name, sizeof(name), meeting->job);
    if (rueda_unix_connect(name, &fd) != RUEDA_OK)
        return RUEDA_IN_PROGRESS;
    status = prove_to_host(meeting, fd, &why);
    if (status == RUEDA_OK)
        status = rueda_meet_send_fds(fd, own, 2, meeting->deadline_ns);
    if (status == RUEDA_OK)
        status = rueda_meet_recv_kind(fd, RUEDA_MEET_START,
                                      meeting->deadline_ns, &why);
    rueda_fd_close(fd);
    if (status != RUEDA_ERR_MISMATCH && status != RUEDA_ERR_AUTH)
        return RUEDA_IN_PROGRESS;
    *error = why;
    return status;
}

/* ---- Every rank ------------------------------------------------------- */

rueda_status rueda_segment_meet(const struct rueda_meeting *meeting,
                                struct rueda_segment **out,
                                struct rueda_text *error)
{
    struct rueda_segment *segment;
    rueda_status status;
    int own[2];

    if (meeting->rank > 0)
        return be_guest(meeting, out, error);
    status =
        rueda_segment_make(meeting->size, meeting->inherited, &segment, error);
    if (status != RUEDA_OK)
        return status;
    status = meeting->prepare(meeting->arg, segment, error);
    if (status != RUEDA_OK)
        goto err_close;
    status = own_descriptors(own, &segment->life, error);
    if (status != RUEDA_OK)
        goto err_close;
    status = rueda_segment_receive(meeting, segment, own, error);
    if (status != RUEDA_OK)
        goto err_close;
    *out = segment;
    return RUEDA_OK;

err_close:
    rueda_segment_close(segment);
    return status;
}
