/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One collective through the public interface, with exact data: small whole
 * numbers that differ at every place and rank. Every rank knows the numbers of
 * all others, so it makes the right result by itself and compares all bytes.
 * Behind each result lie a few bytes that no rank may touch.
 */
#ifndef RUEDA_TESTS_SUPPORT_COLL_CHECK_H
#define RUEDA_TESTS_SUPPORT_COLL_CHECK_H

#include "support/numbers.h"
#include "support/test_rank.h"

struct coll_what {
    rueda_kind kind;
    rueda_dtype dtype;
    rueda_reduction reduction;
    int root;
    size_t count; /* as in struct rueda_coll_args; of an uneven piece: 0 to 2
                     times as many */
    bool is_in_place;
    bool is_uneven;
    double prescale; /* 0 stands for 1 */
    double postscale;
    unsigned flags;
    unsigned shared; /* bit r: rank r takes its buffers from rueda_alloc() */
    unsigned salt;   /* other numbers */
};

/* One that is on its way. */
struct coll_run {
    struct coll_what what;
    struct numbers numbers;
    struct rueda_coll_args args;
    size_t send_counts[RANK_MOST];
    size_t recv_counts[RANK_MOST];
    size_t send_total;
    size_t recv_total;
    char *send;
    char *recv;  /* in place, send lies in it */
    void *block; /* all of the memory, if it is malloc()'s */
    void *shared[2];
};

/* Make the buffers and the arguments. 0, or 1 with words. */
int coll_prepare(struct test_rank *me, const struct coll_what *what,
                 struct coll_run *run);

/* Is the result right, and what must not change as it was? */
int coll_verify(struct test_rank *me, const struct coll_run *run);

/* Does send still, or in place again, hold what this rank put in? */
bool coll_is_input_whole(const struct test_rank *me,
                         const struct coll_run *run);

void coll_release(struct test_rank *me, struct coll_run *run);

/* All of it, by rueda_run(). */
int coll_check(struct test_rank *me, const struct coll_what *what);

/* In place and not, even and uneven, as far as the kind knows that. */
int coll_check_ways(struct test_rank *me, const struct coll_what *what);

/* All ways, with each of these counts. */
int coll_check_counts(struct test_rank *me, const struct coll_what *what,
                      const size_t *counts, size_t n);

/* Which one it was, for messages. */
const char *coll_describe(const struct coll_what *what, char *out,
                          size_t bytes);

#endif /* RUEDA_TESTS_SUPPORT_COLL_CHECK_H */
