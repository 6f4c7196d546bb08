/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The negotiator itself: it is made and freed, takes operations, reads what has
 * come from the neighbours in the tree, sends what has been written, and hands
 * out decisions. What members say is handled in ready.c and coordinator.c, the
 * log in log.c, names with ids in ids.c, failures in mismatch.c and stall.c.
 */
#include "negotiate/negotiator.h"

#include <stdlib.h>
#include <string.h>

#include "base/least.h"
#include "negotiate/state.h"

rueda_status rueda_negotiator_new(const struct rueda_negotiator_args *args,
                                  struct rueda_negotiator **out)
{
    struct rueda_negotiator *self = calloc(1, sizeof(*self));
    rueda_status status = RUEDA_ERR_NOMEM;
    int talks;

    if (self == NULL)
        return RUEDA_ERR_NOMEM;
    self->args = *args;
    self->me = args->mesh->rank;
    self->size = args->mesh->size;
    self->next_check_ns = INT64_MAX;
    self->root.call_ns = INT64_MAX;
    status = rueda_tree_init(&self->tree, self->me, self->size, args->hosts);
    if (status != RUEDA_OK)
        goto err;
    talks = self->tree.child_count + 1;
    self->talks = calloc((size_t)talks, sizeof(*self->talks));
    if (self->talks == NULL) {
        status = RUEDA_ERR_NOMEM;
        goto err;
    }
    for (int i = 0; i < talks; i++)
        rueda_talk_init(&self->talks[i], args->mesh,
                        i < self->tree.child_count ? self->tree.children[i]
                                                   : self->tree.parent,
                        args->tag);
    status = rueda_ids_init(self);
    if (status != RUEDA_OK)
        goto err;
    rueda_stall_begin(self);
    *out = self;
    return RUEDA_OK;

err:
    rueda_negotiator_free(self);
    return status;
}

static void free_list(struct rueda_decided *decided)
{
    while (decided != NULL) {
        struct rueda_decided *next = decided->next;

        rueda_decided_free(decided);
        decided = next;
    }
}

void rueda_negotiator_free(struct rueda_negotiator *self)
{
    if (self == NULL)
        return;
    rueda_coordinator_fini(self);
    rueda_still_fini(self);
    free(self->past);
    rueda_ids_fini(self);
    rueda_entries_fini(&self->entries);
    if (self->talks != NULL)
        for (int i = 0; i <= self->tree.child_count; i++)
            rueda_talk_fini(&self->talks[i]);
    free(self->talks);
    free(self->is_joined);
    free_list(self->first);
    free_list(self->spare);
    free(self);
}

/* ---- What is mine -------------------------------------------------------- */

static rueda_status submit_join(struct rueda_negotiator *self, void *mine)
{
    self->my_join = mine;
    self->undecided++;
    return rueda_ready_join(self, -1, self->args.ranks[self->me]);
}

static void note_submit(struct rueda_negotiator *self,
                        const struct rueda_request *request)
{
    rueda_timeline_begin(
        self->timeline, request->name,
        rueda_timeline_negotiation(request->kind, request->reduction));
    if (rueda_is_coordinator(self))
        rueda_timeline_arrival(self->timeline, request->name,
                               self->args.ranks[self->me]);
}

/* Steps repeat: what comes next is likely what came next the last time. */
static struct rueda_entry *entry_of(struct rueda_negotiator *self,
                                    const struct rueda_request *request)
{
    struct rueda_entry *likely =
        self->latest != NULL ? self->latest->after : NULL;

    if (likely != NULL && likely->id >= 0 &&
        rueda_label_is_of(&likely->label, request))
        return likely;
    return rueda_entry_get(&self->entries, request);
}

/* How many ids ahead of the current one to prefetch; fewer for names, since the
 * entry must have been read before. */
#define AHEAD      8
#define NAME_AHEAD 4

/* Steps repeat in the order in which ids were given out: fetch what is likely
 * to come, so early that it is there by then. */
static void expect_next(struct rueda_negotiator *self,
                        struct rueda_entry *entry)
{
    const size_t hot = offsetof(struct rueda_entry, agreed.shape[1]);
    const int id = entry->id;

    if (id >= 0 && id + AHEAD < self->id_count) {
        const struct rueda_entry *far = self->ids[id + AHEAD];
        const struct rueda_entry *near = self->ids[id + NAME_AHEAD];

        for (size_t i = 0; i < hot && far != NULL; i += RUEDA_CACHE_LINE)
            __builtin_prefetch((const char *)far + i, 1);
        if (near != NULL)
            __builtin_prefetch(near->label.name);
    }
    if (self->latest != NULL)
        self->latest->after = entry;
    self->latest = entry;
}

static inline void enter(struct rueda_negotiator *self,
                         struct rueda_entry *entry,
                         const struct rueda_request *request, void *mine)
{
    struct rueda_said said = {self->args.ranks[self->me], request};

    rueda_entry_begin(&self->entries, entry);
    entry->mine = mine;
    entry->my_request = request;
    entry->from |= RUEDA_FROM_SELF;
    entry->count++;
    if (self->timeline != NULL)
        note_submit(self, request);
    if (entry->is_live && rueda_compare_is_same(request, &entry->agreed))
        said.request = &entry->agreed;
    rueda_entry_hear(entry, &said, NULL);
    rueda_ready_check(self, entry);
}

void rueda_negotiator_enter(struct rueda_negotiator *self,
                            struct rueda_entry *entry,
                            const struct rueda_request *request, void *mine)
{
    enter(self, entry, request, mine);
}

rueda_status rueda_negotiator_submit(struct rueda_negotiator *self,
                                     const struct rueda_request *request,
                                     void *mine)
{
    struct rueda_entry *entry;

    if (self->my_join != NULL)
        return RUEDA_ERR_INVALID;
    if (request->kind == RUEDA_JOIN)
        return submit_join(self, mine);
    entry = entry_of(self, request);
    if (entry == NULL)
        return RUEDA_ERR_NOMEM;
    if (entry->mine != NULL)
        return RUEDA_ERR_INVALID;
    if (entry->mismatch != NULL && rueda_mismatch_is_called(entry))
        return rueda_mismatch_submit(self, entry, request, mine);
    expect_next(self, entry);
    self->undecided++;
    enter(self, entry, request, mine);
    if (request->name == NULL && rueda_mismatch_is_past(self, request->number))
        return rueda_mismatch_submit_past(self, entry);
    return RUEDA_OK;
}

const struct rueda_decision *
rueda_negotiator_next(struct rueda_negotiator *self)
{
    return self->first != NULL ? &self->first->decision : NULL;
}

void rueda_negotiator_done(struct rueda_negotiator *self)
{
    struct rueda_decided *decided = self->first;

    self->first = decided->next;
    if (self->first == NULL)
        self->last = NULL;
    if (decided->decision.kind == RUEDA_DECIDED_RUN)
        self->root.running--;
    free(decided->copies);
    free(decided->words);
    decided->copies = NULL;
    decided->words = NULL;
    decided->next = self->spare;
    self->spare = decided;
}

void rueda_negotiator_trace(struct rueda_negotiator *self,
                            struct rueda_timeline *timeline)
{
    const struct rueda_entry *entry = self->entries.first;

    self->timeline = timeline;
    for (; timeline != NULL && entry != NULL; entry = entry->next)
        if (entry->mine != NULL)
            note_submit(self, entry->my_request);
}

static int talks_of(const struct rueda_negotiator *self)
{
    return self->tree.child_count + !rueda_is_coordinator(self);
}

void rueda_negotiator_end(struct rueda_negotiator *self)
{
    self->is_ending = true;
    self->next_check_ns = INT64_MAX;
    self->root.call_ns = INT64_MAX;
    for (int i = 0; i < talks_of(self); i++)
        rueda_talk_end(&self->talks[i]);
}

bool rueda_negotiator_is_over(const struct rueda_negotiator *self)
{
    for (int i = 0; i < talks_of(self); i++)
        if (!rueda_talk_is_over(&self->talks[i]))
            return false;
    return self->is_ending;
}

int rueda_negotiator_pending(const struct rueda_negotiator *self)
{
    return self->undecided;
}

bool rueda_negotiator_is_sending(const struct rueda_negotiator *self)
{
    for (int i = 0; i <= self->tree.child_count; i++)
        if (rueda_talk_is_sending(&self->talks[i]) &&
            !rueda_talk_is_lost(&self->talks[i]))
            return true;
    return false;
}

struct rueda_negotiator_counts
rueda_negotiator_counts(const struct rueda_negotiator *self)
{
    struct rueda_negotiator_counts counts = {0};

    for (int i = 0; i <= self->tree.child_count; i++) {
        counts.sent += self->talks[i].sent;
        counts.received += self->talks[i].received;
    }
    return counts;
}

bool rueda_negotiator_has_children(const struct rueda_negotiator *self)
{
    return self->tree.child_count > 0;
}

int64_t rueda_negotiator_due_ns(const struct rueda_negotiator *self)
{
    return rueda_sooner(self->root.call_ns, self->next_check_ns);
}

/* ---- Turns --------------------------------------------------------------- */

uint64_t rueda_negotiator_applied(const struct rueda_negotiator *self)
{
    uint64_t least = self->applied;

    for (int i = 0; i < self->tree.child_count; i++)
        if (self->child_applied[i] < least)
            least = self->child_applied[i];
    return least;
}

/* The log, and on to my children. */
static rueda_status hear_parent(struct rueda_negotiator *self)
{
    struct rueda_heard heard;
    rueda_status status =
        rueda_talk_hear(rueda_up_talk(self), self->now_ns, &heard);
    size_t len;

    if (status != RUEDA_OK)
        return status;
    len = (size_t)(heard.in.end - heard.in.at);
    for (int i = 0; i < self->tree.child_count; i++)
        rueda_out_bytes(&self->talks[i].out, heard.in.at, len);
    return rueda_negotiator_log_follow(self, &heard.in);
}

static rueda_status hear_child(struct rueda_negotiator *self, int index)
{
    struct rueda_heard heard;
    rueda_status status =
        rueda_talk_hear(&self->talks[index], self->now_ns, &heard);

    if (status != RUEDA_OK)
        return status;
    self->child_applied[index] = heard.applied;
    return rueda_ready_hear(self, index, &heard.in);
}

/* Two rueda_status of which neither is a failure. */
static rueda_status either(rueda_status a, rueda_status b)
{
    return a == RUEDA_OK || b == RUEDA_OK ? RUEDA_OK : RUEDA_IN_PROGRESS;
}

/* Read and drop what comes after the end. */
static rueda_status hear_after_end(struct rueda_negotiator *self, int index)
{
    struct rueda_heard heard;

    return rueda_talk_hear(&self->talks[index], self->now_ns, &heard);
}

static rueda_status hear(struct rueda_negotiator *self, int index)
{
    if (self->is_ending)
        return hear_after_end(self, index);
    return index < self->tree.child_count ? hear_child(self, index)
                                          : hear_parent(self);
}

/* Read everything that has come. *peer is the neighbour with which it failed; a
 * lost neighbour does not keep the others from being heard. */
static rueda_status hear_all(struct rueda_negotiator *self, int *peer,
                             bool *out_is_lost)
{
    const int talks = talks_of(self);
    rueda_status moved = RUEDA_IN_PROGRESS;

    for (int i = 0; i < talks; i++) {
        rueda_status status = RUEDA_OK;

        while (status == RUEDA_OK) {
            status = hear(self, i);
            if (status == RUEDA_ERR_PEER_LOST) {
                *out_is_lost = true;
                status = RUEDA_IN_PROGRESS;
            }
            if (status < 0) {
                *peer = self->talks[i].peer;
                return status;
            }
            moved = either(moved, status);
        }
    }
    return moved;
}

static rueda_status send_all(struct rueda_negotiator *self, int *peer,
                             bool *out_is_lost)
{
    const int talks = talks_of(self);
    struct rueda_talk_stamp stamp = {
        .applied = rueda_negotiator_applied(self),
        .now_ns = self->now_ns,
    };
    rueda_status moved = RUEDA_IN_PROGRESS;

    stamp.has_shift = rueda_negotiator_find_shift(self, &stamp.shift_ns);
    for (int i = 0; i < talks; i++) {
        rueda_status status = rueda_talk_send(&self->talks[i], &stamp);

        if (status == RUEDA_ERR_PEER_LOST) {
            *out_is_lost = true;
            status = RUEDA_IN_PROGRESS;
        }
        if (status < 0) {
            *peer = self->talks[i].peer;
            return status;
        }
        moved = either(moved, status);
    }
    return moved;
}

void rueda_negotiator_send(struct rueda_negotiator *self)
{
    bool is_lost;
    int peer;

    send_all(self, &peer, &is_lost);
}

static rueda_status explain(const struct rueda_negotiator *self, int peer,
                            rueda_status status, struct rueda_text *error)
{
    if (status == RUEDA_ERR_IO)
        rueda_text_set(error,
                       "rank %d sent rank %d a control message that makes no "
                       "sense; do both run the same version?",
                       self->args.ranks[peer], self->args.ranks[self->me]);
    else if (status == RUEDA_ERR_NOMEM)
        rueda_text_set(error, "no memory to negotiate in rank %d",
                       self->args.ranks[self->me]);
    return status;
}

rueda_status rueda_negotiator_turn(struct rueda_negotiator *self,
                                   struct rueda_text *error)
{
    bool is_lost = false;
    int peer = self->me;
    rueda_status status = RUEDA_IN_PROGRESS;
    rueda_status moved;

    self->now_ns = rueda_negotiator_now(self);
    moved = hear_all(self, &peer, &is_lost);
    if (moved < 0)
        return explain(self, peer, moved, error);
    if (rueda_is_coordinator(self) && !self->is_ending)
        status = rueda_coordinator_decide(self);
    if (status >= 0 && !self->is_ending) {
        moved = either(moved, status);
        status = rueda_stall_check(self, error);
    }
    if (status >= 0 && !self->is_ending) {
        moved = either(moved, status);
        status = rueda_still_check(self, error);
    }
    if (status >= 0) {
        moved = either(moved, status);
        status = send_all(self, &peer, &is_lost);
    }
    if (status < 0)
        return explain(self, peer, status, error);
    if (is_lost && either(moved, status) != RUEDA_OK)
        return RUEDA_ERR_PEER_LOST;
    return either(moved, status);
}
