/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the segment: how it is laid out, and one mapping of it in this
 * process. Private to this folder. Any thread, as long as no other uses the
 * mapping.
 */
#ifndef RUEDA_SEGMENT_MAPPING_H
#define RUEDA_SEGMENT_MAPPING_H

#include <stdatomic.h>

#include "os/memory.h"
#include "segment/segment.h"

/* At the start of the mapping; members follow on the next page, then their
 * flight recorders. */
struct segment_head {
    char magic[8];
    uint64_t layout; /* layout_hash() of the library that made it */
    uint32_t size;
    uint64_t range_bytes;
    unsigned char nonce[16];
    atomic_uint departures; /* of members, so far */
    struct rueda_segment_common common;
};

/* One mapping of the memfd in this process; threads that are ranks share it. */
struct rueda_mapping {
    atomic_int users;
    int fd;
    void *base;
    size_t bytes;
    int *doorbells; /* [doorbell_count], if ranks are threads: any of them may
                       ring until the last has left */
    int doorbell_count;
};

/* Where parts of the segment of `size` members begin, in bytes. */
uint64_t rueda_mapping_flights(int size);
uint64_t rueda_mapping_ranges(int size);

/* The lines of the members. */
static inline struct rueda_member *
rueda_mapping_members(const struct rueda_mapping *mapping)
{
    return (struct rueda_member *)((char *)mapping->base + RUEDA_PAGE_BYTES);
}

/* A new segment, in a memfd of its own, or in one that was inherited unless
 * addresses are short. Has one user. */
rueda_status rueda_mapping_make(int size, int inherited,
                                struct rueda_mapping **out,
                                struct rueda_text *error);

/* Map the segment that another process made; takes memfd in any case.
 * RUEDA_ERR_MISMATCH, RUEDA_ERR_VERSION: it is none, or that of another
 * release. */
rueda_status rueda_mapping_attach(int size, int memfd,
                                  struct rueda_mapping **out,
                                  struct rueda_text *error);

/* The last user unmaps it. */
void rueda_mapping_release(struct rueda_mapping *mapping);

/* In the child of a fork. */
void rueda_mapping_close_descriptors(struct rueda_mapping *mapping);

#endif /* RUEDA_SEGMENT_MAPPING_H */
