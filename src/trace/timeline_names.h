/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and their numbers, from 1 on, for the timeline. One thread at a time.
 */
#ifndef RUEDA_TRACE_TIMELINE_NAMES_H
#define RUEDA_TRACE_TIMELINE_NAMES_H

#include <rueda/rueda.h>

struct rueda_timeline_name {
    uint64_t hash;
    size_t len;
    char *text; /* not ended by a zero */
};

/* All zero is a table of none. */
struct rueda_timeline_names {
    struct rueda_timeline_name *names; /* [count] of room, number 1 first */
    uint32_t count;
    uint32_t room;
    uint32_t *buckets; /* [2 x room] numbers, by hash; 0: free */
};

/* The number of a text; a new one is count afterwards. 0: there are
 * RUEDA_TIMELINE_NAMES already, or no memory for one more. */
uint32_t rueda_timeline_names_get(struct rueda_timeline_names *self,
                                  const char *text, size_t len);

void rueda_timeline_names_fini(struct rueda_timeline_names *self);

uint64_t rueda_timeline_hash(const char *text, size_t len);

#endif /* RUEDA_TRACE_TIMELINE_NAMES_H */
