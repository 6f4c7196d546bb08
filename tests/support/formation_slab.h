/* SPDX-License-Identifier: Apache-2.0 */
/* The slab of a formation, for tests that run tasks of their own on one. */
#ifndef RUEDA_TESTS_SUPPORT_FORMATION_SLAB_H
#define RUEDA_TESTS_SUPPORT_FORMATION_SLAB_H

#include "job/formation.h"
#include "segment/slab.h"

/* All of its members are on this host. NULL: it has none. */
static inline struct rueda_slab *
formation_slab(const struct rueda_formation *formation, struct rueda_slab *slab)
{
    if (!formation->has_slab)
        return NULL;
    rueda_slab_init_some(
        slab, formation->segment, formation->members, formation->size,
        rueda_segment_at(formation->segment, formation->slab_offset),
        formation->segment->common->cell_bytes);
    return slab;
}

#endif /* RUEDA_TESTS_SUPPORT_FORMATION_SLAB_H */
