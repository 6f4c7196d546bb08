/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of each rank for --bind, by libhwloc if it is installed. */
#include "launch/cpus.h"

#include <string.h>

#include "os/library.h"

/* ---- What there is ------------------------------------------------------ */

static bool has(const struct rueda_cpus *cpus, unsigned cpu)
{
    return cpu < RUEDA_MACHINE_MOST_CPUS &&
           (cpus->bits[cpu / 64] >> (cpu % 64) & 1) != 0;
}

void rueda_cores_plain(const struct rueda_cpus *usable, struct rueda_cores *out)
{
    out->count = 0;
    out->per_core = 1;
    for (unsigned cpu = 0; cpu < RUEDA_MACHINE_MOST_CPUS; cpu++)
        if (has(usable, cpu))
            out->cpus[out->count++] = (int)cpu;
}

/*
 * hwloc is opened at run time, without its header: a few functions of its
 * binary interface 15 (versions 2.0 and later), and the first fields of an
 * object.
 */
#define HWLOC_LIBRARY "libhwloc.so.15"
#define HWLOC_CORE    2
#define HWLOC_PU      3

struct hwloc_object {
    int type;
    char *subtype;
    unsigned number; /* of a CPU, as the kernel counts */
};

struct hwloc {
    void *library;
    void *topology;
    int (*init)(void **topology);
    int (*load)(void *topology);
    void (*destroy)(void *topology);
    int (*depth_of)(void *topology, int type);
    unsigned (*count_at)(void *topology, int depth);
    struct hwloc_object *(*object_at)(void *topology, int depth,
                                      unsigned place);
};

/* Load hwloc if it is installed, and find the functions that we need. Without
 * it CPUs are counted, and not told by cores. */
static bool hwloc_open(struct hwloc *hwloc)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"hwloc_topology_init", &hwloc->init},
        {"hwloc_topology_load", &hwloc->load},
        {"hwloc_topology_destroy", &hwloc->destroy},
        {"hwloc_get_type_depth", &hwloc->depth_of},
        {"hwloc_get_nbobjs_by_depth", &hwloc->count_at},
        {"hwloc_get_obj_by_depth", &hwloc->object_at},
    };

    hwloc->library = rueda_library_open(HWLOC_LIBRARY);
    if (hwloc->library == NULL)
        return false;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (rueda_library_function(hwloc->library, wanted[i].name,
                                   wanted[i].function) != RUEDA_OK)
            return false;
    if (hwloc->init(&hwloc->topology) != 0) {
        hwloc->topology = NULL;
        return false;
    }
    return hwloc->load(hwloc->topology) == 0;
}

static void hwloc_close(struct hwloc *hwloc)
{
    if (hwloc->topology != NULL)
        hwloc->destroy(hwloc->topology);
    if (hwloc->library != NULL)
        rueda_library_close(hwloc->library);
}

/* List the usable CPUs core by core, so that a share of the list is a share of
 * the cores. */
static void ask_hwloc(const struct hwloc *hwloc,
                      const struct rueda_cpus *usable, struct rueda_cores *out)
{
    const int depth = hwloc->depth_of(hwloc->topology, HWLOC_PU);
    const int core_depth = hwloc->depth_of(hwloc->topology, HWLOC_CORE);
    const unsigned count = hwloc->count_at(hwloc->topology, depth);
    unsigned cores = 0;

    out->count = 0;
    for (unsigned i = 0; i < count && out->count < RUEDA_MACHINE_MOST_CPUS;
         i++) {
        const struct hwloc_object *cpu =
            hwloc->object_at(hwloc->topology, depth, i);

        if (cpu != NULL && has(usable, cpu->number))
            out->cpus[out->count++] = (int)cpu->number;
    }
    if (core_depth >= 0)
        cores = hwloc->count_at(hwloc->topology, core_depth);
    /* Where not all CPUs are ours, cores may be so in part. */
    out->per_core = 1;
    if (cores > 0 && count % cores == 0 && out->count == (int)count)
        out->per_core = (int)(count / cores);
}

/* The usable CPUs in the order in which ranks get them. hwloc is believed only
 * if it finds the same CPUs as the kernel. */
void rueda_cores_find(const struct rueda_cpus *usable, struct rueda_cores *out)
{
    struct hwloc hwloc = {.library = NULL};

    rueda_cores_plain(usable, out);
    if (hwloc_open(&hwloc)) {
        struct rueda_cores found;

        ask_hwloc(&hwloc, usable, &found);
        if (found.count == out->count)
            *out = found;
    }
    hwloc_close(&hwloc);
}

/* ---- Shares ------------------------------------------------------------- */

/* The CPUs of one local rank: one core, or its share of all of them. False:
 * there is nothing to bind to, or there are more ranks than CPUs. */
bool rueda_cores_share(const struct rueda_cores *cores, rueda_bind bind,
                       int local_rank, int local_size, struct rueda_cpus *out)
{
    int unit = cores->per_core;
    int units = cores->count / unit;
    int first;
    int last;

    if (bind == RUEDA_BIND_NONE || units == 0)
        return false;
    if (bind == RUEDA_BIND_CORE) {
        first = local_rank % units;
        last = first + 1;
    } else {
        if (local_size > units) {
            unit = 1;
            units = cores->count;
        }
        if (local_size > units)
            return false;
        first = local_rank * units / local_size;
        last = (local_rank + 1) * units / local_size;
    }
    memset(out, 0, sizeof(*out));
    for (int i = first * unit; i < last * unit; i++)
        out->bits[cores->cpus[i] / 64] |= (uint64_t)1 << (cores->cpus[i] % 64);
    return true;
}
