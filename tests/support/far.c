/* SPDX-License-Identifier: Apache-2.0 */
#include "support/far.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SOURCES = 8, /* of one call that adds */
    CALLS = 64   /* in one row */
};

/* A call that has been accepted. */
struct call {
    enum {
        COPY,
        GATHER,
        SCATTER,
        REDUCE,
        SCALE,
        NEUTRAL
    } what;
    void *dst;
    const void *src[SOURCES];
    int n;
    size_t count;
    double factor;
    struct rueda_arith arith;
    struct rueda_part *parts; /* [n], a copy */
};

/* What a row has yet to do. */
struct row {
    struct call calls[CALLS];
    int first;
    int end;
    int polls;
};

static atomic_int calls;
static atomic_int most_in;
static atomic_int most_out;

void far_reset(void)
{
    atomic_store(&calls, 0);
    atomic_store(&most_in, 0);
    atomic_store(&most_out, 0);
}

struct far_counts far_counts(void)
{
    return (struct far_counts){atomic_load(&calls), atomic_load(&most_in),
                               atomic_load(&most_out)};
}

static void raise_to(atomic_int *most, int count)
{
    int now = atomic_load(most);

    while (now < count && !atomic_compare_exchange_weak(most, &now, count))
        continue;
}

static rueda_status accept_call(struct rueda_work *work, struct call call)
{
    struct row *row = work->state[0];

    if (row == NULL) {
        row = calloc(1, sizeof(*row));
        assert_non_null(row);
        work->state[0] = row;
    }
    assert_true(row->end < CALLS);
    row->calls[row->end++] = call;
    atomic_fetch_add(&calls, 1);
    return RUEDA_IN_PROGRESS;
}

static void *far_alloc(const struct rueda_device *device, size_t bytes)
{
    (void)device;
    return malloc(bytes + 1);
}

static void far_free(const struct rueda_device *device, void *at)
{
    (void)device;
    free(at);
}

static rueda_status far_copy(const struct rueda_device *device,
                             struct rueda_work *work, void *dst,
                             const void *src, size_t bytes)
{
    (void)device;
    return accept_call(
        work,
        (struct call){.what = COPY, .dst = dst, .src = {src}, .count = bytes});
}

static struct rueda_part *copy_parts(const struct rueda_part *parts, int count)
{
    struct rueda_part *copy = calloc((size_t)count + 1, sizeof(*copy));

    assert_non_null(copy);
    memcpy(copy, parts, (size_t)count * sizeof(*copy));
    return copy;
}

static rueda_status far_gather(const struct rueda_device *device,
                               struct rueda_work *work, char *slab,
                               const struct rueda_part *parts, int count)
{
    (void)device;
    raise_to(&most_in, count);
    return accept_call(work, (struct call){.what = GATHER,
                                           .dst = slab,
                                           .n = count,
                                           .parts = copy_parts(parts, count)});
}

static rueda_status far_scatter(const struct rueda_device *device,
                                struct rueda_work *work, const char *slab,
                                const struct rueda_part *parts, int count)
{
    (void)device;
    raise_to(&most_out, count);
    return accept_call(work, (struct call){.what = SCATTER,
                                           .src = {slab},
                                           .n = count,
                                           .parts = copy_parts(parts, count)});
}

static rueda_status far_reduce(const struct rueda_device *device,
                               struct rueda_work *work,
                               const struct rueda_arith *arith, void *dst,
                               const void *const *src, int n, size_t count)
{
    struct call call = {
        .what = REDUCE, .dst = dst, .n = n, .count = count, .arith = *arith};

    (void)device;
    assert_true(n <= SOURCES);
    memcpy(call.src, src, (size_t)n * sizeof(*src));
    return accept_call(work, call);
}

static rueda_status far_scale(const struct rueda_device *device,
                              struct rueda_work *work, rueda_dtype dtype,
                              void *dst, const void *src, size_t count,
                              double factor)
{
    (void)device;
    return accept_call(work, (struct call){.what = SCALE,
                                           .dst = dst,
                                           .src = {src},
                                           .count = count,
                                           .factor = factor,
                                           .arith = {.dtype = dtype}});
}

static rueda_status far_neutral(const struct rueda_device *device,
                                struct rueda_work *work,
                                const struct rueda_arith *arith, void *dst,
                                size_t count)
{
    (void)device;
    return accept_call(work, (struct call){.what = NEUTRAL,
                                           .dst = dst,
                                           .count = count,
                                           .arith = *arith});
}

static void take_effect(struct call *call)
{
    const struct rueda_device *host = rueda_device_default("auto");
    struct rueda_work done = {RUEDA_OK, {NULL}};

    switch (call->what) {
    case COPY:
        rueda_device_copy(host, &done, call->dst, call->src[0], call->count);
        break;
    case GATHER:
        rueda_device_gather(host, &done, call->dst, call->parts, call->n);
        break;
    case SCATTER:
        rueda_device_scatter(host, &done, call->src[0], call->parts, call->n);
        break;
    case REDUCE:
        rueda_device_reduce(host, &done, &call->arith, call->dst, call->src,
                            call->n, call->count);
        break;
    case SCALE:
        rueda_device_scale(host, &done, call->arith.dtype, call->dst,
                           call->src[0], call->count, call->factor);
        break;
    case NEUTRAL:
        rueda_device_neutral(host, &done, &call->arith, call->dst, call->count);
        break;
    }
    free(call->parts);
}

static rueda_status far_poll(const struct rueda_device *device,
                             struct rueda_work *work)
{
    struct row *row = work->state[0];

    (void)device;
    if (++row->polls % FAR_PATIENCE != 0)
        return RUEDA_IN_PROGRESS;
    take_effect(&row->calls[row->first++]);
    if (row->first < row->end)
        return RUEDA_IN_PROGRESS;
    free(row);
    work->state[0] = NULL;
    return RUEDA_OK;
}

static const struct rueda_device_ops far_ops = {
    .name = "far",
    .memory = FAR_MEMORY,
    .alloc = far_alloc,
    .free = far_free,
    .copy = far_copy,
    .gather = far_gather,
    .scatter = far_scatter,
    .reduce = far_reduce,
    .scale = far_scale,
    .neutral = far_neutral,
    .poll = far_poll,
};
const struct rueda_device far_device = {.ops = &far_ops};
