/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of named operations, for all ranks of a job: what they
 * submit round by round, in which process sets, and what has to come of it.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_PLAN_H
#define RUEDA_TESTS_SIM_PROGRAM_PLAN_H

#include "op/request.h"
#include "transport/sim/dice.h"

#define PLAN_RANKS  12
#define PLAN_ROUNDS 5
#define PLAN_OPS    16 /* of a round */
#define PLAN_SETS   6  /* the one of all ranks included */

/* What one rank says of a tensor, and the others do not. */
enum plan_odd {
    PLAN_ODD_DTYPE,
    PLAN_ODD_SHAPE,
    PLAN_ODD_SCALE,
    PLAN_ODD_KIND,
    PLAN_ODD_REDUCTION,
    PLAN_ODD_ROOT,
    PLAN_ODD_DEVICE,
    PLAN_ODD_COMPRESSION,
    PLAN_ODD_AVERAGE, /* by whom to divide */
    PLAN_ODDS_OF_ONE,

    /* Of a whole group: it has other members, and what it leaves out comes by
     * itself or not at all. */
    PLAN_ODD_GROUP = PLAN_ODDS_OF_ONE,
    PLAN_ODD_ALONE,
    PLAN_ODDS,
};

struct plan_op {
    struct rueda_request request; /* but for rows that differ, and the name */
    char name[32];                /* "": none */
    int set;                      /* one of the plan's */
    unsigned takers;              /* bits of the ranks that submit it */
    unsigned salt;                /* other numbers */
    bool is_uneven;               /* rows differ */
    bool is_on_device;            /* everywhere, each on its own */
    int from;                     /* of a message, which is one operation of */
    int to;                       /* two ranks here */
    int changed;                  /* the set that is made or dropped */
    int after;                    /* one of the round that has to end first,
                                     where that is submitted too; -1: none */
    int odd_rank;                 /* -1: none */
    enum plan_odd odd;
    int odd_count; /* of the group that it is in there */

    rueda_status expected; /* of all ranks; of a message, of its receiver */
    bool may_end_early;    /* or RUEDA_ERR_CANCELLED: its set is dropped */

    /* What came of it, for all ranks to agree on. */
    bool has_ended;
    rueda_status outcome;
    int told; /* the id of a set, or who joined last */
};

struct plan_round {
    struct plan_op ops[PLAN_OPS];
    int count;
    bool is_polite; /* who joins waits for what it has submitted before */
};

struct plan_set {
    int ranks[PLAN_RANKS]; /* ascending */
    int size;
    int id;         /* once it is there */
    int made_in;    /* rounds; -1: before the first */
    int dropped_in; /* PLAN_ROUNDS: never */
};

struct plan {
    int size;
    size_t most_bytes;    /* of a tensor, about */
    bool is_alike;        /* this round: most can run as one, */
    unsigned alike_flags; /* with these */
    rueda_compression alike_compression;
    int joined; /* this round: the set, or -1 */
    int rounds;
    struct plan_round round[PLAN_ROUNDS + 1]; /* and one to meet in the end */
    struct plan_set sets[PLAN_SETS];
    int set_count;
};

void plan_make(struct plan *plan, int size, size_t most_bytes,
               struct rueda_dice *dice);

/* The index of a rank in a set, or -1. */
int plan_index(const struct plan_set *set, int rank);

static inline bool plan_takes(const struct plan_op *op, int rank)
{
    return (op->takers >> rank & 1) != 0;
}

static inline bool plan_is_change(const struct plan_op *op)
{
    return op->request.kind == RUEDA_SET_ADD ||
           op->request.kind == RUEDA_SET_DROP;
}

static inline bool plan_is_message(const struct plan_op *op)
{
    return op->request.kind == RUEDA_SEND;
}

/* Has it no name, and is matched by a number? */
static inline bool plan_is_numbered(const struct plan_op *op)
{
    return op->name[0] == '\0' && !plan_is_message(op) &&
           op->request.kind != RUEDA_JOIN;
}

/* The first of its group, or this one if it is in none. */
int plan_level(const struct plan_round *round, int which);

/* How many ranks submit it. */
int plan_taker_count(const struct plan_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_PLAN_H */
