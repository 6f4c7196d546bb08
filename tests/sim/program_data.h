/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensors of a program: small whole numbers that differ at every place,
 * rank and operation, so that each rank knows what all others bring and what
 * every result has to be.
 */
#ifndef RUEDA_TESTS_SIM_PROGRAM_DATA_H
#define RUEDA_TESTS_SIM_PROGRAM_DATA_H

#include "api/submit.h"
#include "sim/program_script.h"

struct scenario;

/* An operation of one rank, with its memory. */
struct program_op {
    struct rueda_ticket *ticket; /* the context's, until its handle ends */
    rueda_handle handle;
    struct script_op *script;
    char *send;
    char *recv; /* send too, if it is in place */
    size_t recv_bytes;

    /* Whose it is, and how far it has come. */
    struct scenario *scenario;
    int rank;
    int which; /* of the round */
    int thread;
    bool wants_then;  /* a callback is to be called */
    bool has_then;    /* ... who knows of it */
    bool is_ended_by; /* ... and ends the handle himself */
    bool is_delivered;
    bool was_called;
    bool has_ended;       /* its handle, */
    rueda_status outcome; /* with this */
};

/* As this rank submits it, with its name and number. */
struct program_op *program_op_new(const struct script *script,
                                  struct script_op *op, rueda_ctx *ctx);
void program_op_free(struct program_op *op);

/* Is the result of one that ended well what it has to be? NULL, or what is
 * wrong. */
const char *program_op_fault(const struct script *script,
                             const struct program_op *op, int rank);

/* Do the words of one that was refused say why, and who is the odd one? */
bool program_op_is_explained(const struct program_op *op);

#endif /* RUEDA_TESTS_SIM_PROGRAM_DATA_H */
