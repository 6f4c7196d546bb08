/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a member writes blocks into its ring, found out by trying.
 *
 * Ordinary stores leave a block in the writer's cache, where the others fetch
 * it. Streaming stores send it to memory. Which is faster for both together
 * depends on where the cores are: between cores that share a cache the first,
 * between others, and there by several times, the second. Cores of a virtual
 * machine come and go, so one look at the start is not enough: of every
 * RUEDA_TRIAL_EVERY blocks the first is stored and the second is streamed, in
 * all members alike, since they all count the same blocks. What a member spends
 * on each, writing its own and reading the others', is a vote for one way; the
 * latest votes decide about the blocks between.
 *
 * Members may decide differently: each decides for its own ring. Pure
 * arithmetic, no clock.
 */
#ifndef RUEDA_SEGMENT_TRIAL_H
#define RUEDA_SEGMENT_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUEDA_TRIAL_EVERY 128

typedef enum rueda_way {
    RUEDA_WAY_STORE,
    RUEDA_WAY_STREAM,
} rueda_way;

struct rueda_trial {
    uint64_t blocks;  /* of all operations so far */
    int score;        /* of the latest votes; above 0: stream */
    uint64_t pair;    /* which trial it is, of all so far */
    int64_t spent[2]; /* nanoseconds on its blocks, by way */
    size_t bytes[2];  /* and how long they are; 0: not begun */
};

/* Is this block one to be timed? */
static inline bool rueda_trial_is_on(uint64_t block)
{
    return block % RUEDA_TRIAL_EVERY <= RUEDA_WAY_STREAM;
}

/* How to write this block. */
static inline rueda_way rueda_trial_way(const struct rueda_trial *trial,
                                        uint64_t block)
{
    if (rueda_trial_is_on(block))
        return (rueda_way)(block % RUEDA_TRIAL_EVERY);
    return trial->score > 0 ? RUEDA_WAY_STREAM : RUEDA_WAY_STORE;
}

/* A trial block of this size begins; then time was spent on it; then it is
 * done. The trial counts if both its blocks were timed and neither is more than
 * twice as long as the other. */
void rueda_trial_begin(struct rueda_trial *trial, uint64_t block, size_t bytes);
void rueda_trial_spend(struct rueda_trial *trial, uint64_t block, int64_t ns);
void rueda_trial_end(struct rueda_trial *trial, uint64_t block);

#endif /* RUEDA_SEGMENT_TRIAL_H */
