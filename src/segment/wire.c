/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/wire.h"

#include <stdio.h>
#include <string.h>

#include "auth/key.h"
#include "base/bytes.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/stream.h"
#include "os/unix_socket.h"

/* How often to retry what no descriptor reports. */
#define PAUSE_NS 100000

void rueda_meet_about_write(unsigned char *out, int rank, int size)
{
    rueda_put_u32(out, (uint32_t)rank);
    rueda_put_u32(out + 4, (uint32_t)size);
}

bool rueda_meet_about_read(const void *about, size_t bytes, int *out_rank,
                           int *out_size)
{
    if (about == NULL || bytes != RUEDA_MEET_ABOUT_BYTES)
        return false;
    *out_rank = (int)rueda_get_u32(about);
    *out_size = (int)rueda_get_u32((const unsigned char *)about + 4);
    return true;
}

void rueda_meet_name(char *out, size_t bytes, const char *job)
{
    char hidden[RUEDA_HIDDEN_NAME_BYTES];

    rueda_hidden_name(job, hidden);
    snprintf(out, bytes, "rueda-%u-%s", rueda_process_user(), hidden);
}

static int part_of(int count)
{
    return count < RUEDA_UNIX_MOST_FDS ? count : RUEDA_UNIX_MOST_FDS;
}

rueda_status rueda_meet_send_fds(int fd, const int *fds, int count,
                                 int64_t deadline_ns)
{
    while (count > 0) {
        int part = part_of(count);
        rueda_status status = rueda_unix_send_fds(fd, fds, part);

        if (status == RUEDA_OK) {
            fds += part;
            count -= part;
        } else if (status == RUEDA_IN_PROGRESS) {
            /* There may be room, and too many descriptors in flight. */
            rueda_sleep_ns(PAUSE_NS);
            status = rueda_stream_await(fd, true, deadline_ns);
        }
        if (status < 0)
            return status;
    }
    return RUEDA_OK;
}

rueda_status rueda_meet_recv_fds(int fd, int *out_fds, int count,
                                 int64_t deadline_ns)
{
    while (count > 0) {
        int part = part_of(count);
        rueda_status status = rueda_unix_recv_fds(fd, out_fds, part);

        if (status == RUEDA_OK) {
            out_fds += part;
            count -= part;
        } else if (status == RUEDA_IN_PROGRESS) {
            status = rueda_stream_await(fd, false, deadline_ns);
        }
        if (status < 0)
            return status;
    }
    return RUEDA_OK;
}

void rueda_meet_fail(int fd, rueda_status status, const struct rueda_text *why)
{
    size_t len = strlen(why->chars);
    unsigned char head[4] = {RUEDA_MEET_FAIL, (unsigned char)-status,
                             (unsigned char)len, (unsigned char)(len >> 8)};
    int64_t soon = rueda_clock_ns() + 100000000;

    if (rueda_stream_send_all(fd, head, sizeof(head), soon) == RUEDA_OK)
        rueda_stream_send_all(fd, why->chars, len, soon);
}

/* What follows the kind byte of a failure. */
static rueda_status recv_failure(int fd, int64_t deadline_ns,
                                 struct rueda_text *error)
{
    char words[sizeof(error->chars)] = "";
    unsigned char head[3];
    rueda_status status =
        rueda_stream_recv_all(fd, head, sizeof(head), deadline_ns);
    size_t bytes;

    if (status != RUEDA_OK)
        return status;
    bytes = head[1] | (size_t)head[2] << 8;
    if (head[0] == 0 || head[0] > -RUEDA_ERR_STALLED || bytes >= sizeof(words))
        return RUEDA_ERR_INVALID;
    status = rueda_stream_recv_all(fd, words, bytes, deadline_ns);
    if (status != RUEDA_OK)
        return status;
    rueda_text_set(error, "%s", words);
    return (rueda_status)-head[0];
}

rueda_status rueda_meet_recv_kind(int fd, char wanted, int64_t deadline_ns,
                                  struct rueda_text *error)
{
    rueda_status status;
    char kind;

    status = rueda_stream_recv_all(fd, &kind, 1, deadline_ns);
    if (status != RUEDA_OK || kind == wanted)
        return status;
    if (kind != RUEDA_MEET_FAIL)
        return RUEDA_ERR_INVALID;
    return recv_failure(fd, deadline_ns, error);
}
