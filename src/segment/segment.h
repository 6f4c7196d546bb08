/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the ranks of a host share.
 *
 * One sparse memfd, sealed against a change of size, mapped once a process.
 * It begins with a header and a line for every member; the rest is cut into one
 * range a member, in which that member alone gives out pages (heap.h), so no
 * lock is shared between processes. Offsets travel between members, pointers
 * never.
 *
 *     | header | members | flights | range of 0 | ... | range of n-1 |
 *
 * Pages cost memory only when they are first touched, and the whole file is
 * gone with its last process: nothing has a name that could be left behind.
 *
 * A member that is about to sleep shows that in its line; a member with news
 * for it rings its doorbell, an eventfd, only then. A member that leaves shows
 * that in its line; one that dies is noticed by its pidfd
 * (rueda_segment_watch).
 *
 * A struct rueda_segment is one member's view and is used by one thread at a
 * time (the holder of the engine's token), except where noted.
 */
#ifndef RUEDA_SEGMENT_SEGMENT_H
#define RUEDA_SEGMENT_SEGMENT_H

#include <rueda/rueda.h>

#include <pthread.h>
#include <stdatomic.h>

#include "auth/key.h"
#include "base/config.h"
#include "base/line.h"
#include "base/text.h"
#include "os/machine.h"

#define RUEDA_SEGMENT_HOST_BYTES   64
#define RUEDA_SEGMENT_MAX          1024 /* members */
#define RUEDA_SEGMENT_FLIGHT_BYTES 4096

enum rueda_presence {
    RUEDA_ABSENT, /* has not come yet */
    RUEDA_PRESENT,
    RUEDA_FAILED, /* is there, and will take part in nothing any more */
    RUEDA_LEFT,   /* closed its context in good order */
};

/* For the text by which members compare their process sets. */
#define RUEDA_SEGMENT_SETS_BYTES 128

/* What a member has for the next term of its job (job/formation_next.c). */
struct rueda_offer {
    _Atomic uint64_t term; /* stored last, and 0 while it writes the others */
    _Atomic uint64_t members; /* a hash of them, in their order */
    _Atomic uint64_t pairs;   /* offset of its pipes with members after it */
    _Atomic uint64_t slab;    /* offsets of slabs, from the first rank alone */
    _Atomic uint64_t named;
};

/* The lanes of all ranks: of ordered operations, and of named ones. */
#define RUEDA_MEMBER_LANES 2

/* What a member says of the steps that it has, and of the next term
 * (job/vote.h). In cache lines of its own. */
struct rueda_member_vote {
    _Alignas(128) _Atomic uint64_t has[RUEDA_MEMBER_LANES];
    _Atomic uint64_t boundaries;
    _Atomic uint64_t frozen; /* for this term; stored after all above */

    /* What it proposes, for the term that it is frozen for. */
    _Alignas(128) _Atomic uint64_t limits[RUEDA_MEMBER_LANES];
    _Atomic uint64_t last_boundary;
    _Atomic uint64_t survivors[RUEDA_SEGMENT_MAX / 64]; /* a bit for each */
};

/* A member's line, written by that member, read by all. Two cache lines, so
 * that neighbours' prefetchers do not meet. */
struct rueda_member {
    _Alignas(128) atomic_uint sleeping;
    atomic_uint presence;
    atomic_uint departure; /* its place among those that failed or left, or 0 */
    int32_t rank;          /* in the job */
    int32_t pid;
    char host[RUEDA_SEGMENT_HOST_BYTES];
    struct rueda_text failure; /* why it failed, in its own words */
    struct rueda_cpus cpus;    /* that it may run on */
    uint64_t pairs_offset;     /* of its channels with members after it */
    char
        sets[RUEDA_SEGMENT_SETS_BYTES]; /* process sets that it starts with, in
                                   words that others compare (job/set_text.h) */
    uint16_t port; /* where it listens, if messages take TCP in this host */
    struct rueda_offer offer;
    struct rueda_member_vote vote;
};

/* What the first member decides for all, before the others can look. */
struct rueda_segment_common {
    uint64_t slab_offset;  /* of the slab of all members */
    uint64_t named_offset; /* of theirs for named tensors */
    uint64_t cell_bytes;
    uint64_t fusion_bytes;    /* of small tensors that run as one */
    uint32_t cache_capacity;  /* names that are known by number */
    uint32_t transport;       /* rueda_config_transport */
    uint32_t repairs;         /* RUEDA_REPAIR */
    _Atomic uint64_t called;  /* the latest term that a member is frozen for; */
    _Atomic uint64_t decided; /* and the latest that is decided (job/vote.h) */
    struct rueda_key key;     /* of the ranks of this host alone */
    char algo[RUEDA_PATH_BYTES];
};

struct rueda_segment {
    int me; /* my place among the members, which is not my rank in the job if
               that has other hosts */
    int size;
    char *base;   /* where the memfd is mapped here */
    size_t bytes; /* of the whole mapping */
    struct rueda_member *members;
    char *flights; /* [size] areas of RUEDA_SEGMENT_FLIGHT_BYTES
                      (trace/flight.h) */
    struct rueda_segment_common *common;
    struct rueda_heap *heap; /* pages of my own range, under heap_lock */
    pthread_mutex_t heap_lock;
    struct rueda_mapping *mapping;
    int *doorbells;     /* [size] eventfds; not mine if the ranks are threads */
    int *pidfds;        /* [size], -1 where there is none (threads) */
    bool *dead;         /* [size] seen by its pidfd */
    bool *is_dismissed; /* [size] no member of the job any more */
    int poller;         /* epoll of my doorbell and the pidfds */
    int life;           /* open as long as I live, where there are no pidfds;
                           or -1 */
    int claim;          /* rank 0's on the name of the job (meet.h), or -1 */
};

/*
 * Make the segment of a job whose ranks are threads of this process: size
 * views of one mapping, out[i] for rank i. All members are present at once.
 */
rueda_status rueda_segment_threads(int size, struct rueda_segment **out,
                                   struct rueda_text *error);

/* How large the memfd of this many members is, for a launcher that makes it for
 * rank 0 to inherit. */
size_t rueda_segment_bytes(int size);

/*
 * Make the segment of a job of processes, as rank 0: in a memfd of its own, or
 * in one that it inherited (or -1), whose descriptor is copied.
 */
rueda_status rueda_segment_make(int size, int inherited,
                                struct rueda_segment **out,
                                struct rueda_text *error);

/* Look at a segment whose memfd came from rank 0; memfd is taken in any case.
 */
rueda_status rueda_segment_attach(int rank, int size, int memfd,
                                  struct rueda_segment **out,
                                  struct rueda_text *error);

/* The memfd, to be passed on; stays the segment's. */
int rueda_segment_fd(const struct rueda_segment *segment);

/*
 * Give the segment its doorbells and pidfds, [size] each, taken in any case;
 * then my line can be seen by others.
 */
rueda_status rueda_segment_enter(struct rueda_segment *segment,
                                 const int *doorbells, const int *pidfds,
                                 struct rueda_text *error);

/* Mark myself as leaving, before I close what others may miss. */
void rueda_segment_leave(struct rueda_segment *segment);

/* Leave, wake all members, unmap. NULL is allowed. */
void rueda_segment_close(struct rueda_segment *segment);

/* In the child of a fork: close the descriptors and touch nothing else. */
void rueda_segment_forked(struct rueda_segment *segment);

/* ---- News ------------------------------------------------------------ */

/* I have written something that member may be waiting for: wake it if it
 * sleeps. A few nanoseconds if it does not, most of them for a fence, of which
 * several members need one. Any thread. */
void rueda_segment_notify(struct rueda_segment *segment, int member);
void rueda_segment_notify_all(struct rueda_segment *segment);
void rueda_segment_notify_some(struct rueda_segment *segment,
                               const int *members, int count);

/* Am I asleep, or about to be? A rank that asks this after a sequentially
 * consistent store of its news has to notify me only then. Any thread. */
bool rueda_segment_is_asleep(const struct rueda_segment *segment);

/*
 * Sleep until a member notifies me, one dies or timeout_ns passes (negative:
 * for ever). Two steps, so that news between them is not lost: arm, check once
 * more whether there is something to do, then either wait or disarm.
 */
void rueda_segment_arm(struct rueda_segment *segment);
void rueda_segment_disarm(struct rueda_segment *segment);
void rueda_segment_wait(struct rueda_segment *segment, int64_t timeout_ns);

/* Be woken also by what happens at this descriptor, until it is closed. */
rueda_status rueda_segment_watch_fd(struct rueda_segment *segment, int fd);

/* Has this member died, failed or left? Reads memory only; deaths are learned
 * in rueda_segment_wait() and rueda_segment_watch(). */
bool rueda_segment_is_gone(const struct rueda_segment *segment, int member);

/* Has it left in good order? */
static inline bool rueda_segment_has_left(const struct rueda_segment *segment,
                                          int member)
{
    return atomic_load_explicit(&segment->members[member].presence,
                                memory_order_acquire) == RUEDA_LEFT;
}

/* Has it failed, and said so? */
static inline bool rueda_segment_has_failed(const struct rueda_segment *segment,
                                            int member)
{
    return atomic_load_explicit(&segment->members[member].presence,
                                memory_order_acquire) == RUEDA_FAILED;
}

/* The job goes on without this member, and its absence is no failure. */
void rueda_segment_dismiss(struct rueda_segment *segment, int member);

/* Is any member gone? Not counting members that were dismissed, nor those that
 * left in good order, if asked so: they may have done their part before. */
bool rueda_segment_has_gone(const struct rueda_segment *segment,
                            bool counts_left);

/* My context has failed: write that and why into my line and wake all members,
 * because they may wait for me. Once; any thread. */
void rueda_segment_fail(struct rueda_segment *segment, const char *why);

/* Learn of deaths without waiting. */
void rueda_segment_watch(struct rueda_segment *segment);

/* The member to blame, or -1 if none is gone that was not dismissed; words say
 * how: "rank 3 (pid 71 on host a) died", or failed, with why. A member that
 * died comes first, then the one that failed or left first, since later ones
 * may have done so because of it. */
int rueda_segment_first_gone(const struct rueda_segment *segment,
                             struct rueda_text *out_words);

/* ---- Memory: any thread ----------------------------------------------- */

/*
 * Zeroed pages of my own range. RUEDA_ERR_LIMIT, with words, where the machine
 * or the cgroup has not that much memory left; nothing has been touched then.
 */
rueda_status rueda_segment_alloc(struct rueda_segment *segment, size_t bytes,
                                 void **out, struct rueda_text *error);
void rueda_segment_free(struct rueda_segment *segment, void *ptr);

/* Addresses of my own range, whatever memory is left: for what is touched only
 * in small parts, when it is used. */
rueda_status rueda_segment_reserve(struct rueda_segment *segment, size_t bytes,
                                   uint64_t *out_offset,
                                   struct rueda_text *error);

/* The CPUs on which any member may run. */
int rueda_segment_cpus(const struct rueda_segment *segment);

static inline uint64_t rueda_segment_offset(const struct rueda_segment *segment,
                                            const void *ptr)
{
    return (uint64_t)((const char *)ptr - segment->base);
}

static inline void *rueda_segment_at(const struct rueda_segment *segment,
                                     uint64_t offset)
{
    return segment->base + offset;
}

static inline bool rueda_segment_holds(const struct rueda_segment *segment,
                                       const void *ptr, size_t bytes)
{
    uintptr_t base = (uintptr_t)segment->base;
    uintptr_t at = (uintptr_t)ptr;

    return at >= base && at - base <= segment->bytes &&
           segment->bytes - (at - base) >= bytes;
}

#endif /* RUEDA_SEGMENT_SEGMENT_H */
