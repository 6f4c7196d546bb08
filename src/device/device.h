/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of memory: where tensors are, and everything that touches their bytes.
 *
 * Each kind has one constant table, struct rueda_device_ops; a struct
 * rueda_device is one device of that kind, or for the host one set of vector
 * kernels. The algorithms, fusing and the engine name no kind: they move and
 * add numbers only by the functions below.
 *
 * A call that moves data belongs to a row of work. The calls of a row take
 * effect one after another, as on a stream. Each of them returns without
 * waiting:
 *
 *      RUEDA_OK           it has taken effect, and so have all before it
 *      RUEDA_IN_PROGRESS  it has been accepted; poll() tells when it is done
 *      negative           the row has failed and stays so
 *
 * The memory that a call reads or writes is borrowed until the row is done;
 * arrays that describe it (parts, sources) only until the call returns. The
 * host's calls always return RUEDA_OK.
 *
 * A row is used by one thread at a time, here the one that holds the engine's
 * token. Different rows of one device may be used by different threads.
 * Nothing here blocks but alloc(), free() and their like for the host.
 *
 * A new kind is a folder src/device/<kind>/ with such a table. It may also
 * bring algorithms of its own, which may include algo/algo.h.
 */
#ifndef RUEDA_DEVICE_DEVICE_H
#define RUEDA_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rueda/rueda.h>

#include "base/text.h"

struct rueda_algo;
struct rueda_device;

/* Kinds of memory, as bits: an algorithm says which of them it serves. */
enum {
    RUEDA_MEMKIND_HOST = 1,
    RUEDA_MEMKIND_CUDA = 2,
};
#define RUEDA_MEMKIND_ANY (~0u)

/* Results of reduce_all(), at most. */
#define RUEDA_REDUCE_ALL 128

/* What to do with the numbers of one operation. The reduction is sum, min, max
 * or product: an average is a sum with a postscale, and Adasum is made of
 * dots() and combine(). */
struct rueda_arith {
    rueda_dtype dtype;
    rueda_reduction reduction;
    double prescale;  /* multiplies every input */
    double postscale; /* multiplies the result */
};

/* A part of a vector: where it comes from and where it goes. */
struct rueda_part {
    const void *send; /* NULL: zeros */
    void *recv;       /* NULL: this rank does not need it */
    size_t at;        /* where it begins in the vector, in bytes */
    size_t bytes;
    int from; /* allgather: the member in whose buffer it is */
};

/* A row of calls, zeroed before the first. */
struct rueda_work {
    rueda_status status; /* RUEDA_IN_PROGRESS while a call is not done */
    void *state[3];      /* the device's own */
};

/* A point in a stream of the application's. Zeroed before it is recorded. */
struct rueda_event {
    void *state[2]; /* the device's own */
};

/* An allocation of the device's memory. */
struct rueda_region {
    uint64_t id; /* never that of another one in this process */
    void *base;  /* in the address space of its process */
    uint64_t bytes;
};

/* The same for other processes of the host, to which it is sent as it is. */
struct rueda_shared {
    struct rueda_region region;
    uint64_t process[2];      /* whose it is */
    uint64_t device[2];       /* where it is */
    unsigned char handle[64]; /* the device's own */
};

struct rueda_device_ops {
    const char *name; /* "host": in logs and traces */
    unsigned memory;  /* the bit of its kind */

    /* Memory of this kind, aligned to a cache line, not cleared; NULL: there
     * is none. The caller owns it. free() takes what alloc() gave, with no
     * work in progress on it, or NULL. Both may block. */
    void *(*alloc)(const struct rueda_device *device, size_t bytes);
    void (*free)(const struct rueda_device *device, void *at);

    /* The same for memory of the host which the device copies from and to
     * without a detour. */
    void *(*alloc_host)(const struct rueda_device *device, size_t bytes);
    void (*free_host)(const struct rueda_device *device, void *at);

    /* Does this memory belong to the device? RUEDA_ERR_INVALID: no, and tell()
     * says what it is. Any thread. */
    rueda_status (*owns)(const struct rueda_device *device, const void *at);

    /* memmove(); NULL is allowed where there is nothing to move. */
    rueda_status (*copy)(const struct rueda_device *device,
                         struct rueda_work *work, void *dst, const void *src,
                         size_t bytes);

    /* Put parts into a slab, each at its `at`, which ascend. The bytes between
     * the end of one part and the next become zero, because they take part in
     * the arithmetic. */
    rueda_status (*gather)(const struct rueda_device *device,
                           struct rueda_work *work, char *slab,
                           const struct rueda_part *parts, int count);

    /* Take parts out of a slab. */
    rueda_status (*scatter)(const struct rueda_device *device,
                            struct rueda_work *work, const char *slab,
                            const struct rueda_part *parts, int count);

    /* As rueda_host_reduce(), rueda_host_scale(), rueda_host_neutral() and
     * rueda_host_convert() say (device/host.h), for every dtype. */
    rueda_status (*reduce)(const struct rueda_device *device,
                           struct rueda_work *work,
                           const struct rueda_arith *arith, void *dst,
                           const void *const *src, int n, size_t count);
    rueda_status (*scale)(const struct rueda_device *device,
                          struct rueda_work *work, rueda_dtype dtype, void *dst,
                          const void *src, size_t count, double factor);

    /* Optional: reduce() with as many results as sources, all the same. A
     * result may be a source. n is at most RUEDA_REDUCE_ALL. */
    rueda_status (*reduce_all)(const struct rueda_device *device,
                               struct rueda_work *work,
                               const struct rueda_arith *arith,
                               void *const *dst, const void *const *src, int n,
                               size_t count);
    rueda_status (*neutral)(const struct rueda_device *device,
                            struct rueda_work *work,
                            const struct rueda_arith *arith, void *dst,
                            size_t count);
    rueda_status (*convert)(const struct rueda_device *device,
                            struct rueda_work *work, rueda_dtype to, void *dst,
                            rueda_dtype from, const void *src, size_t count);

    /* Adasum, as rueda_host_dots() and rueda_host_combine(). out_dots is in
     * host memory, and written when the row is done. */
    rueda_status (*dots)(const struct rueda_device *device,
                         struct rueda_work *work, rueda_dtype dtype,
                         const void *a, const void *b, size_t count,
                         double out_dots[3]);
    rueda_status (*combine)(const struct rueda_device *device,
                            struct rueda_work *work, rueda_dtype dtype,
                            void *dst, const void *const src[2],
                            const double by[2], size_t count);

    /* Is the row done? Answers as the calls do. */
    rueda_status (*poll)(const struct rueda_device *device,
                         struct rueda_work *work);

    /* Mark where a stream of the application's is now; any thread. The event
     * stays zeroed, which is one that was reached, if the stream is idle.
     * RUEDA_ERR_UNSUPPORTED: the stream is being captured. */
    rueda_status (*record)(const struct rueda_device *device, void *stream,
                           struct rueda_event *event);

    /* Has the stream reached the event? RUEDA_OK, RUEDA_IN_PROGRESS, or how it
     * failed. */
    rueda_status (*is_done)(const struct rueda_device *device,
                            struct rueda_event *event);

    /* Make a stream wait for the event; returns at once. */
    rueda_status (*wait)(const struct rueda_device *device, void *stream,
                         struct rueda_event *event);

    /* Calls of the row from here on take effect after the event. */
    rueda_status (*after)(const struct rueda_device *device,
                          struct rueda_work *work, struct rueda_event *event);

    /* One more holder of the event, who lets go of it too; any thread. */
    void (*hold)(const struct rueda_device *device,
                 const struct rueda_event *event, struct rueda_event *out);

    /* Let go of an event, recorded or not; any thread. */
    void (*forget)(const struct rueda_device *device,
                   struct rueda_event *event);

    /*
     * Optional, all five or none: memory that other processes of the host reach
     * as their own. identity() tells one device from all others, region() finds
     * the allocation of an address, share() makes it known, reach() makes one
     * of another process (or of another rank in this one) accessible here, at
     * *out, and unreach() ends that. reach() may block. None waits for work,
     * nor does what other processes do wait for work here: the ranks see to it.
     * Failures are told in why, and leave nothing; RUEDA_ERR_UNSUPPORTED: this
     * memory cannot be shared.
     */
    void (*identity)(const struct rueda_device *device, uint64_t out[2]);
    rueda_status (*region)(const struct rueda_device *device, const void *at,
                           struct rueda_region *out);
    rueda_status (*share)(const struct rueda_device *device,
                          const struct rueda_region *region,
                          struct rueda_shared *out, struct rueda_text *why);
    rueda_status (*reach)(const struct rueda_device *device,
                          const struct rueda_shared *shared, void **out,
                          struct rueda_text *why);
    void (*unreach)(const struct rueda_device *device,
                    const struct rueda_shared *shared, void *at);

    /* Add what went wrong last, and what helps, or nothing; any thread. */
    void (*tell)(const struct rueda_device *device, struct rueda_text *out);
};

/* The head of every device. */
struct rueda_device {
    const struct rueda_device_ops *ops;

    /* Its own algorithms, ended by NULL, or NULL. One that can run is
     * preferred to the built-in ones (algo/select.h). */
    const struct rueda_algo *const *algos;

    /* The setting that forbids to share its memory, "NAME=value"; or NULL. */
    const char *private_by;
};

/* The device of tensors that are on no accelerator. wanted is the setting
 * RUEDA_KERNELS; NULL if this machine cannot run that. */
const struct rueda_device *rueda_device_default(const char *wanted);

/* Does adding zeros change no result of this arithmetic? */
bool rueda_arith_has_zero(const struct rueda_arith *arith);

/* ---- Calls ------------------------------------------------------------- */

/* Note what a call of the row answered; a failure stays. */
static inline rueda_status rueda_work_note(struct rueda_work *work,
                                           rueda_status status)
{
    if (work->status >= 0)
        work->status = status;
    return work->status;
}

static inline rueda_status rueda_device_copy(const struct rueda_device *device,
                                             struct rueda_work *work, void *dst,
                                             const void *src, size_t bytes)
{
    return rueda_work_note(work,
                           device->ops->copy(device, work, dst, src, bytes));
}

static inline rueda_status
rueda_device_gather(const struct rueda_device *device, struct rueda_work *work,
                    char *slab, const struct rueda_part *parts, int count)
{
    return rueda_work_note(
        work, device->ops->gather(device, work, slab, parts, count));
}

static inline rueda_status
rueda_device_scatter(const struct rueda_device *device, struct rueda_work *work,
                     const char *slab, const struct rueda_part *parts,
                     int count)
{
    return rueda_work_note(
        work, device->ops->scatter(device, work, slab, parts, count));
}

static inline rueda_status
rueda_device_reduce(const struct rueda_device *device, struct rueda_work *work,
                    const struct rueda_arith *arith, void *dst,
                    const void *const *src, int n, size_t count)
{
    return rueda_work_note(
        work, device->ops->reduce(device, work, arith, dst, src, n, count));
}

static inline rueda_status
rueda_device_reduce_all(const struct rueda_device *device,
                        struct rueda_work *work,
                        const struct rueda_arith *arith, void *const *dst,
                        const void *const *src, int n, size_t count)
{
    return rueda_work_note(
        work, device->ops->reduce_all(device, work, arith, dst, src, n, count));
}

static inline rueda_status rueda_device_scale(const struct rueda_device *device,
                                              struct rueda_work *work,
                                              rueda_dtype dtype, void *dst,
                                              const void *src, size_t count,
                                              double factor)
{
    return rueda_work_note(
        work, device->ops->scale(device, work, dtype, dst, src, count, factor));
}

static inline rueda_status
rueda_device_neutral(const struct rueda_device *device, struct rueda_work *work,
                     const struct rueda_arith *arith, void *dst, size_t count)
{
    return rueda_work_note(
        work, device->ops->neutral(device, work, arith, dst, count));
}

static inline rueda_status
rueda_device_convert(const struct rueda_device *device, struct rueda_work *work,
                     rueda_dtype to, void *dst, rueda_dtype from,
                     const void *src, size_t count)
{
    return rueda_work_note(
        work, device->ops->convert(device, work, to, dst, from, src, count));
}

static inline rueda_status rueda_device_dots(const struct rueda_device *device,
                                             struct rueda_work *work,
                                             rueda_dtype dtype, const void *a,
                                             const void *b, size_t count,
                                             double out_dots[3])
{
    return rueda_work_note(
        work, device->ops->dots(device, work, dtype, a, b, count, out_dots));
}

static inline rueda_status
rueda_device_combine(const struct rueda_device *device, struct rueda_work *work,
                     rueda_dtype dtype, void *dst, const void *const src[2],
                     const double by[2], size_t count)
{
    return rueda_work_note(
        work, device->ops->combine(device, work, dtype, dst, src, by, count));
}

static inline rueda_status rueda_device_after(const struct rueda_device *device,
                                              struct rueda_work *work,
                                              struct rueda_event *event)
{
    return rueda_work_note(work, device->ops->after(device, work, event));
}

/* Costs nothing where no call was left in progress. */
static inline rueda_status rueda_device_poll(const struct rueda_device *device,
                                             struct rueda_work *work)
{
    if (work->status == RUEDA_IN_PROGRESS)
        work->status = device->ops->poll(device, work);
    return work->status;
}

/* For what has failed, before its memory is freed: wait until the row is done,
 * or has failed, for at most two seconds. */
void rueda_device_settle(const struct rueda_device *device,
                         struct rueda_work *work);

#endif /* RUEDA_DEVICE_DEVICE_H */
