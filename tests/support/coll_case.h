/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One collective, with exact data: small whole numbers that differ at every
 * place and rank, and whose results are exact in every dtype. The same cases
 * serve every algorithm.
 */
#ifndef RUEDA_TESTS_SUPPORT_COLL_CASE_H
#define RUEDA_TESTS_SUPPORT_COLL_CASE_H

#include "support/ranks.h"

struct coll_case {
    const struct rueda_algo *algo;
    rueda_kind kind;
    rueda_dtype dtype;
    rueda_reduction reduction;
    int root;
    size_t count; /* as in struct rueda_coll */
    bool is_in_place;
    bool is_uneven;  /* pieces of 0 up to 2 * count elements */
    double prescale; /* 0 stands for 1 */
    double postscale;
    rueda_compression compression; /* results are exact all the same */
};

/* The buffers of all ranks, and the right answers: for a test that runs a case
 * by other means than ranks.h. At most 32 ranks. */
struct coll_job;
struct coll_job *coll_job_open(const struct coll_case *c, int size);
void coll_job_close(struct coll_job *job);

/* What each rank is to do, [size]. */
const struct rueda_coll *coll_job_colls(const struct coll_job *job);

/* Has this rank the right result and, out of place, its input as it was? If
 * not, says so. */
bool coll_job_is_right(const struct coll_job *job, int rank);

/* Run it and assert that every rank has the right result and, out of place,
 * that its input is as it was. */
void coll_case_check(struct ranks *ranks, const struct coll_case *c);

/*
 * Check the case for 1, 2, 3, 4, 5, 7, 8 and 16 ranks, the counts 0, 1, 2, 3,
 * 17, 1000 and 70001, in place and not; pieces are even if c->kind has none, or
 * both even and uneven. c's own count and flags are not looked at.
 */
void coll_case_check_sizes(const struct coll_case *c);

/* Check it for every dtype and reduction, on a few ranks. */
void coll_case_check_numbers(const struct coll_case *c);

/* Check that scales are applied to inputs and result, on a few ranks. */
void coll_case_check_scales(const struct coll_case *c);

/* Check that when a rank leaves, after any number of turns, all others that
 * have not ended by then end with an error. The case is long enough that none
 * ends before the first turn. */
void coll_case_check_leaving(const struct coll_case *c, int size);

/* The same of ranks on these hosts. */
void coll_case_check_leaving_hosts(const struct coll_case *c, int size,
                                   const int *hosts);

#endif /* RUEDA_TESTS_SUPPORT_COLL_CASE_H */
