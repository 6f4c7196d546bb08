/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of a meeting say on the Unix socket after the handshake.
 * Every message is one kind byte; that of a failure is followed by its status,
 * a length in two bytes and that many characters.
 */
#ifndef RUEDA_SEGMENT_WIRE_H
#define RUEDA_SEGMENT_WIRE_H

#include <rueda/rueda.h>

#include "base/text.h"

#define RUEDA_MEET_START 's' /* memfd and descriptors follow */
#define RUEDA_MEET_READY 'r' /* I have mapped and filled in my line */
#define RUEDA_MEET_GO    'g'
#define RUEDA_MEET_FAIL  'f'

/* My rank and size as I claim them: inside the handshake, so authenticated. */
#define RUEDA_MEET_ABOUT_BYTES 8
void rueda_meet_about_write(unsigned char *out, int rank, int size);
bool rueda_meet_about_read(const void *about, size_t bytes, int *out_rank,
                           int *out_size);

/* The socket's name: "rueda-<user>-<digest of the job's name>". Every user can
 * list the names of sockets, and the job's is not to be read there. */
void rueda_meet_name(char *out, size_t bytes, const char *job);

/* Descriptors, waiting until the deadline. */
rueda_status rueda_meet_send_fds(int fd, const int *fds, int count,
                                 int64_t deadline_ns);
rueda_status rueda_meet_recv_fds(int fd, int *out_fds, int count,
                                 int64_t deadline_ns);

/* Tell the other end why; best effort. */
void rueda_meet_fail(int fd, rueda_status status, const struct rueda_text *why);

/* The next kind byte. If the other end reports a failure instead, its words go
 * to error, and its status is returned. */
rueda_status rueda_meet_recv_kind(int fd, char wanted, int64_t deadline_ns,
                                  struct rueda_text *error);

#endif /* RUEDA_SEGMENT_WIRE_H */
