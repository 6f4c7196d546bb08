/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named operations made by hand and handed straight to an engine, with numbers
 * in their tensors from which every result is known.
 */
#ifndef RUEDA_TESTS_SUPPORT_NAMED_OP_H
#define RUEDA_TESTS_SUPPORT_NAMED_OP_H

#include "op/ticket.h"
#include "support/test_rank.h"

/* What all members say of an operation. */
struct named_what {
    char name[48]; /* "": none */
    rueda_kind kind;
    rueda_dtype dtype;
    rueda_reduction reduction;
    int set;
    int members[RANK_MOST]; /* ranks of the set */
    int size;
    size_t rows; /* allgather: some more, depending on the rank */
    size_t row;
    int root;
    unsigned salt;
    bool in_place;      /* where the kind can */
    bool by_alloc;      /* the result comes from the callback */
    bool has_no_memory; /* ... which has none */
    bool is_ordered;    /* and has no name then */
    unsigned flags;
    uint64_t group;
    uint32_t group_count;
    unsigned joined; /* bits of the ranks that have joined */
};

struct named_op {
    struct rueda_ticket ticket; /* first */
    struct named_what what;
    size_t shape_rows;
    void *send;
    void *recv;
    size_t splits[RANK_MOST];
};

/* This many, to be freed with free(). */
struct named_op *named_ops_new(size_t count);

/* Fill one in and hand it over. */
void named_submit(struct test_rank *me, const struct named_what *what,
                  struct named_op *op);

/* Wait and see whether the result is right; frees what it had. */
int named_check(struct test_rank *me, struct named_op *op);

/* Wait and return the status, whatever it is; frees what it had. */
rueda_status named_wait(struct test_rank *me, struct named_op *op,
                        int timeout_ms);

/* An operation that has nothing in it but its kind: barrier, join, sets. */
void named_begin(struct named_op *op, int kind, const char *name, int set);
void named_hand_over(struct test_rank *me, struct named_op *op);

/* All ranks: make the set of these, or drop one. Its id, or a status. */
int named_add_set(struct test_rank *me, const int *ranks, int count);
rueda_status named_drop_set(struct test_rank *me, int set);

#endif /* RUEDA_TESTS_SUPPORT_NAMED_OP_H */
