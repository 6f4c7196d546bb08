/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/timeline.h"

/* Times beyond this are no times of any clock; sums of two do not overflow. */
#define TIME_MAX (INT64_MAX / 4)

static bool can_be(const struct rueda_timeline_sample *sample)
{
    return sample->sent_ns >= 0 && sample->sent_ns <= sample->back_ns &&
           sample->back_ns <= TIME_MAX && sample->theirs_ns >= 0 &&
           sample->theirs_ns <= TIME_MAX;
}

static int64_t trip(const struct rueda_timeline_sample *sample)
{
    return sample->back_ns - sample->sent_ns;
}

bool rueda_timeline_offset(const struct rueda_timeline_sample *samples,
                           int count, int64_t *out_offset_ns,
                           int64_t *out_error_ns)
{
    const struct rueda_timeline_sample *best = NULL;

    for (int i = 0; i < count; i++)
        if (can_be(&samples[i]) &&
            (best == NULL || trip(&samples[i]) < trip(best)))
            best = &samples[i];
    if (best == NULL)
        return false;
    *out_offset_ns = best->theirs_ns - (best->sent_ns + trip(best) / 2);
    *out_error_ns = (trip(best) + 1) / 2;
    return true;
}
