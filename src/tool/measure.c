/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring one size: calibrate every side, then let them take turns.
 *
 *     size     | round 0         | round 1         | ... up to ROUNDS
 *     round    | side A | side B | side B | side A |     every other backwards
 *     turn     | batch | batch | ...               |     about SLICE_S
 *     batch    | barrier | run() x iterations | barrier | check
 *
 * The clock is read at both ends of a batch only, since reading it takes a
 * noticeable part of a small operation's time. A batch takes about BATCH_S, as
 * far as the numbers can be checked after that many repetitions (case.h); from
 * LARGE_BYTES on it is one operation. The time of a batch is that of its
 * slowest rank.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tool/bench.h"
#include "tool/clock.h"

#define LARGE_BYTES  ((size_t)2 << 20) /* from here on one iteration a batch */
#define BATCH_S      100e-6            /* a batch of small operations */
#define COPY_MAX     100000u
#define SLICE_S      0.04 /* a side's turn, where more than a batch fits */
#define ROUNDS       15
#define ROUNDS_LEAST 5
#define SIZE_S       10.0 /* ROUNDS end here, but not before the least */
#define COMMAND_S    60.0

/* Run a command on a side's crew. The slowest rank is what counts: its time
 * for each batch is left in replies[0]. */
static bool command(struct rueda_bench *bench, struct rueda_side *side,
                    const struct rueda_control_command *order)
{
    struct rueda_reply *first = &bench->replies[0];

    if (!rueda_crew_command(side->crew, &bench->listener, order, bench->replies,
                            COMMAND_S))
        return false;
    for (int rank = 1; rank < bench->np; rank++) {
        const struct rueda_reply *reply = &bench->replies[rank];

        for (uint32_t i = 0; i < first->count && i < reply->count; i++)
            first->seconds[i] = fmax(first->seconds[i], reply->seconds[i]);
        first->wall = fmax(first->wall, reply->wall);
    }
    return true;
}

/* Small operations begin with a batch that does not count: it finds caches and
 * connections cold. */
static bool run(struct rueda_bench *bench, struct rueda_side *side,
                uint32_t batches, uint32_t iterations)
{
    struct rueda_control_command order = {
        .kind = side->is_copy ? RUEDA_CONTROL_COPY : RUEDA_CONTROL_RUN,
        .warmups = side->is_copy || iterations == 1 ? 0 : 1,
        .batches = batches,
        .iterations = iterations,
    };

    if (!command(bench, side, &order))
        return false;
    side->batch_wall =
        bench->replies[0].wall / (double)(batches + order.warmups);
    return true;
}

static double median_of_replies(struct rueda_bench *bench)
{
    struct rueda_series series = {0};
    double median;

    for (uint32_t i = 0; i < bench->replies[0].count; i++)
        rueda_series_add(&series, bench->replies[0].seconds[i]);
    median = rueda_series_median(&series);
    rueda_series_fini(&series);
    return median;
}

/* Touch the memory, then find out roughly how long one iteration takes: more
 * iterations each time, until a batch is long enough for the clock. */
static bool estimate(struct rueda_bench *bench, struct rueda_side *side,
                     unsigned most, double *out_seconds)
{
    if (!run(bench, side, 1, 1))
        return false;
    *out_seconds = bench->replies[0].seconds[0];
    for (unsigned n = 10; n <= 1000 && *out_seconds * n < 10 * BATCH_S;
         n *= 10) {
        if (!run(bench, side, 3, n < most ? n : most))
            return false;
        *out_seconds = median_of_replies(bench);
    }
    return true;
}

static uint32_t iterations_for(double seconds, unsigned most)
{
    const double n = ceil(BATCH_S / fmax(seconds, 1e-9));

    if (n < 1.0)
        return 1;
    return n > (double)most ? most : (uint32_t)n;
}

/* As many batches as fit the next turn, by what the last one took with filling
 * and checking. */
static void set_batches(struct rueda_side *side)
{
    const double n = SLICE_S / fmax(side->batch_wall, 1e-7);

    side->batches = n < 1.0                 ? 1
                    : n > RUEDA_BATCHES_MAX ? RUEDA_BATCHES_MAX
                                            : (uint32_t)n;
}

void rueda_bench_drop(struct rueda_bench *bench, struct rueda_side *side)
{
    if (side->is_out)
        return;
    side->is_out = true;
    /* After Ctrl-C no side has failed. */
    if (bench->listener.signal == 0)
        fprintf(stderr, "rueda: %s is out: %s\n", side->name,
                side->crew->words.chars);
    for (int i = 0; i < bench->side_count; i++)
        if (bench->sides[i].crew == side->crew)
            bench->sides[i].is_out = true;
}

/* False if the benchmark cannot go on without the side that failed. */
static bool survives(struct rueda_bench *bench, struct rueda_side *side)
{
    if (bench->listener.signal == 0 && side->crew != bench->sides[0].crew) {
        rueda_bench_drop(bench, side);
        return true;
    }
    rueda_text_set(&bench->words, "%s", side->crew->words.chars);
    return false;
}

/* Have every side make its buffers for this case. A side that cannot is left
 * out from here on, if the benchmark can go on without it. */
static bool prepare(struct rueda_bench *bench, const struct rueda_case *work)
{
    struct rueda_control_command order = {
        .kind = RUEDA_CONTROL_PREPARE,
    };

    for (int i = 0; i < bench->side_count; i++) {
        struct rueda_side *side = &bench->sides[i];

        if (side->is_out || side->is_copy)
            continue;
        rueda_side_work(side, work, &order.work);
        if (!command(bench, side, &order) && !survives(bench, side))
            return false;
    }
    return true;
}

/* All systems do the same number of iterations, which suits the fastest. */
static bool calibrate(struct rueda_bench *bench, const struct rueda_case *work)
{
    const bool is_large = rueda_case_bytes(work) >= LARGE_BYTES;
    const unsigned most = is_large ? 1 : rueda_case_max_iterations(work);
    double fastest = INFINITY;

    for (int i = 0; i < bench->side_count; i++) {
        struct rueda_side *side = &bench->sides[i];
        const unsigned side_most = side->is_copy && !is_large ? COPY_MAX : most;
        double seconds = 0.0;

        rueda_series_clear(&side->times);
        rueda_series_clear(&side->ratios);
        side->round = NAN;
        if (side->is_out)
            continue;
        if (!estimate(bench, side, side_most, &seconds)) {
            if (!survives(bench, side))
                return false;
            continue;
        }
        side->iterations = iterations_for(seconds, side_most);
        if (!side->is_copy)
            fastest = fmin(fastest, seconds);
    }
    for (int i = 0; i < bench->side_count; i++) {
        struct rueda_side *side = &bench->sides[i];

        if (!side->is_copy)
            side->iterations = iterations_for(fastest, most);
        /* The first round finds out how long a batch takes. */
        side->batches = is_large ? 1 : 4;
    }
    return true;
}

static bool take_turn(struct rueda_bench *bench, struct rueda_side *side)
{
    if (!run(bench, side, side->batches, side->iterations))
        return survives(bench, side);
    for (uint32_t i = 0; i < bench->replies[0].count; i++)
        rueda_series_add(&side->times, bench->replies[0].seconds[i]);
    side->round = median_of_replies(bench);
    set_batches(side);
    return true;
}

/* One round, every other one backwards, so that no side always follows the same
 * one. */
static bool play_round(struct rueda_bench *bench, int number)
{
    const int count = bench->side_count;

    for (int i = 0; i < count; i++) {
        struct rueda_side *side =
            &bench->sides[number % 2 == 0 ? i : count - 1 - i];

        if (!side->is_out && !take_turn(bench, side))
            return false;
    }
    for (int i = 0; i < count; i++)
        if (!bench->sides[i].is_out)
            rueda_series_add(&bench->sides[i].ratios,
                             bench->sides[i].round / bench->sides[0].round);
    return true;
}

/* From the times of all rounds to the figures of a row. */
static void make_row(struct rueda_bench *bench, const struct rueda_case *work,
                     struct rueda_row *row)
{
    struct rueda_series *ours = &bench->sides[0].times;

    row->work = *work;
    row->bytes = rueda_case_bytes(work);
    row->median = rueda_series_median(ours);
    row->p99 = rueda_series_quantile(ours, 0.99);
    row->best = rueda_series_quantile(ours, 0.0);
    row->algbw = (double)row->bytes / row->median;
    row->busbw = row->algbw * rueda_case_bus_factor(work);
    for (int i = 0; i < bench->side_count; i++) {
        struct rueda_side *side = &bench->sides[i];

        row->sides[i].median =
            side->is_out ? NAN : rueda_series_median(&side->times);
        row->sides[i].p99 =
            side->is_out ? NAN : rueda_series_quantile(&side->times, 0.99);
        row->sides[i].ratio =
            side->is_out ? NAN : rueda_series_median(&side->ratios);
    }
}

/* Measure one case: all sides in turn, round after round, so that a disturbance
 * of the machine hits all of them alike. */
bool rueda_measure(struct rueda_bench *bench, const struct rueda_case *work,
                   struct rueda_row *out_row)
{
    const int rounds =
        bench->options.rounds != 0 ? bench->options.rounds : ROUNDS;
    double start;
    int cpus[2];

    memset(out_row, 0, sizeof(*out_row));
    out_row->line = rueda_measure_line(bench, cpus);
    if (!prepare(bench, work) || !calibrate(bench, work))
        return false;
    start = rueda_tool_clock();
    for (int i = 0; i < rounds; i++) {
        if (bench->options.rounds == 0 && i >= ROUNDS_LEAST &&
            rueda_tool_clock() - start > SIZE_S)
            break;
        if (!play_round(bench, i))
            return false;
    }
    make_row(bench, work, out_row);
    return true;
}

double rueda_measure_line(struct rueda_bench *bench, int out_cpus[2])
{
    struct rueda_control_command order = {.kind = RUEDA_CONTROL_PROBE};

    if (bench->np < 2 || bench->probe.fd < 0)
        return NAN;
    rueda_probe_reset(&bench->probe);
    snprintf(order.path, sizeof(order.path), "%s", bench->probe.path);
    if (!rueda_crew_command(bench->sides[0].crew, &bench->listener, &order,
                            bench->replies, COMMAND_S))
        return NAN;
    out_cpus[0] = bench->replies[0].cpu;
    out_cpus[1] = bench->replies[1].cpu;
    return bench->replies[0].seconds[0];
}
