/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the host as a device: every call is done when it returns, so
 * rows of work and events hold nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "device/host.h"
#include "device/host_kernels.h"

#define LINE_BYTES ((size_t)64)

/* A whole line more than needed, so that no bytes have an address too, which is
 * not NULL. */
static void *host_alloc(const struct rueda_device *device, size_t bytes)
{
    (void)device;
    if (bytes > SIZE_MAX - LINE_BYTES)
        return NULL;
    return aligned_alloc(LINE_BYTES, (bytes / LINE_BYTES + 1) * LINE_BYTES);
}

static void host_free(const struct rueda_device *device, void *at)
{
    (void)device;
    free(at);
}

static rueda_status host_owns(const struct rueda_device *device, const void *at)
{
    (void)device;
    (void)at;
    return RUEDA_OK;
}

static rueda_status host_copy(const struct rueda_device *device,
                              struct rueda_work *work, void *dst,
                              const void *src, size_t bytes)
{
    (void)work;
    rueda_host_move(rueda_host_of(device), dst, src, bytes);
    return RUEDA_OK;
}

static size_t bytes_of(const struct rueda_part *parts, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        bytes += parts[i].bytes;
    return bytes;
}

/* In a simulator packing costs time, and phantoms are not moved. */
static bool are_phantoms(const struct rueda_device *device,
                         const struct rueda_part *parts, int count)
{
    const struct rueda_kernels *kernels = rueda_host_of(device);

    return kernels->meter != NULL &&
           rueda_host_is_phantom(kernels, bytes_of(parts, count));
}

static rueda_status host_gather(const struct rueda_device *device,
                                struct rueda_work *work, char *slab,
                                const struct rueda_part *parts, int count)
{
    size_t end = count > 0 ? parts[0].at : 0;

    (void)work;
    if (are_phantoms(device, parts, count))
        return RUEDA_OK;
    for (const struct rueda_part *part = parts; part < parts + count; part++) {
        if (part->at > end)
            memset(slab + end, 0, part->at - end);
        if (part->send == NULL)
            memset(slab + part->at, 0, part->bytes);
        else if (part->bytes > 0)
            memcpy(slab + part->at, part->send, part->bytes);
        end = part->at + part->bytes;
    }
    return RUEDA_OK;
}

static rueda_status host_scatter(const struct rueda_device *device,
                                 struct rueda_work *work, const char *slab,
                                 const struct rueda_part *parts, int count)
{
    (void)work;
    if (are_phantoms(device, parts, count))
        return RUEDA_OK;
    for (const struct rueda_part *part = parts; part < parts + count; part++)
        if (part->recv != NULL && part->bytes > 0)
            memcpy(part->recv, slab + part->at, part->bytes);
    return RUEDA_OK;
}

static rueda_status host_reduce(const struct rueda_device *device,
                                struct rueda_work *work,
                                const struct rueda_arith *arith, void *dst,
                                const void *const *src, int n, size_t count)
{
    (void)work;
    rueda_host_reduce(rueda_host_of(device), arith, dst, src, n, count);
    return RUEDA_OK;
}

static rueda_status host_scale(const struct rueda_device *device,
                               struct rueda_work *work, rueda_dtype dtype,
                               void *dst, const void *src, size_t count,
                               double factor)
{
    (void)work;
    rueda_host_scale(rueda_host_of(device), dtype, dst, src, count, factor);
    return RUEDA_OK;
}

static rueda_status host_neutral(const struct rueda_device *device,
                                 struct rueda_work *work,
                                 const struct rueda_arith *arith, void *dst,
                                 size_t count)
{
    (void)device;
    (void)work;
    rueda_host_neutral(arith, dst, count);
    return RUEDA_OK;
}

static rueda_status host_convert(const struct rueda_device *device,
                                 struct rueda_work *work, rueda_dtype to,
                                 void *dst, rueda_dtype from, const void *src,
                                 size_t count)
{
    (void)work;
    rueda_host_convert(rueda_host_of(device), to, dst, from, src, count);
    return RUEDA_OK;
}

static rueda_status host_dots(const struct rueda_device *device,
                              struct rueda_work *work, rueda_dtype dtype,
                              const void *a, const void *b, size_t count,
                              double out_dots[3])
{
    (void)work;
    rueda_host_dots(rueda_host_of(device), dtype, a, b, count, out_dots);
    return RUEDA_OK;
}

static rueda_status host_combine(const struct rueda_device *device,
                                 struct rueda_work *work, rueda_dtype dtype,
                                 void *dst, const void *const src[2],
                                 const double by[2], size_t count)
{
    (void)work;
    rueda_host_combine(rueda_host_of(device), dtype, dst, src[0], src[1], by,
                       count);
    return RUEDA_OK;
}

static rueda_status host_poll(const struct rueda_device *device,
                              struct rueda_work *work)
{
    (void)device;
    (void)work;
    return RUEDA_OK;
}

static rueda_status host_record(const struct rueda_device *device, void *stream,
                                struct rueda_event *event)
{
    (void)device;
    (void)stream;
    (void)event;
    return RUEDA_OK;
}

static rueda_status host_is_done(const struct rueda_device *device,
                                 struct rueda_event *event)
{
    (void)device;
    (void)event;
    return RUEDA_OK;
}

static rueda_status host_wait(const struct rueda_device *device, void *stream,
                              struct rueda_event *event)
{
    (void)device;
    (void)stream;
    (void)event;
    return RUEDA_OK;
}

static rueda_status host_after(const struct rueda_device *device,
                               struct rueda_work *work,
                               struct rueda_event *event)
{
    (void)device;
    (void)work;
    (void)event;
    return RUEDA_OK;
}

static void host_hold(const struct rueda_device *device,
                      const struct rueda_event *event, struct rueda_event *out)
{
    (void)device;
    *out = *event;
}

static void host_forget(const struct rueda_device *device,
                        struct rueda_event *event)
{
    (void)device;
    (void)event;
}

static void host_tell(const struct rueda_device *device, struct rueda_text *out)
{
    (void)device;
    (void)out;
}

const struct rueda_device_ops rueda_host_ops = {
    .name = "host",
    .memory = RUEDA_MEMKIND_HOST,
    .alloc = host_alloc,
    .free = host_free,
    .alloc_host = host_alloc,
    .free_host = host_free,
    .owns = host_owns,
    .copy = host_copy,
    .gather = host_gather,
    .scatter = host_scatter,
    .reduce = host_reduce,
    .scale = host_scale,
    .neutral = host_neutral,
    .convert = host_convert,
    .dots = host_dots,
    .combine = host_combine,
    .poll = host_poll,
    .record = host_record,
    .is_done = host_is_done,
    .wait = host_wait,
    .after = host_after,
    .hold = host_hold,
    .forget = host_forget,
    .tell = host_tell,
};

const struct rueda_device *rueda_device_default(const char *wanted)
{
    const struct rueda_kernels *kernels =
        rueda_host_kernels(strcmp(wanted, "auto") == 0 ? NULL : wanted);

    return kernels != NULL ? &kernels->super : NULL;
}
