/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured: one collective at one size. Knows how large the buffers
 * are, which values go in and which must come out, so that every system is
 * given the same work and checked the same way. Pure.
 *
 * A buffer is `count` elements, or `size` pieces of `count` elements each where
 * the collective has pieces. Allreduce, broadcast and ping-pong work in place.
 */
#ifndef RUEDA_TOOL_CASE_H
#define RUEDA_TOOL_CASE_H

#include <rueda/rueda.h>

typedef enum rueda_bench_op {
    RUEDA_BENCH_ALLREDUCE,
    RUEDA_BENCH_ALLGATHER,
    RUEDA_BENCH_BROADCAST,
    RUEDA_BENCH_ALLTOALL,
    RUEDA_BENCH_REDUCESCATTER,
    RUEDA_BENCH_BARRIER,
    RUEDA_BENCH_PINGPONG, /* broadcasts with rank 0 and 1 as root in turn */
    RUEDA_BENCH_EXCHANGE, /* two ranks swap `count` elements: what a peer does
                             beside a collective, none that can be asked for */
} rueda_bench_op;
#define RUEDA_BENCH_OP_COUNT 7 /* those that can be asked for */

struct rueda_case {
    rueda_bench_op op;
    rueda_dtype dtype;
    rueda_reduction reduction;
    int size;       /* ranks */
    bool is_shared; /* buffers from rueda_alloc() */
    size_t count;
};

const char *rueda_bench_op_str(rueda_bench_op op);

/* False if text names none. */
bool rueda_bench_op_parse(const char *text, rueda_bench_op *out_op);
rueda_kind rueda_bench_op_kind(rueda_bench_op op);
bool rueda_bench_op_has_size(rueda_bench_op op);

/* Choose count so that the buffer has about `bytes`, and at least one element
 * in every piece. The other fields are set before. */
void rueda_case_set_bytes(struct rueda_case *work, size_t bytes);

/* The size that the table shows: the whole buffer, all pieces together. */
size_t rueda_case_bytes(const struct rueda_case *work);

/* What one rank needs. In place: nothing to send from. */
size_t rueda_case_send_bytes(const struct rueda_case *work);
size_t rueda_case_recv_bytes(const struct rueda_case *work);

/* busbw is algbw times this, after nccl-tests. */
double rueda_case_bus_factor(const struct rueda_case *work);

/* Repeated sums in place grow by the number of ranks each time: this many
 * repetitions keep the numbers finite and checkable. At least 1. */
unsigned rueda_case_max_iterations(const struct rueda_case *work);

/* Before a repetition counts: fill the buffers of a rank. refill only touches
 * what the repetitions have changed. */
void rueda_case_fill(const struct rueda_case *work, int rank, void *send,
                     void *recv);
void rueda_case_refill(const struct rueda_case *work, int rank, void *recv);

/*
 * Is this what `iterations` repetitions must leave on this rank? If not, says
 * in words (at most `room` bytes) where, what is there and what should be.
 */
bool rueda_case_check(const struct rueda_case *work, int rank,
                      unsigned iterations, const void *recv, char *words,
                      size_t room);

#endif /* RUEDA_TOOL_CASE_H */
