/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A benchmark: several sides that do the same work in turn, and what comes of
 * it. The first side is Rueda; the others are peers (Rueda once more among
 * them, with other buffers), or algorithms to choose from. The coordinator runs
 * it and is not a rank itself.
 *
 *     bench.c            sides, sizes, table
 *       measure.c        one size: calibrates, then takes rounds
 *         crew.c         one command to all workers of a side
 *           |
 *           | a packet over a Unix socket (control.h)
 *           v
 *         worker_main.c  the process of a rank
 *           worker.c     carries out the command
 *             system.h   Rueda, Open MPI, MPICH or plain sockets
 *
 * Every side is measured for a moment (under 100 ms), then the next, while all
 * others are blocked in recv(); that is a round. The ratio of two sides is
 * taken within a round, so that what changes in the machine (the distance of
 * its cores, its neighbours' work) hits both; the median over the rounds is
 * printed.
 *
 * For the one thread of the coordinator. Functions that return false leave a
 * message in bench->words.
 */
#ifndef RUEDA_TOOL_BENCH_H
#define RUEDA_TOOL_BENCH_H

#include "tool/crew.h"
#include "tool/machine.h"
#include "tool/options.h"
#include "tool/probe.h"
#include "tool/stats.h"

#define RUEDA_SIDES_MAX 12

struct rueda_side {
    const char *name;        /* borrowed */
    struct rueda_crew *crew; /* borrowed */
    bool is_copy;            /* memcpy in this crew's ranks */
    bool is_private;         /* its buffers are, whatever the others' are */
    bool is_algo;            /* its name is its algorithm's */
    bool is_raw;             /* it exchanges the bytes, and that is all */
    bool is_out;             /* it failed; its message has been printed */

    /* Of the size that is being measured. */
    uint32_t iterations;
    uint32_t batches;
    double batch_wall;          /* seconds a batch takes with fill and check */
    double round;               /* median of the last round */
    struct rueda_series times;  /* of all batches of all rounds */
    struct rueda_series ratios; /* to the first side, one a round */

    double log_ratio; /* sum over all sizes, to tune */
};

/* One measured size and its best algorithm, to tune. */
struct rueda_tune_point {
    size_t bytes; /* as the library's table counts them */
    const char *best;
};
#define RUEDA_TUNE_POINTS 64

struct rueda_bench {
    struct rueda_bench_options options;
    int np;
    struct rueda_tool_machine machine;
    struct rueda_crew_listener listener;
    struct rueda_crew *crews[RUEDA_SIDES_MAX];
    int crew_count;
    struct rueda_side sides[RUEDA_SIDES_MAX];
    int side_count;
    struct rueda_probe probe;
    struct rueda_reply *replies; /* np of them */
    struct rueda_text words;     /* why the benchmark failed */
    struct rueda_tune_point points[RUEDA_TUNE_POINTS];
    int point_count;
};

/* One line of the table. Times in seconds, bandwidths in bytes a second. */
struct rueda_row {
    struct rueda_case work;
    size_t bytes;
    double median;
    double p99;
    double best;
    double algbw;
    double busbw;
    double line; /* a cache line's way from rank 0 to 1; NaN: not known */
    struct {
        double median;        /* NaN: not measured */
        double p99;           /* NaN: not measured */
        double ratio;         /* its time over ours: above 1 we are faster */
    } sides[RUEDA_SIDES_MAX]; /* as in the benchmark; the first is ours */
};

/* The program: `rueda bench`, argv without these two words. Returns the exit
 * code. */
int rueda_bench_main(int argc, char **argv);

/* Make the crew, start it, add it as a side. False if it did not start; the
 * message is in bench. */
bool rueda_bench_add(struct rueda_bench *bench, const char *name,
                     rueda_crew_kind kind, const char *algo);

/* Stop all crews and free what the benchmark holds. */
void rueda_bench_fini(struct rueda_bench *bench);

/* The work of this side where the first one does `work`. */
void rueda_side_work(const struct rueda_side *side,
                     const struct rueda_case *work,
                     struct rueda_case *out_work);

/* Do the ranks of the first side use the transport that was asked for? False
 * with a message. used: what they say. */
bool rueda_bench_is_way_right(struct rueda_bench *bench, const char *used);

/* RUEDA_CREW_THREADS for the transport "loop". */
rueda_crew_kind rueda_bench_crew_kind(const struct rueda_bench *bench);

/* "shm", "tcp" and "loop" mean messages only: what needs shared memory cannot
 * run. */
bool rueda_bench_has_slab(const struct rueda_bench *bench);

/* The work of the next size; bytes is asked for, not exact. */
void rueda_bench_work(const struct rueda_bench *bench, size_t bytes,
                      struct rueda_case *out_work);

/* False, after a line that says so, if the work needs more memory than there
 * is. */
bool rueda_bench_fits(struct rueda_bench *bench, const struct rueda_case *work);

/* Measure one size on all sides. False if the first side failed (or Ctrl-C was
 * pressed); a later one that fails is out from here on. */
bool rueda_measure(struct rueda_bench *bench, const struct rueda_case *work,
                   struct rueda_row *out_row);

/* A cache line's way between ranks 0 and 1, seconds; NaN if not known. */
double rueda_measure_line(struct rueda_bench *bench, int out_cpus[2]);

/* Stop a side for good and say why on standard error. */
void rueda_bench_drop(struct rueda_bench *bench, struct rueda_side *side);

#endif /* RUEDA_TOOL_BENCH_H */
