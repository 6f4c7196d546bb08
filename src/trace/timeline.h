/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline: what happened to each named tensor, on all ranks, on one clock,
 * as a Chrome trace. docs/timeline.md says what is in the file. (The other half
 * of this folder is the flight recorder, flight.h: what each rank did last.)
 *
 * A rank notes small records in a buffer of its own. On rank 0 a thread makes
 * JSON of them, ten times a second, and writes the file, so that the engine
 * never waits for a disk. Other ranks' records travel to rank 0 as blocks of
 * bytes, in whatever messages the engine has for them:
 *
 *     rank 3   note ... note    take() -> block ----.
 *     rank 0   note ... note                        |
 *                    |                              v
 *                    +-> buffer -> thread -> file <- add(3, block)
 *
 * Only the holder of the engine's token calls what takes a timeline, except
 * opening and closing, which happen when no other thread has it. Where it is
 * off there is no timeline, NULL, and a note costs the test for that.
 *
 * Memory is bounded: what does not fit in the buffer is dropped, both ends of
 * an activity or none, and counted; an event at the end of the file says how
 * many.
 *
 * The notes of two tensors a and b that are reduced together, on every rank:
 *
 *     as each is submitted
 *         rueda_timeline_begin(tl, "a", rueda_timeline_negotiation(kind, red))
 *     on the coordinator, as the word of each member comes in, its own too
 *         rueda_timeline_arrival(tl, "a", rank)
 *     when the decision to run it is there
 *         rueda_timeline_end(tl, "a")
 *         rueda_timeline_begin(tl, "a", rueda_timeline_operation(kind, red))
 *         rueda_timeline_begin(tl, "a", RUEDA_TIMELINE_QUEUE)
 *     when the batch starts, for both
 *         rueda_timeline_end(tl, "a")
 *         rueda_timeline_begin(tl, "a", RUEDA_TIMELINE_MEMCPY_IN_FUSION_BUFFER)
 *     when both are packed, for both
 *         rueda_timeline_end(tl, "a")
 *         rueda_timeline_begin(tl, "a", rueda_timeline_collective(kind, red))
 *     when the sum is there, for both
 *         rueda_timeline_end(tl, "a")
 *         rueda_timeline_begin(tl, "a",
 *                              RUEDA_TIMELINE_MEMCPY_OUT_FUSION_BUFFER)
 *     as each is unpacked and delivered
 *         rueda_timeline_end(tl, "a")
 *         rueda_timeline_end_with(tl, "a", dtype, dims, shape)
 *
 * A decision that is an error ends the negotiation and begins nothing.
 */
#ifndef RUEDA_TRACE_TIMELINE_H
#define RUEDA_TRACE_TIMELINE_H

#include <rueda/rueda.h>

#include "base/text.h"

/* ---- What is noted ------------------------------------------------------ */

/* The names are those of the file, Horovod's as far as it has them. Those up to
 * PROCESS_SET are never inside of another one. */
#define RUEDA_TIMELINE_MAP(X)                                                  \
    X(NEGOTIATE_ALLREDUCE)                                                     \
    X(NEGOTIATE_ALLGATHER)                                                     \
    X(NEGOTIATE_BROADCAST)                                                     \
    X(NEGOTIATE_ALLTOALL)                                                      \
    X(NEGOTIATE_REDUCESCATTER)                                                 \
    X(NEGOTIATE_BARRIER)                                                       \
    X(NEGOTIATE_JOIN)                                                          \
    X(NEGOTIATE_ADASUM)                                                        \
    X(NEGOTIATE_PROCESS_SET)                                                   \
    X(ALLREDUCE)                                                               \
    X(ALLGATHER)                                                               \
    X(BROADCAST)                                                               \
    X(ALLTOALL)                                                                \
    X(REDUCESCATTER)                                                           \
    X(BARRIER)                                                                 \
    X(JOIN)                                                                    \
    X(ADASUM)                                                                  \
    X(PROCESS_SET)                                                             \
    X(RUEDA_ALLREDUCE)                                                         \
    X(RUEDA_ALLGATHER)                                                         \
    X(RUEDA_BCAST)                                                             \
    X(RUEDA_ALLTOALL)                                                          \
    X(RUEDA_REDUCESCATTER)                                                     \
    X(RUEDA_BARRIER)                                                           \
    X(RUEDA_JOIN)                                                              \
    X(RUEDA_ADASUM_ALLREDUCE)                                                  \
    X(RUEDA_PROCESS_SET)                                                       \
    X(RUEDA_EXCHANGE_ROWS)                                                     \
    X(QUEUE)                                                                   \
    X(INIT_FUSION_BUFFER)                                                      \
    X(WAIT_FOR_DATA)                                                           \
    X(WAIT_FOR_OTHER_TENSOR_DATA)                                              \
    X(ALLOCATE_OUTPUT)                                                         \
    X(MEMCPY_IN_FUSION_BUFFER)                                                 \
    X(MEMCPY_OUT_FUSION_BUFFER)                                                \
    X(MEMCPY_IN_HOST_BUFFER)                                                   \
    X(MEMCPY_OUT_HOST_BUFFER)

typedef enum rueda_timeline_activity {
#define X(name) RUEDA_TIMELINE_##name,
    RUEDA_TIMELINE_MAP(X)
#undef X
    RUEDA_TIMELINE_ACTIVITIES, /* how many there are */
} rueda_timeline_activity;

const char *rueda_timeline_activity_str(rueda_timeline_activity activity);

/* What belongs to an operation, by its kind: a rueda_kind up to RUEDA_JOIN, or
 * another number for changes of process sets. */
rueda_timeline_activity rueda_timeline_negotiation(int kind,
                                                   rueda_reduction reduction);
rueda_timeline_activity rueda_timeline_operation(int kind,
                                                 rueda_reduction reduction);
rueda_timeline_activity rueda_timeline_collective(int kind,
                                                  rueda_reduction reduction);

/* ---- Opening and closing ------------------------------------------------ */

struct rueda_timeline;

struct rueda_timeline_args {
    int rank;
    int ranks;        /* of the job */
    const char *path; /* of the file; used by rank 0 only */
    bool marks_cycles;
    size_t buffer_bytes; /* 0: RUEDA_TIMELINE_BUFFER; at least 64 KiB */

    /* The time; NULL: that of os/clock.h. Called only by the thread that
     * records events. */
    int64_t (*now_ns)(void *arg);
    void *now_arg;
};

#define RUEDA_TIMELINE_BUFFER ((size_t)1 << 20)

/*
 * Rank 0 makes the file, which is a whole JSON text from then on, and starts
 * the thread. RUEDA_ERR_IO if the file cannot be made, with a message that say
 * why. A file that cannot be written to later is logged, once, and is the end
 * of the timeline but of nothing else: notes are taken and forgotten.
 */
rueda_status rueda_timeline_open(const struct rueda_timeline_args *args,
                                 struct rueda_timeline **out,
                                 struct rueda_text *error);

/*
 * Write what has been noted and added, and close the file. Rank 0 waits for the
 * disk; not to be called in a turn of the engine. Events of other ranks that
 * take() has not returned yet are lost. NULL is allowed.
 */
void rueda_timeline_close(struct rueda_timeline *self);

/* In the child after a fork(): close the file. The child calls nothing else
 * with this timeline, since it does not have its thread. */
void rueda_timeline_leave(struct rueda_timeline *self);

/* ---- Noting ------------------------------------------------------------- */

/* The functions behind those below, which want a timeline. */
void rueda_timeline_note_begin(struct rueda_timeline *self, const char *name,
                               rueda_timeline_activity activity);
void rueda_timeline_note_end(struct rueda_timeline *self, const char *name,
                             rueda_dtype dtype, int dims,
                             const uint64_t *shape);
void rueda_timeline_note_arrival(struct rueda_timeline *self, const char *name,
                                 int rank);
void rueda_timeline_note_cycle(struct rueda_timeline *self);

/*
 * An activity of this tensor begins, inside of those that have not ended. One
 * that is never inside of another ends those that are still open; of the others
 * none is noted whose operation began before the timeline did. A tensor without
 * a name, NULL, shares a line with all others of that kind.
 */
static inline void rueda_timeline_begin(struct rueda_timeline *self,
                                        const char *name,
                                        rueda_timeline_activity activity)
{
    if (__builtin_expect(self != NULL, 0))
        rueda_timeline_note_begin(self, name, activity);
}

/* The last one that has begun ends. Nothing happens if there is none, because
 * it began before the timeline did. */
static inline void rueda_timeline_end(struct rueda_timeline *self,
                                      const char *name)
{
    if (__builtin_expect(self != NULL, 0))
        rueda_timeline_note_end(self, name, RUEDA_UINT8, -1, NULL);
}

/* The same for an operation, with what its tensor was. */
static inline void rueda_timeline_end_with(struct rueda_timeline *self,
                                           const char *name, rueda_dtype dtype,
                                           int dims, const uint64_t *shape)
{
    if (__builtin_expect(self != NULL, 0))
        rueda_timeline_note_end(self, name, dtype, dims, shape);
}

/* The coordinator has heard from this rank that it has the tensor. */
static inline void rueda_timeline_arrival(struct rueda_timeline *self,
                                          const char *name, int rank)
{
    if (__builtin_expect(self != NULL, 0))
        rueda_timeline_note_arrival(self, name, rank);
}

/* A round of decisions begins; noted where cycles are marked. */
static inline void rueda_timeline_cycle(struct rueda_timeline *self)
{
    if (__builtin_expect(self != NULL, 0))
        rueda_timeline_note_cycle(self);
}

/* ---- On the way to rank 0 ----------------------------------------------- */

/* Room that one record needs, and the longest block that add() takes. */
#define RUEDA_TIMELINE_ROOM_MIN  1024
#define RUEDA_TIMELINE_BLOCK_MAX 65536

/*
 * On other ranks: the oldest records, as many as fit in `space`, which is at
 * least RUEDA_TIMELINE_ROOM_MIN. Returns their bytes; 0: there are none. Blocks
 * reach rank 0 in this order, each once.
 */
size_t rueda_timeline_take(struct rueda_timeline *self, void *out,
                           size_t space);

/* Is it time to take and send: 16 KiB are there, or the last take() was 100 ms
 * ago and there is anything? Looks at the clock only in the second case. */
bool rueda_timeline_is_due(struct rueda_timeline *self);

/* When it will be, if nothing is noted meanwhile; INT64_MAX: there is nothing.
 */
int64_t rueda_timeline_due_ns(struct rueda_timeline *self);

/*
 * On rank 0: a block of another rank's. RUEDA_ERR_INVALID if these are not the
 * bytes of one, and then none of it was taken. Where the buffer is full, names
 * are kept and the rest is counted as lost.
 */
rueda_status rueda_timeline_add(struct rueda_timeline *self, int rank,
                                const void *block, size_t len);

/* ---- One clock ---------------------------------------------------------- */

/* The difference between rank 0's clock and mine, as far as it is known: for
 * events that are taken from now on. 0 to begin with, which is right for ranks
 * of one host. Times of a rank never go back. Not for rank 0. */
void rueda_timeline_set_offset(struct rueda_timeline *self, int64_t offset_ns);

#endif /* RUEDA_TRACE_TIMELINE_H */
