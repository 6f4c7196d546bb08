/* SPDX-License-Identifier: Apache-2.0 */
/* Following the log: every member reads the same entries in the same order and
 * derives the same decisions from them. */
#include <stdlib.h>
#include <string.h>

#include "negotiate/state.h"

void rueda_decided_free(struct rueda_decided *decided)
{
    free(decided->decision.items);
    free(decided->copies);
    free(decided->words);
    free(decided);
}

/* A decision with room for this many items, at the end of the queue once it is
 * appended; NULL without memory. */
static struct rueda_decided *new_decided(struct rueda_negotiator *self,
                                         rueda_decision_kind kind, int room)
{
    struct rueda_decided *decided = self->spare;

    if (decided != NULL)
        self->spare = decided->next;
    else
        decided = calloc(1, sizeof(*decided));
    if (decided == NULL)
        return NULL;
    if (decided->room < room) {
        struct rueda_decision_item *items =
            realloc(decided->decision.items, (size_t)room * sizeof(*items));

        if (items == NULL) {
            rueda_decided_free(decided);
            return NULL;
        }
        decided->decision.items = items;
        decided->room = room;
    }
    decided->next = NULL;
    decided->decision.kind = kind;
    decided->decision.index = self->applied;
    decided->decision.live = self->size;
    decided->decision.last_rank = -1;
    decided->decision.words = NULL;
    decided->decision.count = 0;
    return decided;
}

static void append(struct rueda_negotiator *self, struct rueda_decided *decided)
{
    if (self->last != NULL)
        self->last->next = decided;
    else
        self->first = decided;
    self->last = decided;
}

static void put_back(struct rueda_negotiator *self,
                     struct rueda_decided *decided)
{
    decided->next = self->spare;
    self->spare = decided;
}

/* ---- Running ------------------------------------------------------------ */

/* Whether it is mine or not, all members count it. */
static void note_number(struct rueda_negotiator *self,
                        const struct rueda_request *request)
{
    if (request->name == NULL && self->number <= request->number)
        self->number = request->number + 1;
}

/* This member has joined and takes part without having the operation: with a
 * copy of the request, because the entry may be gone when it runs. */
static rueda_status add_foreign(struct rueda_negotiator *self,
                                struct rueda_decided *decided, int count,
                                const struct rueda_request *request)
{
    struct rueda_decision *decision = &decided->decision;
    struct rueda_request *copy;

    if (self->my_join == NULL)
        return RUEDA_ERR_IO;
    if (decided->copies == NULL)
        decided->copies = malloc((size_t)count * sizeof(*decided->copies));
    if (decided->copies == NULL)
        return RUEDA_ERR_NOMEM;
    copy = &decided->copies[decision->count];
    *copy = *request;
    copy->name = NULL;
    decision->items[decision->count++] =
        (struct rueda_decision_item){NULL, copy};
    return RUEDA_OK;
}

static void note_run(struct rueda_negotiator *self,
                     const struct rueda_request *request)
{
    if (self->timeline == NULL)
        return;
    rueda_timeline_end(self->timeline, request->name);
    rueda_timeline_begin(
        self->timeline, request->name,
        rueda_timeline_operation(request->kind, request->reduction));
    rueda_timeline_begin(self->timeline, request->name, RUEDA_TIMELINE_QUEUE);
}

/* Add an entry to a batch; it is then no longer in flight. */
static rueda_status add_item(struct rueda_negotiator *self,
                             struct rueda_decided *decided, int count,
                             struct rueda_entry *entry,
                             const struct rueda_request *request)
{
    struct rueda_decision *decision = &decided->decision;

    note_number(self, request);
    if (entry == NULL || entry->mine == NULL) {
        rueda_status status = add_foreign(self, decided, count, request);

        if (status != RUEDA_OK)
            return status;
    } else {
        decision->items[decision->count++] =
            (struct rueda_decision_item){entry->mine, entry->my_request};
        self->undecided--;
        note_run(self, entry->my_request);
    }
    if (entry != NULL)
        rueda_entry_end(&self->entries, entry);
    return RUEDA_OK;
}

static rueda_status follow_ids(struct rueda_negotiator *self,
                               struct rueda_in *in,
                               struct rueda_decided *decided, int count)
{
    const uint32_t first = rueda_in_u32(in);
    const uint32_t ids = rueda_in_u32(in);
    rueda_status status = RUEDA_OK;

    if (ids == 0 || ids > (uint32_t)(count - decided->decision.count))
        return RUEDA_ERR_IO;
    for (uint32_t i = 0; i < ids && status == RUEDA_OK; i++) {
        const uint32_t id = first + i;
        struct rueda_entry *entry =
            id < (uint32_t)self->id_count ? self->ids[id] : NULL;

        status = entry != NULL
                     ? add_item(self, decided, count, entry, &entry->agreed)
                     : RUEDA_ERR_IO;
    }
    return status;
}

/* From now on the id stands for this. */
static rueda_status give_id(struct rueda_negotiator *self,
                            struct rueda_entry *entry, uint32_t id,
                            const struct rueda_request *request)
{
    struct rueda_entry *before = self->ids[id];

    if (before != NULL && before->is_live)
        return RUEDA_ERR_IO;
    if (entry->id >= 0)
        self->ids[entry->id] = NULL;
    if (before != NULL && before != entry)
        rueda_entry_drop_id(&self->entries, before);
    self->ids[id] = entry;
    rueda_entry_agree(entry, request, (int)id);
    return RUEDA_OK;
}

/* An item with its request in full, and perhaps an id for it. */
static rueda_status follow_request(struct rueda_negotiator *self,
                                   struct rueda_in *in, bool has_id,
                                   struct rueda_decided *decided, int count)
{
    uint32_t id = has_id ? rueda_in_u32(in) : 0;
    rueda_status status = RUEDA_OK;
    struct rueda_request request;
    struct rueda_entry *entry;

    if (has_id && id >= (uint32_t)self->id_count)
        return RUEDA_ERR_IO;
    rueda_in_request(in, &request);
    if (in->has_failed)
        return RUEDA_ERR_IO;
    entry = has_id ? rueda_entry_get(&self->entries, &request)
                   : rueda_entry_find(&self->entries, &request);
    if (has_id)
        status = entry != NULL ? give_id(self, entry, id, &request)
                               : RUEDA_ERR_NOMEM;
    if (status == RUEDA_OK)
        status = add_item(self, decided, count, entry, &request);
    free((char *)request.name);
    return status;
}

static rueda_status follow_item(struct rueda_negotiator *self,
                                struct rueda_in *in,
                                struct rueda_decided *decided, int count)
{
    switch (rueda_in_u8(in)) {
    case RUEDA_ITEM_ID:
        return follow_ids(self, in, decided, count);
    case RUEDA_ITEM_NEW:
        return follow_request(self, in, true, decided, count);
    case RUEDA_ITEM_PLAIN:
        return follow_request(self, in, false, decided, count);
    default:
        return RUEDA_ERR_IO;
    }
}

static rueda_status follow_run(struct rueda_negotiator *self,
                               struct rueda_in *in)
{
    uint32_t live = rueda_in_u32(in);
    uint32_t count = rueda_in_u32(in);
    struct rueda_decided *decided;
    rueda_status status = RUEDA_OK;

    if (live == 0 || live > (uint32_t)self->size || count == 0 ||
        count > RUEDA_ITEMS_MOST)
        return RUEDA_ERR_IO;
    decided = new_decided(self, RUEDA_DECIDED_RUN, (int)count);
    if (decided == NULL)
        return RUEDA_ERR_NOMEM;
    decided->decision.live = (int)live;
    while (decided->decision.count < (int)count && status == RUEDA_OK)
        status = follow_item(self, in, decided, (int)count);
    if (status == RUEDA_OK)
        append(self, decided);
    else
        put_back(self, decided);
    return status;
}

/* ---- The others --------------------------------------------------------- */

rueda_status rueda_negotiator_log_fail(struct rueda_negotiator *self,
                                       void *mine,
                                       const struct rueda_request *request,
                                       const char *words)
{
    struct rueda_decided *decided = new_decided(self, RUEDA_DECIDED_ERROR, 1);

    if (decided == NULL)
        return RUEDA_ERR_NOMEM;
    decided->words = strdup(words);
    if (decided->words == NULL) {
        put_back(self, decided);
        return RUEDA_ERR_NOMEM;
    }
    decided->decision.words = decided->words;
    decided->decision.items[0] = (struct rueda_decision_item){mine, request};
    decided->decision.count = 1;
    if (mine != NULL)
        self->undecided--;
    append(self, decided);
    return RUEDA_OK;
}

/* An error of an operation in flight here: the others of its group fail, too.
 */
static rueda_status end_by_error(struct rueda_negotiator *self,
                                 struct rueda_entry *entry, const char *words)
{
    struct rueda_mismatch *mismatch = entry->mismatch;
    uint32_t group_count = 0;
    uint64_t group = 0;
    rueda_status status = RUEDA_OK;

    if (entry->mine != NULL) {
        group = entry->my_request->group;
        group_count = entry->my_request->group_count;
        rueda_timeline_end(self->timeline, entry->label.name);
    } else if (entry->label.name == NULL &&
               (entry->from & RUEDA_FROM_SELF) != 0) {
        status = rueda_mismatch_note_number(self, entry->label.number);
    }
    if (status == RUEDA_OK)
        status = rueda_negotiator_log_fail(self, entry->mine, entry->my_request,
                                           words);
    entry->mismatch = NULL;
    rueda_entry_end(&self->entries, entry);
    /* If I reported this one, I have reported the whole group. */
    if (status == RUEDA_OK && group_count > 0 &&
        (mismatch == NULL || !mismatch->is_told))
        status = rueda_mismatch_group(self, group, words);
    if (status == RUEDA_OK && mismatch != NULL && mismatch->late != NULL)
        status = rueda_mismatch_submit_late(self, mismatch, words);
    rueda_mismatch_free(mismatch);
    return status;
}

static rueda_status follow_error(struct rueda_negotiator *self,
                                 struct rueda_in *in)
{
    rueda_status status = RUEDA_ERR_IO;
    struct rueda_request label;
    struct rueda_entry *entry;
    char *words;

    rueda_in_label(in, &label);
    words = rueda_in_text(in);
    if (!in->has_failed) {
        entry = rueda_entry_find(&self->entries, &label);
        note_number(self, &label);
        /* Members that joined, and never submitted it, advance too. */
        status = entry != NULL && entry->is_pending
                     ? end_by_error(self, entry, words)
                     : rueda_negotiator_log_fail(self, NULL, NULL, words);
    }
    free((char *)label.name);
    free(words);
    return status;
}

/* All have joined: from here on none has. */
static rueda_status follow_joined(struct rueda_negotiator *self,
                                  struct rueda_in *in)
{
    int last_rank = (int)rueda_in_u32(in);
    struct rueda_decided *decided;

    if (self->my_join == NULL)
        return RUEDA_ERR_IO;
    decided = new_decided(self, RUEDA_DECIDED_JOINED, 1);
    if (decided == NULL)
        return RUEDA_ERR_NOMEM;
    decided->decision.last_rank = last_rank;
    decided->decision.number = self->number;
    decided->decision.items[0] =
        (struct rueda_decision_item){self->my_join, NULL};
    decided->decision.count = 1;
    self->undecided--;
    append(self, decided);
    self->my_join = NULL;
    self->joined = 0;
    self->settled = 0;
    memset(self->child_joined, 0, sizeof(self->child_joined));
    memset(self->is_joined, 0, (size_t)self->size * sizeof(bool));
    self->past_count = 0; /* all count on from the same number */
    return RUEDA_OK;
}

static rueda_status follow_retire(struct rueda_negotiator *self,
                                  struct rueda_in *in)
{
    uint32_t id = rueda_in_u32(in);

    if (id >= (uint32_t)self->id_count || self->ids[id] == NULL)
        return RUEDA_ERR_IO;
    self->ids[id]->is_live = false;
    return RUEDA_OK;
}

rueda_status rueda_negotiator_log_follow(struct rueda_negotiator *self,
                                         struct rueda_in *in)
{
    rueda_status status = RUEDA_OK;

    while (in->at < in->end && status == RUEDA_OK) {
        self->applied++;
        switch (rueda_in_u8(in)) {
        case RUEDA_DOWN_RUN:
            status = follow_run(self, in);
            break;
        case RUEDA_DOWN_ERROR:
            status = follow_error(self, in);
            break;
        case RUEDA_DOWN_JOINED:
            status = follow_joined(self, in);
            break;
        case RUEDA_DOWN_RETIRE:
            status = follow_retire(self, in);
            break;
        case RUEDA_DOWN_CALL:
            status = rueda_mismatch_follow(self, in);
            break;
        case RUEDA_DOWN_WORD:
            status = rueda_word_follow(self, in);
            break;
        case RUEDA_DOWN_ASK:
            status = rueda_still_follow_ask(self, in);
            break;
        case RUEDA_DOWN_STANDSTILL:
            status = rueda_still_follow_standstill(self, in);
            break;
        default:
            status = RUEDA_ERR_IO;
        }
        if (in->has_failed)
            status = RUEDA_ERR_IO;
    }
    return status;
}
