/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From records to the events of a Chrome trace. Pure except for memory: each
 * event is passed on as text, with the comma before it. One thread at a time.
 *
 * A tensor is a "process", whose number is found by its name, whichever ranks
 * use it; a rank is a "thread" in it. As in Horovod's files, events of rank 0
 * have no tid.
 */
#ifndef RUEDA_TRACE_TIMELINE_JSON_H
#define RUEDA_TRACE_TIMELINE_JSON_H

#include "trace/timeline_names.h"
#include "trace/timeline_wire.h"

/* No event is longer. */
#define RUEDA_TIMELINE_EVENT_MAX 4000

typedef void (*rueda_timeline_emit)(void *arg, const char *text, size_t len);

/* What a rank means by one of its numbers. */
struct rueda_timeline_line {
    uint32_t pid;  /* 0: it has not sent the name */
    uint8_t depth; /* of what has begun and not ended */
};

struct rueda_timeline_speaker {
    struct rueda_timeline_line *lines; /* [count], by number */
    uint32_t count;
    uint64_t lost; /* there, as it says */
};

struct rueda_timeline_json {
    int ranks;
    int64_t start_ns; /* is zero in the file */
    int64_t last_ns;
    rueda_timeline_emit emit;
    void *arg;
    uint64_t count; /* of events so far */
    uint64_t lost;  /* here: of names that are not known */
    struct rueda_timeline_names names;
    struct rueda_timeline_speaker *speakers; /* [ranks] */
};

/* False: no memory. The first events are emitted, with the time of the start on
 * the wall. */
bool rueda_timeline_json_init(struct rueda_timeline_json *self, int ranks,
                              int64_t start_ns, int64_t epoch_us,
                              rueda_timeline_emit emit, void *arg);
void rueda_timeline_json_fini(struct rueda_timeline_json *self);

/* The records of a rank, 0 <= rank < ranks. What is no record ends it, and
 * false says so. */
bool rueda_timeline_json_add(struct rueda_timeline_json *self, int rank,
                             const void *bytes, size_t len);

/* The last events: how many are missing. lost: those that rank 0 dropped. */
void rueda_timeline_json_end(struct rueda_timeline_json *self, uint64_t lost);

#endif /* RUEDA_TRACE_TIMELINE_JSON_H */
