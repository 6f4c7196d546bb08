/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ranks that share no memory agree on the next term: by what the store has
 * heard from them, in the order in which it has heard it. All count the same
 * words in the same order, each at its own pace, and come to the same results.
 * tests/model/repair_hosts.py has the rules, and checks them.
 *
 *      FROZEN    a member has stopped for a term; it has this many steps
 *      GONE      a member is gone: the store says so of the one that its
 *                connection has ended with, or another member that finds its
 *                host silent, which does not count once that one is gone itself
 *      OFFERED   a survivor has memory for the term
 *
 * The vote for a term ends when each candidate is frozen or gone; the term
 * begins when all survivors have offered, unless one is gone before.
 *
 * Members have the numbers that they had in the first term, their seats. Pure;
 * one thread at a time.
 */
#ifndef RUEDA_JOB_BALLOT_H
#define RUEDA_JOB_BALLOT_H

#include <rueda/rueda.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/segment.h" /* RUEDA_MEMBER_LANES */

typedef enum rueda_ballot_kind {
    RUEDA_BALLOT_FROZEN,
    RUEDA_BALLOT_GONE,
    RUEDA_BALLOT_OFFERED,
} rueda_ballot_kind;

struct rueda_ballot_word {
    rueda_ballot_kind kind;
    uint32_t term; /* not of GONE */
    int member;
    int speaker; /* of GONE: the member itself, if the store says so */
    uint64_t has[RUEDA_MEMBER_LANES]; /* FROZEN */
    uint64_t boundaries;              /* FROZEN */
};

/* A word as a key and a value of the store, the key behind a prefix of the
 * job's own. What is wanted of bytes that come back: */
#define RUEDA_BALLOT_KEY_BYTES   48
#define RUEDA_BALLOT_VALUE_BYTES ((size_t)(RUEDA_MEMBER_LANES + 1) * 8)

/* Returns the lengths; of GONE there is no value. */
size_t rueda_ballot_write_key(const struct rueda_ballot_word *word,
                              char out[RUEDA_BALLOT_KEY_BYTES]);
size_t rueda_ballot_write_value(const struct rueda_ballot_word *word,
                                unsigned char out[RUEDA_BALLOT_VALUE_BYTES]);

/* False: no member of a job of this size says such a thing. */
bool rueda_ballot_read(const void *key, size_t key_bytes, const void *value,
                       size_t value_bytes, int size,
                       struct rueda_ballot_word *out);

/* What a vote has come to. */
struct rueda_ballot_result {
    uint32_t term; /* 0: none yet */
    bool has_begun;
    uint64_t limits[RUEDA_MEMBER_LANES];
    uint64_t last_boundary;
};

struct rueda_ballot_member;

struct rueda_ballot {
    int size;
    bool has_voted;                      /* for the term of `now` */
    int frozen;                          /* how many are, for it */
    struct rueda_ballot_result now;      /* of the term that is formed */
    struct rueda_ballot_result before;   /* of the one before it */
    struct rueda_ballot_member *members; /* [size] */
};

/* All are members of term 1. RUEDA_ERR_NOMEM. */
rueda_status rueda_ballot_init(struct rueda_ballot *ballot, int size);
void rueda_ballot_fini(struct rueda_ballot *ballot);

/* The next word, in the order of the store. */
void rueda_ballot_count(struct rueda_ballot *ballot,
                        const struct rueda_ballot_word *word);

bool rueda_ballot_is_gone(const struct rueda_ballot *ballot, int member);

/* Has a member of this term, which is in force, frozen for the next one? */
bool rueda_ballot_is_called(const struct rueda_ballot *ballot, uint32_t term);

/* Is a candidate of the next vote gone? */
bool rueda_ballot_has_lost(const struct rueda_ballot *ballot);

/* Has this member frozen for the term that is voted for? */
bool rueda_ballot_is_frozen(const struct rueda_ballot *ballot, int member);

/* How the vote for a term ended, or NULL: it has not. Valid until the vote for
 * the next one has ended. */
const struct rueda_ballot_result *
rueda_ballot_vote(const struct rueda_ballot *ballot, uint32_t term);

/* Is a member among the survivors of a term whose vote has ended? */
bool rueda_ballot_survives(const struct rueda_ballot *ballot, uint32_t term,
                           int member);

/* Has the term begun? RUEDA_IN_PROGRESS: survivors have not offered yet.
 * RUEDA_ERR_PEER_LOST: it will not, for one of them was gone before. */
rueda_status rueda_ballot_begin(const struct rueda_ballot *ballot,
                                uint32_t term);

#endif /* RUEDA_JOB_BALLOT_H */
