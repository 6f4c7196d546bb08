/* SPDX-License-Identifier: Apache-2.0 */
#include "support/adasum.h"

/* a = a (+) b */
static void combine(double *a, const double *b, size_t count)
{
    double dot = 0.0;
    double aa = 0.0;
    double bb = 0.0;
    double by_a;
    double by_b;

    for (size_t i = 0; i < count; i++) {
        dot += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
    }
    by_a = aa == 0.0 ? 1.0 : 1.0 - dot / (2.0 * aa);
    by_b = bb == 0.0 ? 1.0 : 1.0 - dot / (2.0 * bb);
    for (size_t i = 0; i < count; i++)
        a[i] = by_a * a[i] + by_b * b[i];
}

void adasum_serial(double *const *v, int size, size_t count)
{
    int core = 1;

    while (core * 2 <= size)
        core *= 2;
    for (int r = 0; r + core < size; r++)
        combine(v[r], v[r + core], count);
    for (int step = 1; step < core; step *= 2)
        for (int r = 0; r < core; r += 2 * step)
            combine(v[r], v[r + step], count);
}
