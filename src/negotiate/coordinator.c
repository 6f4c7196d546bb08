/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deciding: what every member has is compared, put in order and joined to
 * batches, and written to the log.
 *
 * There is no clock in what runs. A batch is decided as soon as something is
 * ready and few batches are in flight; what becomes ready meanwhile is joined
 * to the next. Only mismatched operations are given some time (mismatch.c).
 */
#include <stdlib.h>
#include <string.h>

#include "negotiate/state.h"

/* Batches that are decided and have not ended here: one runs, and the next is
 * known to all members before it ends. */
#define AHEAD 2

void rueda_coordinator_fini(struct rueda_negotiator *self)
{
    struct rueda_coordinator *root = &self->root;
    struct rueda_label *group;
    size_t bucket = 0;

    rueda_out_fini(&root->log);
    while ((group = rueda_labels_pop(&root->groups, &bucket)) != NULL)
        free(group);
    rueda_labels_fini(&root->groups);
    free(root->refusals);
}

static void tell_children(struct rueda_negotiator *self)
{
    const struct rueda_out *log = &self->root.log;

    for (int i = 0; i < self->tree.child_count; i++)
        rueda_out_bytes(&self->talks[i].out, log->bytes, log->len);
}

static rueda_status follow(struct rueda_negotiator *self)
{
    struct rueda_out *log = &self->root.log;
    struct rueda_in in = {.at = log->bytes, .end = log->bytes + log->len};
    rueda_status status = log->has_failed
                              ? RUEDA_ERR_NOMEM
                              : rueda_negotiator_log_follow(self, &in);

    log->len = 0;
    return status;
}

/* Send it to the members, and follow it here. */
rueda_status rueda_coordinator_append(struct rueda_negotiator *self)
{
    tell_children(self);
    return follow(self);
}

/* ---- Errors ------------------------------------------------------------- */

rueda_status rueda_coordinator_refuse(struct rueda_negotiator *self,
                                      struct rueda_entry *entry,
                                      const char *words)
{
    const uint64_t hash = entry->label.hash;
    struct rueda_out *log = &self->root.log;
    rueda_status status;

    rueda_out_u8(log, RUEDA_DOWN_ERROR);
    rueda_out_label(log, entry->label.name, entry->label.number);
    rueda_out_text(log, words);
    status = rueda_coordinator_append(self);
    if (status == RUEDA_OK)
        status = rueda_mismatch_note_refusal(self, hash);
    return status;
}

/* Operations that cannot run after a member has joined, because it has no
 * neutral value to contribute: a product's 1 changes when it is scaled. */
static bool needs_all(const struct rueda_request *request)
{
    if (request->kind == RUEDA_ALLREDUCE)
        return request->reduction == RUEDA_PRODUCT && request->prescale != 1;
    return request->kind != RUEDA_BARRIER;
}

/* What that is called. */
static const char *title_of(const struct rueda_request *request)
{
    return request->kind == RUEDA_ALLREDUCE
               ? "a product with a prescale factor"
               : rueda_kind_str((rueda_kind)request->kind);
}

/* A tensor that is scattered by rows, and has none. */
static bool lacks_rows(const struct rueda_request *request)
{
    return request->dims == 0 && (request->kind == RUEDA_ALLGATHER ||
                                  request->kind == RUEDA_ALLTOALL ||
                                  request->kind == RUEDA_REDUCE_SCATTER);
}

/* Write why it cannot run; nothing if it can. */
static void judge(const struct rueda_negotiator *self,
                  const struct rueda_entry *entry, struct rueda_text *why)
{
    const struct rueda_request *request = entry->first.said.request;

    if (entry->difference != 0) {
        rueda_compare_explain(&entry->first.said, &entry->other.said, why);
    } else if (entry->count < self->size && needs_all(request)) {
        rueda_text_set(why,
                       "%s is not supported with Join at this time (rank %d "
                       "has joined): ",
                       title_of(request), self->root.last_joined);
        why->chars[0] = (char)(why->chars[0] - 'a' + 'A');
        rueda_compare_title(request, why);
    } else if (lacks_rows(request)) {
        rueda_text_set(why,
                       "Rank %d tried to %s a rank-zero tensor; reshape it to "
                       "one of 1 row: ",
                       entry->first.said.rank,
                       rueda_kind_str((rueda_kind)request->kind));
        rueda_compare_title(request, why);
    }
}

/* ---- What is ready ------------------------------------------------------ */

static int priority_of(const struct rueda_entry *entry)
{
    return entry->first.said.request->priority;
}

static void enqueue(struct rueda_coordinator *root, struct rueda_entry *entry)
{
    struct rueda_entry **at = &root->ready;

    if (root->last_ready != NULL &&
        priority_of(root->last_ready) >= priority_of(entry))
        at = &root->last_ready->next_ready;
    while (*at != NULL && priority_of(*at) >= priority_of(entry))
        at = &(*at)->next_ready;
    entry->next_ready = *at;
    *at = entry;
    if (entry->next_ready == NULL)
        root->last_ready = entry;
}

/* The ready operations of a group, or NULL: there are none. */
static struct rueda_group *find_group(const struct rueda_coordinator *root,
                                      const struct rueda_request *request)
{
    struct rueda_label label = rueda_label_of(NULL, request->group);

    return (struct rueda_group *)rueda_labels_find(&root->groups, &label);
}

static struct rueda_group *get_group(struct rueda_coordinator *root,
                                     const struct rueda_request *request)
{
    struct rueda_group *group = find_group(root, request);

    if (group != NULL)
        return group;
    group = calloc(1, sizeof(*group));
    if (group == NULL)
        return NULL;
    group->label = rueda_label_of(NULL, request->group);
    group->want = request->group_count;
    if (rueda_labels_add(&root->groups, &group->label) != RUEDA_OK) {
        free(group);
        return NULL;
    }
    return group;
}

static void drop_group(struct rueda_coordinator *root,
                       struct rueda_group *group)
{
    rueda_labels_remove(&root->groups, &group->label);
    free(group);
}

/* All of the group are ready: queue them in the order in which they came. */
static void release(struct rueda_coordinator *root, struct rueda_group *group)
{
    struct rueda_entry *turned = NULL;

    while (group->held != NULL) {
        struct rueda_entry *entry = group->held;

        group->held = entry->next_ready;
        entry->next_ready = turned;
        turned = entry;
    }
    while (turned != NULL) {
        struct rueda_entry *entry = turned;

        turned = entry->next_ready;
        enqueue(root, entry);
    }
}

/* One more of a group is ready. */
static rueda_status add_to_group(struct rueda_coordinator *root,
                                 struct rueda_entry *entry)
{
    struct rueda_group *group = get_group(root, entry->first.said.request);

    if (group == NULL)
        return RUEDA_ERR_NOMEM;
    group->have++;
    entry->next_ready = group->held;
    group->held = entry;
    if (group->have < group->want)
        return RUEDA_OK;
    release(root, group);
    drop_group(root, group);
    return RUEDA_OK;
}

bool rueda_coordinator_release(struct rueda_negotiator *self,
                               struct rueda_entry *entry)
{
    struct rueda_coordinator *root = &self->root;
    const struct rueda_request *request = entry->first.said.request;
    struct rueda_group *group =
        request->group_count > 0 ? find_group(root, request) : NULL;
    struct rueda_entry **at;

    if (group == NULL)
        return false;
    at = &group->held;
    while (*at != NULL && *at != entry)
        at = &(*at)->next_ready;
    if (*at == NULL)
        return false;
    *at = entry->next_ready;
    if (--group->have == 0)
        drop_group(root, group);
    return true;
}

static rueda_status settle(struct rueda_negotiator *self,
                           struct rueda_entry *entry)
{
    struct rueda_text why;

    if (entry->mismatch != NULL && entry->mismatch->why != NULL)
        return rueda_coordinator_refuse(self, entry, entry->mismatch->why);
    why.chars[0] = '\0';
    judge(self, entry, &why);
    if (!rueda_text_is_empty(&why))
        return rueda_coordinator_refuse(self, entry, why.chars);
    if (entry->first.said.request->group_count > 0)
        return add_to_group(&self->root, entry);
    enqueue(&self->root, entry);
    return RUEDA_OK;
}

/* Nothing prevents it from running, and it waits for no other. */
static bool is_plain(const struct rueda_negotiator *self,
                     const struct rueda_entry *entry)
{
    const struct rueda_request *request = entry->first.said.request;

    return entry->mismatch == NULL && entry->difference == 0 &&
           entry->count == self->size && request->group_count == 0 &&
           !lacks_rows(request);
}

void rueda_coordinator_ready(struct rueda_negotiator *self,
                             struct rueda_entry *entry)
{
    struct rueda_coordinator *root = &self->root;

    /* What came before it stays before it. */
    if (root->complete == NULL && is_plain(self, entry)) {
        enqueue(root, entry);
        return;
    }
    entry->next_ready = NULL;
    if (root->complete == NULL)
        root->complete = entry;
    else
        root->last_complete->next_ready = entry;
    root->last_complete = entry;
}

/* ---- Batches ------------------------------------------------------------ */

/* May they run as one? */
static bool fit(const struct rueda_negotiator *self,
                const struct rueda_entry *first,
                const struct rueda_entry *entry)
{
    const struct rueda_request *a = first->first.said.request;
    const struct rueda_request *b = entry->first.said.request;

    return rueda_round_fits(a, b) && first->count == entry->count &&
           (!self->args.groups_alone || a->group == b->group);
}

/* Take the next batch off the ready list: its first entry, linked by
 * next_ready. Others may be passed over for those that fit, as long as what is
 * taken and passed over fits the slab together. */
static struct rueda_entry *take_batch(struct rueda_negotiator *self,
                                      int *out_count)
{
    struct rueda_coordinator *root = &self->root;
    struct rueda_entry *first = root->ready;
    struct rueda_entry *last = first;
    struct rueda_entry **at;
    struct rueda_entry *passed = NULL;
    size_t bytes = rueda_round_span(first->first.said.request, self->size);

    root->ready = first->next_ready;
    *out_count = 1;
    at = &root->ready;
    while (*at != NULL && rueda_round_may_share(first->first.said.request) &&
           *out_count < RUEDA_ITEMS_MOST) {
        struct rueda_entry *entry = *at;

        bytes += rueda_round_span(entry->first.said.request, self->size);
        if (bytes > self->args.fusion_bytes)
            break;
        if (!fit(self, first, entry)) {
            passed = entry;
            at = &entry->next_ready;
            continue;
        }
        *at = entry->next_ready;
        last->next_ready = entry;
        last = entry;
        (*out_count)++;
    }
    last->next_ready = NULL;
    if (*at == NULL)
        root->last_ready = passed;
    return first;
}

/* Retirements are entries of their own and come first, so items are written
 * aside. */
static rueda_status run(struct rueda_negotiator *self)
{
    struct rueda_out *log = &self->root.log;
    struct rueda_out items = {0};
    struct rueda_id_run ids = {0};
    rueda_status status = RUEDA_OK;
    int count;
    struct rueda_entry *entry = take_batch(self, &count);
    uint32_t live = (uint32_t)entry->count;

    for (; entry != NULL && status == RUEDA_OK; entry = entry->next_ready)
        status = rueda_ids_write(self, entry, &items, &ids);
    if (status == RUEDA_OK && items.has_failed)
        status = RUEDA_ERR_NOMEM;
    if (status == RUEDA_OK) {
        rueda_out_u8(log, RUEDA_DOWN_RUN);
        rueda_out_u32(log, live);
        rueda_out_u32(log, (uint32_t)count);
        rueda_out_bytes(log, items.bytes, items.len);
        self->root.running++;
        rueda_timeline_cycle(self->timeline);
        tell_children(self);
        /* They follow while I do, unless there is more to come. */
        if (self->root.ready == NULL)
            rueda_negotiator_send(self);
        status = follow(self);
    }
    rueda_out_fini(&items);
    return status;
}

/* The rest of their group does not come. */
static rueda_status refuse_held(struct rueda_negotiator *self,
                                struct rueda_entry *held, const char *words)
{
    rueda_status status = RUEDA_OK;

    while (held != NULL && status == RUEDA_OK) {
        struct rueda_entry *entry = held;

        held = entry->next_ready;
        status = rueda_coordinator_refuse(self, entry, words);
    }
    return status;
}

/* All members have joined: what waits for the rest of a group can never run.
 */
static rueda_status end_round(struct rueda_negotiator *self)
{
    struct rueda_coordinator *root = &self->root;
    rueda_status status = RUEDA_OK;
    struct rueda_label *label;
    size_t bucket = 0;

    while (status == RUEDA_OK &&
           (label = rueda_labels_pop(&root->groups, &bucket)) != NULL) {
        struct rueda_group *group = (struct rueda_group *)label;

        struct rueda_text why = {{0}};

        rueda_text_set(&why,
                       "all ranks have joined, and only %u of the %u tensors "
                       "of its group came",
                       group->have, group->want);
        status = refuse_held(self, group->held, why.chars);
        free(group);
    }
    if (status == RUEDA_OK)
        status = rueda_mismatch_end_round(self);
    if (status != RUEDA_OK)
        return status;
    rueda_out_u8(&root->log, RUEDA_DOWN_JOINED);
    rueda_out_u32(&root->log, (uint32_t)root->last_joined);
    return rueda_coordinator_append(self);
}

rueda_status rueda_coordinator_decide(struct rueda_negotiator *self)
{
    struct rueda_coordinator *root = &self->root;
    rueda_status status = RUEDA_IN_PROGRESS;

    if (self->now_ns >= root->call_ns)
        root->has_mismatch = true;
    while (root->complete != NULL || root->has_mismatch) {
        struct rueda_entry *entry = root->complete;

        if (root->has_mismatch) {
            status = rueda_mismatch_decide(self);
        } else {
            root->complete = entry->next_ready;
            status = settle(self, entry);
        }
        if (status != RUEDA_OK)
            return status;
    }
    while (root->ready != NULL && root->running < AHEAD) {
        status = run(self);
        if (status != RUEDA_OK)
            return status;
    }
    if (root->ready == NULL && self->joined == self->size)
        status = end_round(self);
    return status;
}
