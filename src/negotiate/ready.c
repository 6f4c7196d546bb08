/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports on their way up: a member reports an operation to its parent once,
 * when all members below it have it or have joined. Messages between two
 * members keep their order, so a parent knows that a member has joined before
 * it hears of anything that is complete only because of that.
 */
#include <stdlib.h>

#include "negotiate/state.h"

/* May its id be sent in place of its request? */
static bool is_known(const struct rueda_entry *entry)
{
    const struct rueda_request *first = entry->first.said.request;

    return entry->is_live && entry->difference == 0 &&
           (first == &entry->agreed ||
            rueda_compare_is_same(first, &entry->agreed));
}

static void tell_voice(struct rueda_out *out, const struct rueda_said *said)
{
    rueda_out_u32(out, (uint32_t)said->rank);
    rueda_out_request(out, said->request);
}

static void tell_parent(struct rueda_negotiator *self,
                        const struct rueda_entry *entry)
{
    struct rueda_talk *talk = rueda_up_talk(self);
    struct rueda_out *out = &talk->out;
    int below = 1;

    if (entry->first.said.request == NULL) {
        rueda_out_u8(out, RUEDA_UP_BLANK);
        rueda_out_label(out, entry->label.name, entry->label.number);
        rueda_out_u32(out, (uint32_t)entry->count);
        return;
    }
    for (int i = 0; i < self->tree.child_count; i++)
        below += self->tree.sizes[i];
    if (is_known(entry) && entry->count == below) {
        rueda_out_id(out, &talk->ready, RUEDA_UP_READY, (uint32_t)entry->id);
        return;
    }
    if (is_known(entry)) {
        rueda_out_u8(out, RUEDA_UP_READY_SOME);
        rueda_out_u32(out, (uint32_t)entry->id);
        rueda_out_u32(out, (uint32_t)entry->count);
        return;
    }
    rueda_out_u8(out, RUEDA_UP_FULL);
    rueda_out_u32(out, (uint32_t)entry->count);
    rueda_out_u8(out, entry->difference != 0 ? 2 : 1);
    tell_voice(out, &entry->first.said);
    if (entry->difference != 0)
        tell_voice(out, &entry->other.said);
}

void rueda_ready_check(struct rueda_negotiator *self, struct rueda_entry *entry)
{
    const uint64_t all =
        (((uint64_t)1 << self->tree.child_count) - 1) | RUEDA_FROM_SELF;

    if (entry->is_told || entry->from == 0 ||
        (entry->from | self->settled) != all)
        return;
    entry->is_told = true;
    if (rueda_is_coordinator(self))
        rueda_coordinator_ready(self, entry);
    else
        tell_parent(self, entry);
}

/* ---- Joining ------------------------------------------------------------ */

static void mark(struct rueda_negotiator *self, int rank)
{
    for (int i = 0; i < self->size; i++)
        if (self->args.ranks[i] == rank)
            self->is_joined[i] = true;
}

rueda_status rueda_ready_join(struct rueda_negotiator *self, int child,
                              int rank)
{
    if (self->is_joined == NULL)
        self->is_joined = calloc((size_t)self->size, sizeof(bool));
    if (self->is_joined == NULL)
        return RUEDA_ERR_NOMEM;
    mark(self, rank);
    self->joined++;
    if (child < 0)
        self->settled |= RUEDA_FROM_SELF;
    else if (++self->child_joined[child] == self->tree.sizes[child])
        self->settled |= (uint64_t)1 << child;
    self->root.last_joined = rank;
    for (struct rueda_entry *at = self->entries.first; at; at = at->next)
        rueda_ready_check(self, at);
    if (!rueda_is_coordinator(self)) {
        struct rueda_out *out = &rueda_up_talk(self)->out;

        rueda_out_u8(out, RUEDA_UP_JOINED);
        rueda_out_u32(out, (uint32_t)rank);
    }
    return RUEDA_OK;
}

/* ---- Messages of a child ------------------------------------------------ */

/* Child `index` has the operation, on `count` members. */
static rueda_status note(struct rueda_negotiator *self,
                         struct rueda_entry *entry, int index, uint32_t count)
{
    const uint64_t bit = (uint64_t)1 << index;

    if ((entry->from & bit) != 0 || count == 0 ||
        count > (uint32_t)self->tree.sizes[index])
        return RUEDA_ERR_IO;
    entry->from |= bit;
    entry->count += (int)count;
    if (self->timeline != NULL && rueda_is_coordinator(self))
        rueda_timeline_arrival(self->timeline, entry->label.name,
                               self->args.ranks[self->tree.children[index]]);
    rueda_ready_check(self, entry);
    return RUEDA_OK;
}

static rueda_status hear_id(struct rueda_negotiator *self, int index,
                            uint32_t id, uint32_t count)
{
    struct rueda_entry *entry;
    struct rueda_said said;

    if (id >= (uint32_t)self->id_count || self->ids[id] == NULL)
        return RUEDA_ERR_IO;
    entry = self->ids[id];
    said.rank = self->args.ranks[self->tree.children[index]];
    said.request = &entry->agreed;
    rueda_entry_begin(&self->entries, entry);
    rueda_entry_hear(entry, &said, NULL);
    return note(self, entry, index, count);
}

/* All below the child have these. */
static rueda_status hear_ids(struct rueda_negotiator *self, int index,
                             struct rueda_in *in)
{
    const uint32_t first = rueda_in_u32(in);
    const uint32_t count = rueda_in_u32(in);
    rueda_status status = RUEDA_OK;

    if (count == 0 || count > (uint32_t)self->id_count)
        return RUEDA_ERR_IO;
    for (uint32_t i = 0; i < count && status == RUEDA_OK; i++)
        status =
            hear_id(self, index, first + i, (uint32_t)self->tree.sizes[index]);
    return status;
}

/* One report with the request in full; *out is its entry. */
static rueda_status hear_voice(struct rueda_negotiator *self,
                               struct rueda_in *in, struct rueda_entry **out)
{
    struct rueda_request *copy = malloc(sizeof(*copy));
    struct rueda_entry *entry;
    struct rueda_said said;

    if (copy == NULL)
        return RUEDA_ERR_NOMEM;
    said.rank = (int)rueda_in_u32(in);
    said.request = copy;
    rueda_in_request(in, copy);
    if (in->has_failed) {
        free(copy);
        return RUEDA_ERR_IO;
    }
    entry = rueda_entry_get(&self->entries, copy);
    if (entry == NULL || (*out != NULL && *out != entry)) {
        free((char *)copy->name);
        free(copy);
        return entry == NULL ? RUEDA_ERR_NOMEM : RUEDA_ERR_IO;
    }
    rueda_entry_begin(&self->entries, entry);
    rueda_entry_hear(entry, &said, copy);
    *out = entry;
    return RUEDA_OK;
}

static rueda_status hear_full(struct rueda_negotiator *self, int index,
                              struct rueda_in *in)
{
    uint32_t count = rueda_in_u32(in);
    uint8_t voices = rueda_in_u8(in);
    struct rueda_entry *entry = NULL;
    rueda_status status = RUEDA_OK;

    if (voices < 1 || voices > 2)
        return RUEDA_ERR_IO;
    for (uint8_t i = 0; i < voices && status == RUEDA_OK; i++)
        status = hear_voice(self, in, &entry);
    return status == RUEDA_OK ? note(self, entry, index, count) : status;
}

/* No member below the child has the operation that was called. */
static rueda_status hear_blank(struct rueda_negotiator *self, int index,
                               struct rueda_in *in)
{
    struct rueda_request label;
    struct rueda_entry *entry;
    uint32_t count;

    rueda_in_label(in, &label);
    count = rueda_in_u32(in);
    entry = in->has_failed ? NULL : rueda_entry_find(&self->entries, &label);
    free((char *)label.name);
    if (entry == NULL || !rueda_mismatch_is_called(entry))
        return RUEDA_ERR_IO;
    return note(self, entry, index, count);
}

static rueda_status hear_joined(struct rueda_negotiator *self, int index,
                                struct rueda_in *in)
{
    int rank = (int)rueda_in_u32(in);

    if (self->child_joined[index] == self->tree.sizes[index])
        return RUEDA_ERR_IO;
    return rueda_ready_join(self, index, rank);
}

rueda_status rueda_ready_hear(struct rueda_negotiator *self, int index,
                              struct rueda_in *in)
{
    rueda_status status = RUEDA_OK;
    uint32_t id;

    while (in->at < in->end && status == RUEDA_OK) {
        switch (rueda_in_u8(in)) {
        case RUEDA_UP_READY:
            status = hear_ids(self, index, in);
            break;
        case RUEDA_UP_READY_SOME:
            id = rueda_in_u32(in);
            status = hear_id(self, index, id, rueda_in_u32(in));
            break;
        case RUEDA_UP_FULL:
            status = hear_full(self, index, in);
            break;
        case RUEDA_UP_JOINED:
            status = hear_joined(self, index, in);
            break;
        case RUEDA_UP_CARGO:
            status = rueda_cargo_hear(self, index, in);
            break;
        case RUEDA_UP_STALLED:
            status = rueda_stall_hear(self, index, in);
            break;
        case RUEDA_UP_MISMATCH:
            status = rueda_mismatch_hear(self, in);
            break;
        case RUEDA_UP_BLANK:
            status = hear_blank(self, index, in);
            break;
        case RUEDA_UP_STILL:
            status = rueda_still_hear(self, index, in);
            break;
        default:
            status = RUEDA_ERR_IO;
        }
        if (in->has_failed)
            status = RUEDA_ERR_IO;
    }
    return status;
}
