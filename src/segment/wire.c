/* SPDX-License-Identifier: Apache-2.0 */
#include "segment/wire.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/process.h"
#include "os/unix_socket.h"

/* How long between two looks for what no descriptor tells. */
#define PAUSE_NS 100000

static void put_u32(unsigned char *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get_u32(const unsigned char *in)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++)
        value |= (uint32_t)in[i] << 8 * i;
    return value;
}

void rueda_meet_about_write(unsigned char *out, int rank, int size)
{
    put_u32(out, (uint32_t)rank);
    put_u32(out + 4, (uint32_t)size);
}

bool rueda_meet_about_read(const void *about, size_t bytes, int *out_rank,
                           int *out_size)
{
    if (about == NULL || bytes != RUEDA_MEET_ABOUT_BYTES)
        return false;
    *out_rank = (int)get_u32(about);
    *out_size = (int)get_u32((const unsigned char *)about + 4);
    return true;
}

void rueda_meet_name(char *out, size_t bytes, const char *job)
{
    snprintf(out, bytes, "rueda-%u-%s", rueda_process_user(), job);
}

rueda_status rueda_meet_shake(int fd, struct rueda_handshake *shake)
{
    unsigned char byte[1];
    rueda_status status = RUEDA_OK;
    size_t moved;

    for (;;) {
        const void *bytes;
        size_t waiting = rueda_handshake_output(shake, &bytes);

        if (waiting > 0) {
            status = rueda_unix_send(fd, bytes, waiting, &moved);
            rueda_handshake_sent(shake, moved);
            if (status == RUEDA_OK)
                continue;
        }
        if (rueda_handshake_done(shake))
            return RUEDA_OK;
        if (status < 0)
            break;
        /* Byte by byte, so that nothing after the handshake is swallowed:
         * descriptors ride on the bytes that follow. */
        status = rueda_unix_recv(fd, byte, 1, &moved);
        if (status != RUEDA_OK)
            break;
        status = rueda_handshake_input(shake, byte, 1, &moved);
        if (status < 0)
            return status;
    }
    if (status == RUEDA_ERR_PEER_LOST)
        return rueda_handshake_closed(shake);
    return status;
}

/* Wait for fd; RUEDA_ERR_TIMEOUT once the deadline has passed. */
static rueda_status await(int fd, bool for_writing, int64_t deadline_ns)
{
    int64_t left = deadline_ns - rueda_clock_ns();

    if (left <= 0)
        return RUEDA_ERR_TIMEOUT;
    rueda_fd_wait(fd, for_writing, left);
    return RUEDA_OK;
}

rueda_status rueda_meet_send(int fd, const void *buf, size_t len,
                             int64_t deadline_ns)
{
    const char *at = buf;

    while (len > 0) {
        size_t moved;
        rueda_status status = rueda_unix_send(fd, at, len, &moved);

        at += moved;
        len -= moved;
        if (status == RUEDA_IN_PROGRESS)
            status = await(fd, true, deadline_ns);
        if (status < 0)
            return status;
    }
    return RUEDA_OK;
}

rueda_status rueda_meet_recv(int fd, void *buf, size_t len, int64_t deadline_ns)
{
    char *at = buf;

    while (len > 0) {
        size_t moved;
        rueda_status status = rueda_unix_recv(fd, at, len, &moved);

        at += moved;
        len -= moved;
        if (status == RUEDA_IN_PROGRESS)
            status = await(fd, false, deadline_ns);
        if (status < 0)
            return status;
    }
    return RUEDA_OK;
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
            /* There may be room, and too many descriptors under way. */
            rueda_sleep_ns(PAUSE_NS);
            status = await(fd, true, deadline_ns);
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
            status = await(fd, false, deadline_ns);
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

    if (rueda_meet_send(fd, head, sizeof(head), soon) == RUEDA_OK)
        rueda_meet_send(fd, why->chars, len, soon);
}

/* What follows the kind byte of a failure. */
static rueda_status recv_failure(int fd, int64_t deadline_ns,
                                 struct rueda_text *error)
{
    char words[sizeof(error->chars)] = "";
    unsigned char head[3];
    rueda_status status = rueda_meet_recv(fd, head, sizeof(head), deadline_ns);
    size_t bytes;

    if (status != RUEDA_OK)
        return status;
    bytes = head[1] | (size_t)head[2] << 8;
    if (head[0] == 0 || head[0] > -RUEDA_ERR_CANCELLED ||
        bytes >= sizeof(words))
        return RUEDA_ERR_INVALID;
    status = rueda_meet_recv(fd, words, bytes, deadline_ns);
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

    status = rueda_meet_recv(fd, &kind, 1, deadline_ns);
    if (status != RUEDA_OK || kind == wanted)
        return status;
    if (kind != RUEDA_MEET_FAIL)
        return RUEDA_ERR_INVALID;
    return recv_failure(fd, deadline_ns, error);
}
