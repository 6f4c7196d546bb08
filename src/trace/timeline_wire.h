/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of the timeline as bytes: what lies in buffers, and what travels to
 * rank 0. Pure.
 *
 *     0        1        2        4        8                 16
 *     | what   | code   | extra  | id     | time, ns        | extra bytes ...
 *
 * Whole numbers are little-endian. There is one way to write each record; all
 * others are refused.
 *
 *     what      code        id    extra
 *     NAME      0           name  1 to RUEDA_TIMELINE_NAME_MAX bytes of it
 *     BEGIN     activity    name  none
 *     END       0           name  none, or dtype u8, dims u8, dims x u64
 *     ARRIVAL   0           name  rank u32
 *     CYCLE     0           0     none
 *     LOST      0           0     count u64, of all that were dropped so far
 *
 * A name has a number that its rank gives it; NAME comes before all others of
 * that number.
 */
#ifndef RUEDA_TRACE_TIMELINE_WIRE_H
#define RUEDA_TRACE_TIMELINE_WIRE_H

#include "trace/timeline.h"

/* So short that the line of the longest in the file fits in a page, whatever
 * has to be escaped in it (os/capped.h). */
#define RUEDA_TIMELINE_NAME_MAX 512

/* Names have numbers from 1 to this. */
#define RUEDA_TIMELINE_NAMES ((uint32_t)1 << 17)

#define RUEDA_TIMELINE_HEAD_BYTES 16
#define RUEDA_TIMELINE_RECORD_MAX                                              \
    (RUEDA_TIMELINE_HEAD_BYTES + RUEDA_TIMELINE_NAME_MAX)

typedef enum rueda_timeline_what {
    RUEDA_TIMELINE_NAME,
    RUEDA_TIMELINE_BEGIN,
    RUEDA_TIMELINE_END,
    RUEDA_TIMELINE_ARRIVAL,
    RUEDA_TIMELINE_CYCLE,
    RUEDA_TIMELINE_LOST,
} rueda_timeline_what;

struct rueda_timeline_record {
    rueda_timeline_what what;
    rueda_timeline_activity activity; /* BEGIN */
    uint32_t id;
    int64_t time_ns; /* 0 or more; of rank 0's clock when it travels */

    const char *name; /* NAME; borrowed, not ended by a zero */
    size_t name_len;
    int rank;      /* ARRIVAL */
    uint64_t lost; /* LOST */

    /* END; dims is -1 if the record does not describe the tensor. */
    rueda_dtype dtype;
    int dims;
    uint64_t shape[RUEDA_MAX_DIMS];
};

/* Write a record, which must be one that can be read; returns its bytes. */
size_t rueda_timeline_write(const struct rueda_timeline_record *record,
                            unsigned char out[RUEDA_TIMELINE_RECORD_MAX]);

/* The time of a record that was written, and another for it. */
int64_t rueda_timeline_time(const unsigned char *record);
void rueda_timeline_set_time(unsigned char *record, int64_t time_ns);

/* Read the record that these bytes begin with; returns its bytes, or 0 if that
 * is none. Its name points into them. */
size_t rueda_timeline_read(const void *bytes, size_t len,
                           struct rueda_timeline_record *out);

#endif /* RUEDA_TRACE_TIMELINE_WIRE_H */
