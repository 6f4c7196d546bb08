/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers of small numbers that repeat with a prime period, so that a chunk
 * that lands in the wrong place (chunks are even, or powers of two) is seen.
 * They are filled and compared a block at a time, at the speed of memory. Pure.
 */
#ifndef RUEDA_TOOL_PATTERN_H
#define RUEDA_TOOL_PATTERN_H

#include <rueda/rueda.h>

#define RUEDA_PATTERN_PERIOD  31
#define RUEDA_PATTERN_REPEATS 64
#define RUEDA_PATTERN_BYTES   (RUEDA_PATTERN_PERIOD * RUEDA_PATTERN_REPEATS * 8)

struct rueda_pattern {
    rueda_dtype dtype;
    unsigned period;
    double values[RUEDA_PATTERN_PERIOD];
    double slack;       /* roundings by which a result may differ */
    bool is_average;    /* whole numbers may then differ by one */
    size_t block_count; /* elements in block, whole periods */
    _Alignas(64) unsigned char block[RUEDA_PATTERN_BYTES];
};

struct rueda_mistake {
    size_t index;
    double got;
    double wanted;
};

/* Narrow numbers have a shorter period, so that sums stay in their range. */
unsigned rueda_pattern_period(rueda_dtype dtype);

/* The greatest finite number is 2 to about this power. */
double rueda_pattern_range_bits(rueda_dtype dtype);

/* The i-th number to put in, such that the reduction of many stays small. */
double rueda_pattern_input(rueda_dtype dtype, rueda_reduction reduction,
                           unsigned i);

/* Two numbers become one; an average is still a sum here. */
double rueda_pattern_join(rueda_dtype dtype, rueda_reduction reduction,
                          double a, double b);

/* What `once`, the numbers of all ranks joined, is after `iterations`
 * reductions in place. */
double rueda_pattern_repeat(rueda_dtype dtype, rueda_reduction reduction,
                            double once, int size, unsigned iterations);

/* A pattern of these values (one period of them) for buffers of up to count
 * elements. */
void rueda_pattern_init(struct rueda_pattern *pattern, rueda_dtype dtype,
                        const double *values, double slack, size_t count);

void rueda_pattern_fill(const struct rueda_pattern *pattern, void *buf,
                        size_t count);

/* True if buf holds the pattern; otherwise where it first does not. */
bool rueda_pattern_check(const struct rueda_pattern *pattern, const void *buf,
                         size_t count, struct rueda_mistake *out_mistake);

/* One number in memory, and back. Whole numbers too large for their type wrap
 * round, as sums of them do. */
void rueda_number_encode(rueda_dtype dtype, double value, void *out);
double rueda_number_decode(rueda_dtype dtype, const void *in);

#endif /* RUEDA_TOOL_PATTERN_H */
