/* SPDX-License-Identifier: Apache-2.0 */
#include "tool/stats.h"

#include <math.h>
#include <stdlib.h>

/* Doubling: a series of a benchmark grows while it is measured, and must not
 * spend time on that each time. */
bool rueda_series_add(struct rueda_series *series, double value)
{
    if (series->count == series->room) {
        const size_t room = series->room == 0 ? 64 : 2 * series->room;
        double *values = realloc(series->values, room * sizeof(*values));

        if (values == NULL)
            return false;
        series->values = values;
        series->room = room;
    }
    series->values[series->count++] = value;
    return true;
}

void rueda_series_clear(struct rueda_series *series)
{
    series->count = 0;
}

void rueda_series_fini(struct rueda_series *series)
{
    free(series->values);
    *series = (struct rueda_series){0};
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Between two values, in proportion. Sorts the series. */
double rueda_series_quantile(struct rueda_series *series, double p)
{
    double place;
    size_t below;

    if (series->count == 0)
        return NAN;
    qsort(series->values, series->count, sizeof(double), compare);
    place = p * (double)(series->count - 1);
    below = (size_t)place;
    if (below + 1 >= series->count)
        return series->values[series->count - 1];
    return series->values[below] +
           (place - (double)below) *
               (series->values[below + 1] - series->values[below]);
}

double rueda_series_median(struct rueda_series *series)
{
    return rueda_series_quantile(series, 0.5);
}

const char *rueda_note_on_noise(double difference)
{
    return difference < 0 ? "a figure below 0 is noise: other work takes more "
                            "time here than what is measured"
                          : NULL;
}
