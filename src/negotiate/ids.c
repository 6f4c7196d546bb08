/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers for names. The coordinator gives them out, in the log, and takes the
 * one that was used least recently when there are too many. A number that is
 * retired may still stand in messages on their way, so it is given to another
 * name only when every member is known to have read that it is retired: what
 * they sent before has then arrived, and afterwards they do not use it.
 */
#define RUEDA_LOG_TAG "negotiate"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "negotiate/state.h"

rueda_status rueda_ids_init(struct rueda_negotiator *self)
{
    struct rueda_coordinator *root = &self->root;

    /* Half of them may wait for their retirement to be known. */
    self->id_count = self->args.cache_capacity * 2;
    if (self->id_count == 0)
        return RUEDA_OK;
    self->ids = calloc((size_t)self->id_count, sizeof(struct rueda_entry *));
    if (self->ids == NULL)
        return RUEDA_ERR_NOMEM;
    if (!rueda_is_coordinator(self))
        return RUEDA_OK;
    root->retired = calloc((size_t)self->id_count, sizeof(int));
    root->when = calloc((size_t)self->id_count, sizeof(uint64_t));
    return root->retired != NULL && root->when != NULL ? RUEDA_OK
                                                       : RUEDA_ERR_NOMEM;
}

void rueda_ids_fini(struct rueda_negotiator *self)
{
    free(self->ids);
    free(self->root.retired);
    free(self->root.when);
}

/* ---- By last use -------------------------------------------------------- */

static void unlink_use(struct rueda_coordinator *root,
                       struct rueda_entry *entry)
{
    if (entry->older != NULL)
        entry->older->newer = entry->newer;
    else
        root->oldest = entry->newer;
    if (entry->newer != NULL)
        entry->newer->older = entry->older;
    else
        root->newest = entry->older;
    root->live_count--;
}

static void link_use(struct rueda_coordinator *root, struct rueda_entry *entry)
{
    entry->older = root->newest;
    entry->newer = NULL;
    if (root->newest != NULL)
        root->newest->newer = entry;
    else
        root->oldest = entry;
    root->newest = entry;
    root->live_count++;
}

/* The order of use is needed only where there are too many names. */
static void note_use(struct rueda_negotiator *self, struct rueda_entry *entry)
{
    if (self->root.live_count < self->args.cache_capacity)
        return;
    unlink_use(&self->root, entry);
    link_use(&self->root, entry);
}

/* ---- Giving out --------------------------------------------------------- */

static rueda_status retire(struct rueda_negotiator *self,
                           struct rueda_entry *entry)
{
    struct rueda_coordinator *root = &self->root;
    int end = (root->retired_first + root->retired_count) % self->id_count;

    unlink_use(root, entry);
    root->retired[end] = entry->id;
    root->retired_count++;
    root->when[entry->id] = self->applied + 1;
    rueda_out_u8(&root->log, RUEDA_DOWN_RETIRE);
    rueda_out_u32(&root->log, (uint32_t)entry->id);
    return rueda_coordinator_append(self);
}

/* A number that stands for nothing, or -1. */
static int take_id(struct rueda_negotiator *self)
{
    struct rueda_coordinator *root = &self->root;
    int id;

    if (root->used < self->id_count)
        return root->used++;
    if (root->retired_count == 0)
        return -1;
    id = root->retired[root->retired_first];
    if (root->when[id] > rueda_negotiator_applied(self))
        return -1;
    root->retired_first = (root->retired_first + 1) % self->id_count;
    root->retired_count--;
    return id;
}

/* Once a process: it would apply to every tensor of every step. */
static void warn_of_many(const struct rueda_negotiator *self)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_told))
        log_warn("there are more than %d names of tensors; from now on those "
                 "that were not used for longest are told in full again, which "
                 "takes longer than their numbers; raise RUEDA_CACHE_CAPACITY "
                 "(HOROVOD_CACHE_CAPACITY) if names come again",
                 self->args.cache_capacity);
}

/* A number for an entry that has none, or -1 if it does without. */
static rueda_status give(struct rueda_negotiator *self,
                         struct rueda_entry *entry, int *out_id)
{
    struct rueda_coordinator *root = &self->root;
    rueda_status status = RUEDA_OK;

    *out_id = -1;
    if (self->args.cache_capacity == 0 || entry->label.name == NULL)
        return RUEDA_OK;
    if (entry->is_live) /* its request has changed */
        status = retire(self, entry);
    if (status == RUEDA_OK && root->live_count == self->args.cache_capacity) {
        if (!root->oldest->is_live)
            return RUEDA_OK; /* all are of the batch that is being written */
        warn_of_many(self);
        status = retire(self, root->oldest);
    }
    if (status == RUEDA_OK)
        *out_id = take_id(self);
    return status;
}

rueda_status rueda_ids_write(struct rueda_negotiator *self,
                             struct rueda_entry *entry, struct rueda_out *items,
                             struct rueda_id_run *run)
{
    const struct rueda_request *request = entry->first.said.request;
    rueda_status status;
    int id;

    if (entry->is_live && (request == &entry->agreed ||
                           rueda_compare_is_same(request, &entry->agreed))) {
        note_use(self, entry);
        rueda_out_id(items, run, RUEDA_ITEM_ID, (uint32_t)entry->id);
        return RUEDA_OK;
    }
    status = give(self, entry, &id);
    if (status != RUEDA_OK)
        return status;
    rueda_out_u8(items, id >= 0 ? RUEDA_ITEM_NEW : RUEDA_ITEM_PLAIN);
    if (id >= 0) {
        rueda_out_u32(items, (uint32_t)id);
        link_use(&self->root, entry);
    }
    rueda_out_request(items, request);
    return RUEDA_OK;
}
