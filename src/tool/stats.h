/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of measured times: a series that grows, and its order statistics.
 * Pure.
 */
#ifndef RUEDA_TOOL_STATS_H
#define RUEDA_TOOL_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* All zero is an empty series. */
struct rueda_series {
    double *values;
    size_t count;
    size_t room;
};

/* False where there is no memory; the series is then as it was. */
bool rueda_series_add(struct rueda_series *series, double value);

/* Forget the values, keep the memory. */
void rueda_series_clear(struct rueda_series *series);
void rueda_series_fini(struct rueda_series *series);

/*
 * The value below which the share p of the series lies, between neighbours by
 * a straight line: 0 is the least, 0.5 the median, 1 the greatest. Sorts the
 * series. NaN if it is empty.
 */
double rueda_series_quantile(struct rueda_series *series, double p);
double rueda_series_median(struct rueda_series *series);

/* What a table says below a difference that can only be above 0, as it is
 * between a whole and a part of it: NULL, or that one below 0 is noise. */
const char *rueda_note_on_noise(double difference);

#endif /* RUEDA_TOOL_STATS_H */
