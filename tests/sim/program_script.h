/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of named operations, for all ranks of a job: what they
 * submit round by round, in which process sets, and what has to come of it.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_SCRIPT_H
#define RUEDA_TESTS_SIM_PROGRAM_SCRIPT_H

#include "op/request.h"
#include "transport/sim/dice.h"

#define SCRIPT_RANKS  12
#define SCRIPT_ROUNDS 5
#define SCRIPT_OPS    16 /* of a round */
#define SCRIPT_SETS   6  /* the one of all ranks included */

/* What one rank says of a tensor, and the others do not. */
enum script_odd {
    SCRIPT_ODD_DTYPE,
    SCRIPT_ODD_SHAPE,
    SCRIPT_ODD_SCALE,
    SCRIPT_ODD_KIND,
    SCRIPT_ODD_REDUCTION,
    SCRIPT_ODD_ROOT,
    SCRIPT_ODD_DEVICE,
    SCRIPT_ODD_COMPRESSION,
    SCRIPT_ODD_AVERAGE, /* by whom to divide */
    SCRIPT_ODDS_OF_ONE,

    /* Of a whole group: it has other members, and what it leaves out comes by
     * itself or not at all. */
    SCRIPT_ODD_GROUP = SCRIPT_ODDS_OF_ONE,
    SCRIPT_ODD_ALONE,
    SCRIPT_ODDS,
};

struct script_op {
    struct rueda_request request; /* but for rows that differ, and the name */
    char name[32];                /* "": none */
    int set;                      /* one of the script's */
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
    enum script_odd odd;
    int odd_count; /* of the group that it is in there */

    rueda_status expected; /* of all ranks; of a message, of its receiver */
    bool may_end_early;    /* or RUEDA_ERR_CANCELLED: its set is dropped */

    /* What came of it, for all ranks to agree on. */
    bool has_ended;
    rueda_status outcome;
    int told; /* the id of a set, or who joined last */
};

struct script_round {
    struct script_op ops[SCRIPT_OPS];
    int count;
    bool is_polite; /* who joins waits for what it has submitted before */
};

struct script_set {
    int ranks[SCRIPT_RANKS]; /* ascending */
    int size;
    int id;         /* once it is there */
    int made_in;    /* rounds; -1: before the first */
    int dropped_in; /* SCRIPT_ROUNDS: never */
};

struct script {
    int size;
    size_t most_bytes;    /* of a tensor, about */
    bool is_alike;        /* this round: most can run as one, */
    unsigned alike_flags; /* with these */
    rueda_compression alike_compression;
    int joined; /* this round: the set, or -1 */
    int rounds;
    struct script_round
        round[SCRIPT_ROUNDS + 1]; /* and one to meet in the end */
    struct script_set sets[SCRIPT_SETS];
    int set_count;
};

void script_make(struct script *script, int size, size_t most_bytes,
                 struct rueda_dice *dice);

/* The index of a rank in a set, or -1. */
int script_index(const struct script_set *set, int rank);

static inline bool script_takes(const struct script_op *op, int rank)
{
    return (op->takers >> rank & 1) != 0;
}

static inline bool script_is_change(const struct script_op *op)
{
    return op->request.kind == RUEDA_SET_ADD ||
           op->request.kind == RUEDA_SET_DROP;
}

static inline bool script_is_message(const struct script_op *op)
{
    return op->request.kind == RUEDA_SEND;
}

/* Has it no name, and is matched by a number? */
static inline bool script_is_numbered(const struct script_op *op)
{
    return op->name[0] == '\0' && !script_is_message(op) &&
           op->request.kind != RUEDA_JOIN;
}

/* The first of its group, or this one if it is in none. */
int script_level(const struct script_round *round, int which);

/* How many ranks submit it. */
int script_taker_count(const struct script_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_SCRIPT_H */
