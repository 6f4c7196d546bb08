/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing two requests for the same operation. The checks have numbers, which
 * are their places in a table; the first check that finds a difference is the
 * one that is reported, with what two ranks say.
 */
#include "negotiate/compare.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* These words, but for the ranks in them, and the order of the checks are those
 * of Horovod, as far as it has them: scripts look for them. */

/* "ALLREDUCE" */
static void tell_kind_name(const struct rueda_request *request,
                           struct rueda_text *out)
{
    for (const char *at = rueda_kind_str((rueda_kind)request->kind);
         *at != '\0'; at++)
        rueda_text_add(out, "%c", toupper((unsigned char)*at));
}

void rueda_compare_title(const struct rueda_request *request,
                         struct rueda_text *out)
{
    if (request->name != NULL)
        rueda_text_add(out, "tensor \"%.300s\"", request->name);
    else
        rueda_text_add(out, "operation %llu without a name",
                       (unsigned long long)request->number);
}

void rueda_compare_shape_str(const struct rueda_request *request,
                             struct rueda_text *out)
{
    rueda_text_add(out, "[");
    for (uint32_t i = 0; i < request->dims; i++)
        rueda_text_add(out, "%s%llu", i > 0 ? ", " : "",
                       (unsigned long long)request->shape[i]);
    rueda_text_add(out, "]");
}

/* ---- Checks ------------------------------------------------------------ */

static bool is_set_change(const struct rueda_request *request)
{
    return request->kind == RUEDA_SET_ADD || request->kind == RUEDA_SET_DROP;
}

/* Does the kind need the very same shape on all ranks? */
static bool has_one_shape(const struct rueda_request *request)
{
    return request->kind == RUEDA_ALLREDUCE ||
           request->kind == RUEDA_BROADCAST ||
           request->kind == RUEDA_REDUCE_SCATTER || is_set_change(request);
}

static bool same_dtype(const struct rueda_request *a,
                       const struct rueda_request *b)
{
    return a->dtype == b->dtype;
}

static void tell_dtype(const struct rueda_request *request,
                       struct rueda_text *out)
{
    rueda_text_add(out, "had type %s", rueda_dtype_str(request->dtype));
}

static bool same_kind(const struct rueda_request *a,
                      const struct rueda_request *b)
{
    return a->kind == b->kind;
}

static void tell_kind(const struct rueda_request *request,
                      struct rueda_text *out)
{
    rueda_text_add(out, "did an ");
    tell_kind_name(request, out);
}

static bool same_shape(const struct rueda_request *a,
                       const struct rueda_request *b)
{
    return !has_one_shape(a) ||
           (a->dims == b->dims &&
            memcmp(a->shape, b->shape, a->dims * sizeof(a->shape[0])) == 0);
}

/* For a process set, ranks compare the number of its members and a hash. */
static void tell_shape(const struct rueda_request *request,
                       struct rueda_text *out)
{
    if (is_set_change(request)) {
        rueda_text_add(out, "named %llu ranks or sets (%llx)",
                       (unsigned long long)request->shape[0],
                       (unsigned long long)request->shape[1]);
        return;
    }
    rueda_text_add(out, "sent a tensor of shape ");
    rueda_compare_shape_str(request, out);
}

/* Two factors that are not a number count as equal. */
static bool same_factor(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_scales(const struct rueda_request *a,
                        const struct rueda_request *b)
{
    return same_factor(a->prescale, b->prescale) &&
           same_factor(a->postscale, b->postscale);
}

static void tell_scales(const struct rueda_request *request,
                        struct rueda_text *out)
{
    rueda_text_add(out, "sent factors (%g, %g)", request->prescale,
                   request->postscale);
}

static bool same_reduction(const struct rueda_request *a,
                           const struct rueda_request *b)
{
    return a->reduction == b->reduction;
}

static void tell_reduction(const struct rueda_request *request,
                           struct rueda_text *out)
{
    rueda_text_add(out, "sent reduction op %s",
                   rueda_reduction_str(request->reduction));
}

static bool same_dims(const struct rueda_request *a,
                      const struct rueda_request *b)
{
    return !rueda_request_has_free_rows(a) || a->dims == b->dims;
}

static void tell_dims(const struct rueda_request *request,
                      struct rueda_text *out)
{
    rueda_text_add(out, "sent a tensor of rank %u", request->dims);
}

/* The first dimension in which they differ, but for their rows; or 0. */
static uint32_t odd_dimension(const struct rueda_request *a,
                              const struct rueda_request *b)
{
    for (uint32_t i = 1; i < a->dims; i++)
        if (a->shape[i] != b->shape[i])
            return i;
    return 0;
}

/* All dimensions but the first, of which there are as many. */
static bool same_rows(const struct rueda_request *a,
                      const struct rueda_request *b)
{
    return !rueda_request_has_free_rows(a) || odd_dimension(a, b) == 0;
}

static void tell_rows(const struct rueda_request *request, uint32_t dimension,
                      struct rueda_text *out)
{
    rueda_text_add(out, "sent a tensor with dimension %u equal to %llu",
                   dimension, (unsigned long long)request->shape[dimension]);
}

static bool same_root(const struct rueda_request *a,
                      const struct rueda_request *b)
{
    return a->root == b->root;
}

static void tell_root(const struct rueda_request *request,
                      struct rueda_text *out)
{
    rueda_text_add(out, "specified root rank %d", request->root);
}

/* Which one of the accelerators is each rank's own business. */
static bool same_device(const struct rueda_request *a,
                        const struct rueda_request *b)
{
    return rueda_request_is_away(a) == rueda_request_is_away(b);
}

static void tell_device(const struct rueda_request *request,
                        struct rueda_text *out)
{
    rueda_text_add(out, "specified device %s",
                   rueda_request_is_away(request) ? "GPU" : "CPU");
}

static bool same_compression(const struct rueda_request *a,
                             const struct rueda_request *b)
{
    return a->compression == b->compression;
}

static void tell_compression(const struct rueda_request *request,
                             struct rueda_text *out)
{
    rueda_text_add(out, "asked for compression %s",
                   rueda_compression_str(request->compression));
}

static bool same_group(const struct rueda_request *a,
                       const struct rueda_request *b)
{
    return a->group == b->group && a->group_count == b->group_count;
}

static void tell_group(const struct rueda_request *request,
                       struct rueda_text *out)
{
    if (request->group_count == 0)
        rueda_text_add(out, "sent it by itself");
    else
        rueda_text_add(out, "sent it in group %llx of %u tensors",
                       (unsigned long long)request->group,
                       request->group_count);
}

static bool same_average(const struct rueda_request *a,
                         const struct rueda_request *b)
{
    return ((a->flags ^ b->flags) & RUEDA_LIVE_AVERAGE) == 0;
}

static void tell_average(const struct rueda_request *request,
                         struct rueda_text *out)
{
    rueda_text_add(out, "%s by the ranks that have not joined",
                   request->flags & RUEDA_LIVE_AVERAGE ? "averages"
                                                       : "does not average");
}

static bool same_packing(const struct rueda_request *a,
                         const struct rueda_request *b)
{
    return ((a->flags ^ b->flags) & RUEDA_UNPACKED) == 0;
}

static void tell_packing(const struct rueda_request *request,
                         struct rueda_text *out)
{
    rueda_text_add(out, "%s",
                   request->flags & RUEDA_UNPACKED
                       ? "leaves it where it is (RUEDA_UNPACKED)"
                       : "has it packed");
}

static const struct {
    const char *what;
    bool (*is_same)(const struct rueda_request *a,
                    const struct rueda_request *b);
    void (*tell)(const struct rueda_request *request, struct rueda_text *out);
} checks[] = {
    {"data types", same_dtype, tell_dtype},
    {"operations", same_kind, tell_kind},
    {"%s tensor shapes", same_shape, tell_shape},
    {"prescale and/or postscale factors", same_scales, tell_scales},
    {"reduction operation", same_reduction, tell_reduction},
    {"%s tensor shapes", same_dims, tell_dims},
    {"%s tensor shapes", same_rows, NULL}, /* tell_rows() */
    {"%s root ranks", same_root, tell_root},
    {"%s CPU/GPU device selection", same_device, tell_device},
    {"compression", same_compression, tell_compression},
    {"groups", same_group, tell_group},
    {"averages", same_average, tell_average},
    {"packing", same_packing, tell_packing},
};
#define CHECK_COUNT ((int)(sizeof(checks) / sizeof(checks[0])))

int rueda_compare(const struct rueda_request *a, const struct rueda_request *b)
{
    for (int i = 0; i < CHECK_COUNT; i++)
        if (!checks[i].is_same(a, b))
            return i + 1;
    return 0;
}

/* What the first of two says that the other does not. */
static void tell(int check, const struct rueda_request *request,
                 const struct rueda_request *other, struct rueda_text *out)
{
    if (checks[check].tell != NULL)
        checks[check].tell(request, out);
    else
        tell_rows(request, odd_dimension(request, other), out);
}

/* "One rank (3) had type int32"; the title says what of. */
void rueda_compare_explain(const struct rueda_said *a,
                           const struct rueda_said *b, struct rueda_text *out)
{
    const int check = rueda_compare(a->request, b->request) - 1;
    const char *what = checks[check].what;

    rueda_text_add(out, "Mismatched ");
    if (strncmp(what, "%s ", 3) == 0) {
        tell_kind_name(a->request, out);
        what += 2;
    }
    rueda_text_add(out, "%s: One rank (%d) ", what, a->rank);
    tell(check, a->request, b->request, out);
    rueda_text_add(out, ", but another rank (%d) ", b->rank);
    tell(check, b->request, a->request, out);
    rueda_text_add(out, ": ");
    rueda_compare_title(a->request, out);
}
