/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that wait in vain.
 *
 * Of a group {a, b} here and {a, c} there only a is ever ready, and differs.
 * With it b and c have failed, of which the coordinator may not even have
 * heard. Who follows the error of a says that its b waits in vain, and after a
 * while the coordinator calls b: every member that has not got it says so, as
 * others say that they have. So b is ready, and fails as everything else does;
 * and as all have said something of it, nothing about it is on its way any more
 * then.
 *
 * Who has said that it has no b, and gets one before the error comes, keeps it
 * until then. Operations without a name are counted by each rank for itself, so
 * who has not come to a number that has failed will, and says then that this
 * one waits in vain.
 */
#include <stdlib.h>
#include <string.h>

#include "negotiate/state.h"

/* What is remembered of an entry in such a case, NULL without memory. */
static struct rueda_vain *vain_of(struct rueda_entry *entry)
{
    if (entry->vain == NULL)
        entry->vain = calloc(1, sizeof(*entry->vain));
    return entry->vain;
}

/* ---- Giving up ------------------------------------------------------------
 */

static void tell_vain(struct rueda_negotiator *self,
                      const struct rueda_request *label, uint64_t applied,
                      const char *words)
{
    struct rueda_out *out = &rueda_up_talk(self)->out;

    rueda_out_u8(out, RUEDA_UP_VAIN);
    rueda_out_label(out, label->name, label->number);
    rueda_out_u64(out, applied);
    rueda_out_text(out, words);
}

/* By the coordinator, which calls it, or refuses it, when it decides next. */
static rueda_status give_up(struct rueda_negotiator *self,
                            struct rueda_entry *entry, const char *words)
{
    struct rueda_vain *vain = vain_of(entry);

    if (vain == NULL)
        return RUEDA_ERR_NOMEM;
    if (vain->why != NULL)
        return RUEDA_OK;
    vain->why = strdup(words);
    if (vain->why == NULL)
        return RUEDA_ERR_NOMEM;
    vain->since_ns = self->now_ns;
    rueda_entry_begin(&self->entries, entry);
    self->root.has_vain = true;
    return RUEDA_OK;
}

static bool is_mine_in(const struct rueda_entry *entry, uint64_t group)
{
    return entry->mine != NULL && entry->my_request->group_count > 0 &&
           entry->my_request->group == group;
}

/* One of mine, which I have not said this of. */
static rueda_status give_mine_up(struct rueda_negotiator *self,
                                 struct rueda_entry *entry, const char *words)
{
    if (rueda_is_coordinator(self))
        return give_up(self, entry, words);
    tell_vain(self, entry->my_request, self->applied, words);
    return RUEDA_OK;
}

/* The same, with all of its group. */
static rueda_status give_member_up(struct rueda_negotiator *self,
                                   struct rueda_entry *entry, const char *words)
{
    struct rueda_vain *vain = vain_of(entry);

    if (vain == NULL)
        return RUEDA_ERR_NOMEM;
    if (vain->is_told)
        return RUEDA_OK;
    vain->is_told = true;
    return give_mine_up(self, entry, words);
}

/* The same of one that I keep, which nobody knows of. */
static rueda_status give_late_up(struct rueda_vain *vain, const char *words)
{
    vain->late_why = strdup(words);
    return vain->late_why != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

static bool is_late_in(const struct rueda_vain *vain, uint64_t group)
{
    return vain != NULL && vain->late != NULL && vain->late_why == NULL &&
           vain->late_request->group_count > 0 &&
           vain->late_request->group == group;
}

/* All of a group are submitted before anything is followed, so those that have
 * not ended are under way. */
rueda_status rueda_vain_group(struct rueda_negotiator *self, uint64_t group,
                              const char *words)
{
    static const char begin[] = "another tensor of its group failed: ";
    struct rueda_text why = {{0}};
    rueda_status status = RUEDA_OK;

    rueda_text_set(&why, "%s%s",
                   strncmp(words, begin, sizeof(begin) - 1) == 0 ? "" : begin,
                   words);
    for (struct rueda_entry *at = self->entries.first;
         at != NULL && status == RUEDA_OK; at = at->next)
        if (is_mine_in(at, group))
            status = give_member_up(self, at, why.chars);
        else if (is_late_in(at->vain, group))
            status = give_late_up(at->vain, why.chars);
    return status;
}

rueda_status rueda_vain_submit_past(struct rueda_negotiator *self,
                                    struct rueda_entry *entry)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "other ranks had this in a group that failed: ");
    rueda_request_title(entry->my_request, &words);
    return give_mine_up(self, entry, words.chars);
}

/* Has it been refused since its owner knew so much of the log? The latest come
 * last. */
static bool is_over(const struct rueda_coordinator *root,
                    const struct rueda_request *label, uint64_t applied)
{
    const uint64_t hash = rueda_label_for(label).hash;

    for (int i = root->refusal_count - 1;
         i >= 0 && root->refusals[i].index > applied; i--)
        if (root->refusals[i].hash == hash)
            return true;
    return false;
}

/* Have I said so myself of what is under way? Who is below me knows no more of
 * the log than I do, so it means the same one, or one that is over. */
static bool is_told(const struct rueda_negotiator *self,
                    const struct rueda_request *label)
{
    const struct rueda_entry *entry = rueda_entry_find(&self->entries, label);

    return entry != NULL && entry->vain != NULL && entry->vain->is_told;
}

rueda_status rueda_vain_hear(struct rueda_negotiator *self, struct rueda_in *in)
{
    rueda_status status = RUEDA_OK;
    struct rueda_entry *entry;
    struct rueda_request label;
    uint64_t applied;
    char *words;

    rueda_in_label(in, &label);
    applied = rueda_in_u64(in);
    words = rueda_in_text(in);
    if (in->has_failed || applied > self->applied) {
        status = RUEDA_ERR_IO;
    } else if (!rueda_is_coordinator(self)) {
        if (!is_told(self, &label))
            tell_vain(self, &label, applied, words);
    } else if (!is_over(&self->root, &label, applied)) {
        entry = rueda_entry_get(&self->entries, &label);
        status = entry != NULL ? give_up(self, entry, words) : RUEDA_ERR_NOMEM;
    }
    free((char *)label.name);
    free(words);
    return status;
}

/* ---- The coordinator -------------------------------------------------------
 */

/* Not at once: who has tensors one by one that others have in a group may be
 * about to submit it, and is to hear the error, too. */
static rueda_status call(struct rueda_negotiator *self,
                         const struct rueda_entry *entry)
{
    const int64_t due_ns = entry->vain->since_ns + self->args.call_after_ns;
    struct rueda_coordinator *root = &self->root;
    struct rueda_out *log = &root->log;

    if (self->now_ns < due_ns) {
        if (due_ns < root->call_ns)
            root->call_ns = due_ns;
        return RUEDA_OK;
    }
    rueda_out_u8(log, RUEDA_DOWN_CALL);
    rueda_out_label(log, entry->label.name, entry->label.number);
    return rueda_coordinator_append(self);
}

rueda_status rueda_vain_decide(struct rueda_negotiator *self)
{
    struct rueda_entry *entry = self->entries.first;
    rueda_status status = RUEDA_OK;

    self->root.has_vain = false;
    self->root.call_ns = INT64_MAX;
    while (entry != NULL && status == RUEDA_OK) {
        struct rueda_entry *next = entry->next;

        if (entry->vain == NULL || entry->vain->why == NULL ||
            entry->vain->is_called) {
            entry = next;
            continue;
        }
        if (!entry->is_told)
            status = call(self, entry);
        else if (rueda_coordinator_release(self, entry))
            status = rueda_coordinator_refuse(self, entry, entry->vain->why);
        entry = next;
    }
    return status;
}

/* A joined member's group may run without it, with others of the same name, so
 * that what it gave up is over when the coordinator hears of it. */
rueda_status rueda_vain_end_round(struct rueda_negotiator *self)
{
    struct rueda_entry *entry = self->entries.first;
    rueda_status status = RUEDA_OK;

    while (entry != NULL && status == RUEDA_OK) {
        struct rueda_entry *next = entry->next;

        if (entry->vain != NULL && entry->vain->why != NULL)
            status = rueda_coordinator_refuse(self, entry, entry->vain->why);
        entry = next;
    }
    return status;
}

/* It must not be taken for one that came later. Those whose error all know are
 * forgotten: nobody says of them any more that they wait. */
rueda_status rueda_vain_note_refusal(struct rueda_negotiator *self,
                                     uint64_t hash)
{
    const uint64_t known_to_all = rueda_negotiator_applied(self);
    struct rueda_coordinator *root = &self->root;
    struct rueda_refusal *larger;
    int known = 0;
    int kept;

    while (known < root->refusal_count &&
           root->refusals[known].index <= known_to_all)
        known++;
    kept = root->refusal_count - known;
    if (known > 0)
        memmove(root->refusals, root->refusals + known,
                (size_t)kept * sizeof(*larger));
    larger = realloc(root->refusals, (size_t)(kept + 1) * sizeof(*larger));
    if (larger == NULL)
        return RUEDA_ERR_NOMEM;
    larger[kept] = (struct rueda_refusal){hash, self->applied};
    root->refusals = larger;
    root->refusal_count = kept + 1;
    return RUEDA_OK;
}

/* ---- The others -------------------------------------------------------------
 */

bool rueda_vain_is_called(const struct rueda_entry *entry)
{
    return entry->vain != NULL && entry->vain->is_called;
}

rueda_status rueda_vain_follow(struct rueda_negotiator *self,
                               struct rueda_in *in)
{
    struct rueda_request label;
    struct rueda_entry *entry;

    rueda_in_label(in, &label);
    if (in->has_failed)
        return RUEDA_ERR_IO;
    entry = rueda_entry_get(&self->entries, &label);
    free((char *)label.name);
    if (entry == NULL || vain_of(entry) == NULL)
        return RUEDA_ERR_NOMEM;
    rueda_entry_begin(&self->entries, entry);
    entry->vain->is_called = true;
    if (entry->mine == NULL && self->my_join == NULL &&
        (entry->from & RUEDA_FROM_SELF) == 0) {
        entry->from |= RUEDA_FROM_SELF;
        entry->count++;
    }
    rueda_ready_check(self, entry);
    return RUEDA_OK;
}

/* I have said that I have not got it. */
rueda_status rueda_vain_submit(struct rueda_negotiator *self,
                               struct rueda_entry *entry,
                               const struct rueda_request *request, void *mine)
{
    if (entry->vain->late != NULL)
        return RUEDA_ERR_INVALID;
    self->undecided++;
    if (request->name == NULL) {
        entry->mine = mine;
        entry->my_request = request;
    } else {
        entry->vain->late = mine;
        entry->vain->late_request = request;
    }
    return RUEDA_OK;
}

/* Not if I have joined since, for the others do not wait for me then. */
rueda_status rueda_vain_submit_late(struct rueda_negotiator *self,
                                    const struct rueda_vain *vain,
                                    const char *words)
{
    const struct rueda_request *request = vain->late_request;
    struct rueda_entry *entry;

    if (self->my_join != NULL)
        return rueda_log_fail(self, vain->late, request, words);
    entry = rueda_entry_get(&self->entries, request);
    if (entry == NULL)
        return RUEDA_ERR_NOMEM;
    rueda_negotiator_enter(self, entry, request, vain->late);
    return vain->late_why != NULL ? give_member_up(self, entry, vain->late_why)
                                  : RUEDA_OK;
}

/* Where it is among those that have failed before I came to them, or -1. */
static int find_past(const struct rueda_negotiator *self, uint64_t number)
{
    int i = self->past_count - 1;

    while (i >= 0 && self->past[i] != number)
        i--;
    return i;
}

/* Each rank that comes to it has it called, so it may be known. */
rueda_status rueda_vain_note_number(struct rueda_negotiator *self,
                                    uint64_t number)
{
    const size_t bytes = (size_t)(self->past_count + 1) * sizeof(uint64_t);
    uint64_t *larger;

    if (find_past(self, number) >= 0)
        return RUEDA_OK;
    larger = realloc(self->past, bytes);
    if (larger == NULL)
        return RUEDA_ERR_NOMEM;
    larger[self->past_count++] = number;
    self->past = larger;
    return RUEDA_OK;
}

bool rueda_vain_is_past(struct rueda_negotiator *self, uint64_t number)
{
    const int i = find_past(self, number);

    if (i < 0)
        return false;
    self->past[i] = self->past[--self->past_count];
    return true;
}

void rueda_vain_free(struct rueda_vain *vain)
{
    if (vain == NULL)
        return;
    free(vain->why);
    free(vain->late_why);
    free(vain);
}
