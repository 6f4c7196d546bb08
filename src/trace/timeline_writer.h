/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of rank 0 that takes records out of the buffer and writes the file
 * of the timeline. */
#ifndef RUEDA_TRACE_TIMELINE_WRITER_H
#define RUEDA_TRACE_TIMELINE_WRITER_H

#include "trace/timeline.h"
#include "trace/timeline_ring.h"

struct rueda_timeline_writer;

/* As rueda_timeline_open(); the ring is borrowed until the writer is closed. */
rueda_status rueda_timeline_writer_open(struct rueda_timeline_ring *ring,
                                        const char *path, int ranks,
                                        int64_t start_ns,
                                        struct rueda_timeline_writer **out,
                                        struct rueda_text *error);

/* Write all that is in the buffer, and how many were lost on their way into it;
 * end the thread and close the file. */
void rueda_timeline_writer_close(struct rueda_timeline_writer *self,
                                 uint64_t lost);

/* There is much in the buffer: wake the thread early. Never waits; if the call
 * is missed only some time is lost. */
void rueda_timeline_writer_hurry(struct rueda_timeline_writer *self);

/* In the child after a fork(): close the file. */
void rueda_timeline_writer_leave(struct rueda_timeline_writer *self);

#endif /* RUEDA_TRACE_TIMELINE_WRITER_H */
