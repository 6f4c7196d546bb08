/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The right answers: which number each rank brings at each place, how a dtype
 * holds it in memory, and what every rank has to get. The numbers are small and
 * whole and differ at every place and rank; they and their sums are exact in
 * every dtype. Nothing here calls the library's own arithmetic.
 *
 * Front ends: coll_case.h (algorithms), coll_check.h (ordered calls),
 * named_op.h (operations by name), sim/program_data.h (random programs) and
 * unit/host_numbers.h (kernels).
 */
#ifndef RUEDA_TESTS_SUPPORT_NUMBERS_H
#define RUEDA_TESTS_SUPPORT_NUMBERS_H

#include <rueda/rueda.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After this many places all numbers, and their reductions, repeat. */
#define NUMBERS_PERIOD 168

/* In place of a rank: the reduction over all ranks. */
#define NUMBERS_REDUCED (-1)

/* One collective. A member is an index into ranks. */
struct numbers {
    rueda_kind kind;
    rueda_dtype dtype;
    rueda_reduction reduction;
    int root;          /* a rank */
    const int *ranks;  /* NULL: member i is rank i */
    int size;          /* members */
    unsigned absent;   /* bit r: rank r contributes nothing to a reduction */
    int divisor;       /* of an average; 0: size */
    double prescale;   /* 0 stands for 1 */
    double postscale;  /* 0 stands for 1 */
    unsigned salt;     /* other numbers */
    bool has_fraction; /* halves cannot hold all of a number */
    bool is_same;      /* every rank brings the numbers of rank 0 */
    bool is_uneven;    /* pieces have 0 to 2 * count elements */
    size_t count;      /* elements; of kinds with pieces, in each piece */

    /* Optional: the elements that member `from` sends to member `to`. In an
     * allgather only `from` matters, in a reduce-scatter only `to`. */
    size_t (*piece)(const void *arg, int from, int to);
    const void *arg;
};

/* ---- One number -------------------------------------------------------- */

/* What a rank brings at place i. */
double numbers_at(const struct numbers *n, int rank, size_t i);

/* The reduction of place i. Of Adasum only where all vectors are the same. */
double numbers_reduced(const struct numbers *n, size_t i);

/* Element i of a vector. A whole type keeps the low bits of the whole part, a
 * float is rounded to the nearest, ties to even. */
void numbers_store(rueda_dtype dtype, void *vector, size_t i, double number);
double numbers_load(rueda_dtype dtype, const void *vector, size_t i);

/* The value of the bits of a float16 or bfloat16. */
double numbers_half(rueda_dtype dtype, uint16_t bits);

/* ---- Vectors ------------------------------------------------------------ */

/* Write the places from `first` on, of a rank or of NUMBERS_REDUCED. */
void numbers_write(const struct numbers *n, int rank, size_t first,
                   size_t count, void *to);

/* Does a vector hold, bit for bit, what a rank brings? */
bool numbers_is_input(const struct numbers *n, int rank, const void *vector,
                      size_t count);

/* Is a result cut into pieces, one for each member? */
bool numbers_has_pieces(rueda_kind kind);

/* The elements that go from one member to another. */
size_t numbers_piece(const struct numbers *n, int from, int to);

/* Elements that a member brings, and that it gets. */
size_t numbers_sent(const struct numbers *n, int member);
size_t numbers_received(const struct numbers *n, int member);

/* The first place of a reduce-scatter that is this member's, and where the
 * numbers of this member begin in the result of an allgather. */
size_t numbers_first(const struct numbers *n, int member);

/* The lists of counts that a call takes: [size] each. */
void numbers_counts(const struct numbers *n, int member, size_t *out_send,
                    size_t *out_recv);

/* Write the right result of a member, numbers_received() elements. */
void numbers_expect(const struct numbers *n, int member, void *out);

#endif /* RUEDA_TESTS_SUPPORT_NUMBERS_H */
