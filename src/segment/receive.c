/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank 0's side of a meeting: it listens at an abstract Unix socket, admits the
 * other ranks of this host (auth/admission.h), collects the descriptors of each
 * and hands out the segment when all have come.
 */
#define RUEDA_LOG_TAG "segment"

#include "segment/receive.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "auth/admission.h"
#include "base/duration.h"
#include "base/log.h"
#include "os/clock.h"
#include "os/event.h"
#include "os/process.h"
#include "os/stream.h"
#include "os/unix_socket.h"
#include "segment/wire.h"

#define SLICE_NS RUEDA_MS(100)

/* How long the rank 0 of an older job may take to end, when all of its other
 * ranks have. */
#define PATIENCE_NS RUEDA_S(2)

struct reception {
    const struct rueda_meeting *meeting;
    int listener;
    struct rueda_admission admission;
    int come;                  /* ranks that have, myself included */
    struct rueda_text contest; /* why a rank that came twice ends the start */
    int *sockets;              /* [size], -1: not come */
    int *fds;                  /* [2 * size + 1]: doorbells, pidfds, memfd */
    struct rueda_fork_hook fork_hook;
};

/* Is this a rank that is there already? */
static bool is_contested(const struct reception *reception, int rank)
{
    return rank == 0 || (rank > 0 && rank < reception->meeting->size &&
                         reception->sockets[rank] >= 0);
}

/* A connection has proven the job's key; do its rank and size fit? */
static bool fits(const struct reception *reception,
                 const struct rueda_handshake *shake, int *out_rank,
                 struct rueda_text *why)
{
    const struct rueda_meeting *meeting = reception->meeting;
    const void *about;
    size_t bytes;
    int size;

    about = rueda_handshake_peer_about(shake, &bytes);
    if (!rueda_meet_about_read(about, bytes, out_rank, &size))
        rueda_text_set(why,
                       "rank %d does not understand what the connection is",
                       rueda_meeting_rank(meeting, 0));
    else if (size != meeting->size)
        rueda_text_set(why,
                       "rank %d says that job \"%s\" has %d ranks, rank 0 says "
                       "%d; start all with the same number, or set another "
                       "RUEDA_JOB for another job",
                       *out_rank, rueda_meeting_title(meeting), size,
                       meeting->size);
    else if (*out_rank < 0 || *out_rank >= size)
        rueda_text_set(why, "there is no rank %d in a job of %d", *out_rank,
                       size);
    else if (*out_rank == 0 || reception->sockets[*out_rank] >= 0)
        rueda_text_set(why,
                       "two processes say that they are rank %d of job \"%s\", "
                       "so two jobs of this name start at once; set another "
                       "RUEDA_JOB for each job, on all of its ranks",
                       rueda_meeting_rank(meeting, *out_rank),
                       rueda_meeting_title(meeting));
    return rueda_text_is_empty(why);
}

/* The admission's callback: take the two descriptors of a rank. */
static rueda_status admit(void *arg, int fd,
                          const struct rueda_handshake *shake,
                          const struct rueda_address *from,
                          struct rueda_text *why)
{
    struct reception *reception = arg;
    rueda_status status;
    int pair[2];
    int rank = -1;

    (void)from;
    status = rueda_unix_recv_fds(fd, pair, 2);
    if (status == RUEDA_IN_PROGRESS)
        return status;
    if (status == RUEDA_ERR_INVALID) {
        rueda_text_set(why, "the first rank of this host could not take the "
                            "descriptors of another; raise `ulimit -n`");
        rueda_meet_fail(fd, RUEDA_ERR_LIMIT, why);
    }
    if (status != RUEDA_OK)
        return status;
    if (!fits(reception, shake, &rank, why)) {
        rueda_fd_close(pair[0]);
        rueda_fd_close(pair[1]);
        rueda_meet_fail(fd, RUEDA_ERR_MISMATCH, why);
        if (is_contested(reception, rank))
            reception->contest = *why;
        return RUEDA_ERR_MISMATCH;
    }
    reception->sockets[rank] = fd;
    reception->fds[rank] = pair[0];
    reception->fds[reception->meeting->size + rank] = pair[1];
    reception->come++;
    return RUEDA_OK;
}

/* The ranks that have not come, in words. */
static void name_missing(const struct reception *reception,
                         struct rueda_text *error)
{
    int missing = reception->meeting->size - reception->come;
    int named = 0;

    rueda_text_set(error,
                   "%d of %d ranks of job \"%s\" did not come in time: "
                   "rank",
                   missing, reception->meeting->size,
                   rueda_meeting_title(reception->meeting));
    for (int i = 1; i < reception->meeting->size && named < 8; i++)
        if (reception->sockets[i] < 0)
            rueda_text_add(error, "%s%d", named++ > 0 ? ", " : " ",
                           rueda_meeting_rank(reception->meeting, i));
    if (missing > named)
        rueda_text_add(error, " and others");
    if (rueda_admission_is_short(&reception->admission))
        rueda_text_add(error,
                       "; this rank ran out of descriptors and needs some %d, "
                       "raise `ulimit -n`",
                       3 * reception->meeting->size + 16);
    else
        rueda_text_add(error, "; they must run as the same user on this host, "
                              "or raise RUEDA_START_TIMEOUT");
}

static rueda_status await_all(struct reception *reception,
                              struct rueda_text *error)
{
    int64_t deadline = reception->meeting->deadline_ns;

    while (reception->come < reception->meeting->size) {
        int64_t now = rueda_clock_ns();
        int64_t next = rueda_admission_next_ns(&reception->admission);

        if (now >= deadline) {
            name_missing(reception, error);
            return RUEDA_ERR_TIMEOUT;
        }
        if (reception->meeting->is_over != NULL &&
            reception->meeting->is_over(reception->meeting->arg, error))
            return RUEDA_ERR_PEER_LOST;
        if (next > now + SLICE_NS)
            next = now + SLICE_NS;
        rueda_fd_wait(rueda_admission_fd(&reception->admission), false,
                      next - now);
        rueda_admission_progress(&reception->admission, rueda_clock_ns());
        if (!rueda_text_is_empty(&reception->contest)) {
            *error = reception->contest;
            return RUEDA_ERR_MISMATCH;
        }
    }
    return RUEDA_OK;
}

/* Hand out the segment, wait until all have entered, let them go. */
static rueda_status let_in(struct reception *reception,
                           struct rueda_text *error)
{
    int64_t deadline = reception->meeting->deadline_ns;
    int size = reception->meeting->size;
    rueda_status status = RUEDA_OK;
    char start = RUEDA_MEET_START;
    char go = RUEDA_MEET_GO;
    int rank = 0;

    for (rank = 1; rank < size && status == RUEDA_OK; rank++) {
        status = rueda_stream_send_all(reception->sockets[rank], &start, 1,
                                       deadline);
        if (status == RUEDA_OK)
            status =
                rueda_meet_send_fds(reception->sockets[rank], reception->fds,
                                    2 * size + 1, deadline);
    }
    if (status == RUEDA_OK)
        for (rank = 1; rank < size && status == RUEDA_OK; rank++)
            status = rueda_meet_recv_kind(reception->sockets[rank],
                                          RUEDA_MEET_READY, deadline, error);
    if (status != RUEDA_OK) {
        rueda_text_set(error, "rank %d went away while the job started",
                       rueda_meeting_rank(reception->meeting, rank - 1));
        return RUEDA_ERR_PEER_LOST;
    }
    /* A rank that is let go may start the next job of this name at once. */
    rueda_admission_fini(&reception->admission);
    rueda_fd_close(reception->listener);
    reception->listener = -1;
    for (rank = 1; rank < size && status == RUEDA_OK; rank++)
        status =
            rueda_stream_send_all(reception->sockets[rank], &go, 1, deadline);
    if (status != RUEDA_OK)
        rueda_text_set(error, "rank %d went away while the job started",
                       rueda_meeting_rank(reception->meeting, rank - 1));
    return status;
}

/* Listen under the name of the job. A process that already does so is told, and
 * both starts end, unless its last rank has just come. */
static rueda_status take_name(struct reception *reception,
                              struct rueda_text *error)
{
    const struct rueda_meeting *meeting = reception->meeting;
    const int own[2] = {reception->fds[0], reception->fds[meeting->size]};
    rueda_status status;
    char name[128];

    rueda_meet_name(name, sizeof(name), meeting->job);
    for (;;) {
        status = rueda_unix_listen(name, &reception->listener);
        if (status == RUEDA_OK)
            return RUEDA_OK;
        if (errno != EADDRINUSE || rueda_clock_ns() >= meeting->deadline_ns)
            break;
        status = rueda_segment_contest(meeting, own, error);
        if (status != RUEDA_IN_PROGRESS)
            return status;
        rueda_sleep_ns(RUEDA_MS(1));
    }
    rueda_text_set(error,
                   "cannot listen for job \"%s\": %s; if another job of "
                   "that name is starting, set RUEDA_JOB",
                   rueda_meeting_title(meeting), strerror(errno));
    return status;
}

/* Hold a second name as long as the job runs, so that no second job starts
 * that could take a rank of this one. */
static rueda_status take_claim(const struct rueda_meeting *meeting,
                               struct rueda_segment *segment,
                               struct rueda_text *error)
{
    int64_t deadline = rueda_clock_ns() + PATIENCE_NS;
    char name[128];

    rueda_meet_name(name, sizeof(name), meeting->job);
    strncat(name, "-runs", sizeof(name) - strlen(name) - 1);
    if (deadline > meeting->deadline_ns)
        deadline = meeting->deadline_ns;
    while (rueda_unix_listen(name, &segment->claim) != RUEDA_OK) {
        if (errno == EADDRINUSE && rueda_clock_ns() < deadline) {
            rueda_sleep_ns(RUEDA_MS(1));
            continue;
        }
        segment->claim = -1;
        rueda_text_set(error,
                       "a job of this program in this folder runs already, and "
                       "has a rank %d (%s); set another RUEDA_JOB for another "
                       "job, on all of its ranks",
                       rueda_meeting_rank(meeting, 0), strerror(errno));
        return RUEDA_ERR_MISMATCH;
    }
    return RUEDA_OK;
}

static rueda_status begin_listening(struct reception *reception,
                                    struct rueda_text *error)
{
    static const struct rueda_admission_ops ops = {.proven = admit};
    const struct rueda_admission_args args = {
        .who = "the first rank of this host",
        .purpose = RUEDA_FOR_SEGMENT,
        .key = reception->meeting->key,
        .most = reception->meeting->size + RUEDA_ADMISSION_MOST,
        .ops = &ops,
        .arg = reception};
    rueda_status status = take_name(reception, error);

    if (status != RUEDA_OK)
        return status;
    if (rueda_admission_init(&reception->admission, &args) != RUEDA_OK ||
        rueda_admission_listen(&reception->admission, reception->listener,
                               true) != RUEDA_OK) {
        rueda_text_set(error, "cannot wait for the other ranks: %s",
                       strerror(errno));
        return RUEDA_ERR_IO;
    }
    return RUEDA_OK;
}

/* In the child of a fork: what is open here must not outlive the start. */
static void close_in_child(struct rueda_fork_hook *hook)
{
    struct reception *reception =
        (struct reception *)((char *)hook -
                             offsetof(struct reception, fork_hook));

    rueda_fd_close(reception->listener);
    rueda_admission_forked(&reception->admission);
    for (int i = 0; i < reception->meeting->size; i++)
        rueda_fd_close(reception->sockets[i]);
    for (int i = 0; i < 2 * reception->meeting->size; i++)
        rueda_fd_close(reception->fds[i]);
}

static struct reception *reception_new(const struct rueda_meeting *meeting,
                                       struct rueda_segment *segment,
                                       const int own[2])
{
    int size = meeting->size;
    struct reception *reception = calloc(1, sizeof(*reception));

    if (reception == NULL)
        return NULL;
    reception->meeting = meeting;
    reception->listener = -1;
    reception->come = 1;
    reception->sockets = malloc((size_t)size * sizeof(int));
    reception->fds = malloc((2 * (size_t)size + 1) * sizeof(int));
    if (reception->sockets == NULL || reception->fds == NULL) {
        free(reception->sockets);
        free(reception->fds);
        free(reception);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        reception->sockets[i] = -1;
        reception->fds[i] = -1;
        reception->fds[size + i] = -1;
    }
    reception->fds[0] = own[0];
    reception->fds[size] = own[1];
    reception->fds[size + size] = rueda_segment_fd(segment);
    reception->fork_hook.in_child = close_in_child;
    rueda_fork_hook_add(&reception->fork_hook);
    return reception;
}

/* The descriptors in fds are the segment's by now if it was entered. */
static void reception_free(struct reception *reception, bool has_entered)
{
    int size = reception->meeting->size;

    rueda_fork_hook_remove(&reception->fork_hook);
    rueda_admission_fini(&reception->admission);
    for (int i = 0; i < size; i++)
        rueda_fd_close(reception->sockets[i]);
    for (int i = 0; i < 2 * size && !has_entered; i++)
        rueda_fd_close(reception->fds[i]);
    rueda_fd_close(reception->listener);
    free(reception->sockets);
    free(reception->fds);
    free(reception);
}

rueda_status rueda_segment_receive(const struct rueda_meeting *meeting,
                                   struct rueda_segment *segment,
                                   const int own[2], struct rueda_text *error)
{
    struct reception *reception = reception_new(meeting, segment, own);
    rueda_status status = RUEDA_OK;
    bool has_entered = false;

    if (reception == NULL) {
        rueda_fd_close(own[0]);
        rueda_fd_close(own[1]);
        return RUEDA_ERR_NOMEM;
    }
    if (meeting->size > 1)
        status = begin_listening(reception, error);
    if (status == RUEDA_OK && meeting->size > 1 && meeting->is_by_program)
        status = take_claim(meeting, segment, error);
    if (status == RUEDA_OK && meeting->size > 1)
        status = await_all(reception, error);
    if (status == RUEDA_OK) {
        status = rueda_segment_enter(segment, reception->fds,
                                     reception->fds + meeting->size, error);
        has_entered = true;
    }
    if (status == RUEDA_OK && meeting->size > 1)
        status = let_in(reception, error);
    for (int i = 1; i < meeting->size && status != RUEDA_OK; i++)
        if (reception->sockets[i] >= 0)
            rueda_meet_fail(reception->sockets[i], status, error);
    reception_free(reception, has_entered);
    return status;
}
