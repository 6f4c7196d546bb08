/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latency of a cache line between two cores, measured by two processes in
 * shared memory.
 */
#define _GNU_SOURCE
#include "tool/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tool/clock.h"
#include "tool/stats.h"

#define PAGE       4096
#define TRIPS      200 /* round trips between two looks at the clock */
#define SAMPLES    15
#define PATIENCE_S 20.0 /* for the other side, on a full machine */
#define LIMIT_S    0.1  /* for the whole probe, where sides share a core */
#define SPINS      20000

/* Side 0 writes odd numbers, side 1 answers each with the next even one. */
struct probe_line {
    _Alignas(64) _Atomic uint64_t turn;
    _Alignas(64) _Atomic uint64_t is_over;
};

/* Make the page that two workers share, and the path by which they open it. */
bool rueda_probe_open(struct rueda_probe *probe)
{
    probe->fd = memfd_create("rueda-probe", MFD_CLOEXEC);
    if (probe->fd < 0)
        return false;
    if (ftruncate(probe->fd, PAGE) != 0)
        goto err_close;
    probe->page =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, probe->fd, 0);
    if (probe->page == MAP_FAILED)
        goto err_close;
    snprintf(probe->path, sizeof(probe->path), "/proc/%d/fd/%d", (int)getpid(),
             probe->fd);
    return true;

err_close:
    close(probe->fd);
    probe->fd = -1;
    return false;
}

void rueda_probe_close(struct rueda_probe *probe)
{
    if (probe->fd < 0)
        return;
    munmap(probe->page, PAGE);
    close(probe->fd);
    probe->fd = -1;
}

void rueda_probe_reset(struct rueda_probe *probe)
{
    memset(probe->page, 0, PAGE);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Wait until the line says this. A side that waits long gives up its core: the
 * other may need it. */
static bool await(struct probe_line *line, uint64_t turn, double deadline)
{
    unsigned spins = 0;

    /* Acquire is not needed for the one number, but costs nothing here and
     * keeps the two loads in order. */
    while (atomic_load_explicit(&line->turn, memory_order_acquire) != turn) {
        if (++spins < SPINS) {
            relax();
            continue;
        }
        if (atomic_load_explicit(&line->is_over, memory_order_acquire) != 0 ||
            rueda_tool_clock() > deadline)
            return false;
        sched_yield();
    }
    return true;
}

/* One side: write a number, wait for the next one, and keep the median time of
 * many such trips. */
static bool ask(struct probe_line *line, double *out_seconds)
{
    struct rueda_series trips = {0};
    const double start = rueda_tool_clock();
    uint64_t turn = 1;
    bool is_well = true;

    for (int sample = 0; sample < SAMPLES && is_well; sample++) {
        const double before = rueda_tool_clock();

        if (before - start > LIMIT_S && trips.count > 0)
            break;
        for (int i = 0; i < TRIPS && is_well; i++, turn += 2) {
            atomic_store_explicit(&line->turn, turn, memory_order_release);
            is_well = await(line, turn + 1, start + PATIENCE_S);
        }
        /* The first one is that in which the other side wakes up. */
        if (sample > 0)
            rueda_series_add(&trips,
                             (rueda_tool_clock() - before) / (2.0 * TRIPS));
    }
    atomic_store_explicit(&line->is_over, 1, memory_order_release);
    *out_seconds = rueda_series_median(&trips);
    rueda_series_fini(&trips);
    return is_well;
}

/* The other side, until is_over: it counts nothing, so that both ends of a trip
 * are timed by one clock. */
static bool answer(struct probe_line *line)
{
    double deadline = rueda_tool_clock() + PATIENCE_S;

    for (uint64_t turn = 1;; turn += 2) {
        if (!await(line, turn, deadline))
            break;
        atomic_store_explicit(&line->turn, turn + 1, memory_order_release);
    }
    return atomic_load_explicit(&line->is_over, memory_order_acquire) != 0;
}

/* How long a cache line takes from one core to another: a measure of the
 * machine, apart from any library. */
bool rueda_probe_run(const char *path, int side,
                     struct rueda_probe_result *out_result,
                     struct rueda_text *words)
{
    struct probe_line *line;
    bool is_well;
    const int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0) {
        rueda_text_set(words, "probe: %s: %s", path, strerror(errno));
        return false;
    }
    line = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (line == MAP_FAILED) {
        rueda_text_set(words, "probe: mmap: %s", strerror(errno));
        return false;
    }
    out_result->seconds = 0.0;
    is_well = side == 0 ? ask(line, &out_result->seconds) : answer(line);
    out_result->cpu = sched_getcpu();
    munmap(line, PAGE);
    if (!is_well)
        rueda_text_set(words, "probe: the other side did not come");
    return is_well;
}
