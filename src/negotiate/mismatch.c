/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that can never become ready because another tensor of their group
 * failed.
 *
 * If one rank submits the group {a, b} and another {a, c}, only a becomes
 * ready, and it mismatches. b and c have to fail with it, and the coordinator
 * may not even have heard of them. A member that reads the error of a in the
 * log reports its b as mismatched. After a while the coordinator calls b: every
 * member that lacks b says so, as the others say that they have it. So b
 * becomes ready and fails like any other operation. All members have then said
 * something about b, so no message about it is in flight any more.
 *
 * A member that has said it lacks b, and is given one before the error comes,
 * keeps it until then. Each rank counts operations without a name for itself: a
 * rank that has not reached a number that failed will reach it, and reports it
 * as mismatched then.
 */
#include <stdlib.h>
#include <string.h>

#include "negotiate/state.h"

/* The record of an entry's mismatch, made if there is none; NULL without
 * memory.
 */
static struct rueda_mismatch *mismatch_of(struct rueda_entry *entry)
{
    if (entry->mismatch == NULL)
        entry->mismatch = calloc(1, sizeof(*entry->mismatch));
    return entry->mismatch;
}

/* ---- Giving up -------------------------------------------------------- */

static void tell_mismatch(struct rueda_negotiator *self,
                          const struct rueda_request *label, uint64_t applied,
                          const char *words)
{
    struct rueda_out *out = &rueda_up_talk(self)->out;

    rueda_out_u8(out, RUEDA_UP_MISMATCH);
    rueda_out_label(out, label->name, label->number);
    rueda_out_u64(out, applied);
    rueda_out_text(out, words);
}

/* On the coordinator, which calls or refuses it when it decides next. */
static rueda_status give_up(struct rueda_negotiator *self,
                            struct rueda_entry *entry, const char *words)
{
    struct rueda_mismatch *mismatch = mismatch_of(entry);

    if (mismatch == NULL)
        return RUEDA_ERR_NOMEM;
    if (mismatch->why != NULL)
        return RUEDA_OK;
    mismatch->why = strdup(words);
    if (mismatch->why == NULL)
        return RUEDA_ERR_NOMEM;
    mismatch->since_ns = self->now_ns;
    rueda_entry_begin(&self->entries, entry);
    self->root.has_mismatch = true;
    return RUEDA_OK;
}

static bool is_mine_in(const struct rueda_entry *entry, uint64_t group)
{
    return entry->mine != NULL && entry->my_request->group_count > 0 &&
           entry->my_request->group == group;
}

/* One of mine, which I have not reported yet. */
static rueda_status give_mine_up(struct rueda_negotiator *self,
                                 struct rueda_entry *entry, const char *words)
{
    if (rueda_is_coordinator(self))
        return give_up(self, entry, words);
    tell_mismatch(self, entry->my_request, self->applied, words);
    return RUEDA_OK;
}

/* The same, with all of its group. */
static rueda_status give_member_up(struct rueda_negotiator *self,
                                   struct rueda_entry *entry, const char *words)
{
    struct rueda_mismatch *mismatch = mismatch_of(entry);

    if (mismatch == NULL)
        return RUEDA_ERR_NOMEM;
    if (mismatch->is_told)
        return RUEDA_OK;
    mismatch->is_told = true;
    return give_mine_up(self, entry, words);
}

/* The same for an operation that I keep and have reported to no member. */
static rueda_status give_late_up(struct rueda_mismatch *mismatch,
                                 const char *words)
{
    mismatch->late_why = strdup(words);
    return mismatch->late_why != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

static bool is_late_in(const struct rueda_mismatch *mismatch, uint64_t group)
{
    return mismatch != NULL && mismatch->late != NULL &&
           mismatch->late_why == NULL &&
           mismatch->late_request->group_count > 0 &&
           mismatch->late_request->group == group;
}

/* All of a group are submitted before anything is followed, so those that have
 * not ended are in flight. */
rueda_status rueda_mismatch_group(struct rueda_negotiator *self, uint64_t group,
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
        else if (is_late_in(at->mismatch, group))
            status = give_late_up(at->mismatch, why.chars);
    return status;
}

rueda_status rueda_mismatch_submit_past(struct rueda_negotiator *self,
                                        struct rueda_entry *entry)
{
    struct rueda_text words = {{0}};

    rueda_text_set(&words, "other ranks had this in a group that failed: ");
    rueda_compare_title(entry->my_request, &words);
    return give_mine_up(self, entry, words.chars);
}

/* Has it been refused since its owner had read the log up to this index? The
 * latest refusals come last. */
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

/* Have I already reported this for the operation in flight? My children have
 * read no more of the log than I have, so they mean the same one, or one that
 * is over. */
static bool is_told(const struct rueda_negotiator *self,
                    const struct rueda_request *label)
{
    const struct rueda_entry *entry = rueda_entry_find(&self->entries, label);

    return entry != NULL && entry->mismatch != NULL && entry->mismatch->is_told;
}

rueda_status rueda_mismatch_hear(struct rueda_negotiator *self,
                                 struct rueda_in *in)
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
            tell_mismatch(self, &label, applied, words);
    } else if (!is_over(&self->root, &label, applied)) {
        entry = rueda_entry_get(&self->entries, &label);
        status = entry != NULL ? give_up(self, entry, words) : RUEDA_ERR_NOMEM;
    }
    free((char *)label.name);
    free(words);
    return status;
}

/* ---- The coordinator -------------------------------------------------- */

/* Not at once: a rank that submits the tensors of the group one by one may be
 * about to submit this one, and must get the error, too. */
static rueda_status call(struct rueda_negotiator *self,
                         const struct rueda_entry *entry)
{
    const int64_t due_ns = entry->mismatch->since_ns + self->args.call_after_ns;
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

rueda_status rueda_mismatch_decide(struct rueda_negotiator *self)
{
    struct rueda_entry *entry = self->entries.first;
    rueda_status status = RUEDA_OK;

    self->root.has_mismatch = false;
    self->root.call_ns = INT64_MAX;
    while (entry != NULL && status == RUEDA_OK) {
        struct rueda_entry *next = entry->next;

        if (entry->mismatch == NULL || entry->mismatch->why == NULL ||
            entry->mismatch->is_called) {
            entry = next;
            continue;
        }
        if (!entry->is_told)
            status = call(self, entry);
        else if (rueda_coordinator_release(self, entry))
            status =
                rueda_coordinator_refuse(self, entry, entry->mismatch->why);
        entry = next;
    }
    return status;
}

/* A joined member's group may run without it, with others of the same name, so
 * that what it gave up is over when the coordinator hears of it. */
rueda_status rueda_mismatch_end_round(struct rueda_negotiator *self)
{
    struct rueda_entry *entry = self->entries.first;
    rueda_status status = RUEDA_OK;

    while (entry != NULL && status == RUEDA_OK) {
        struct rueda_entry *next = entry->next;

        if (entry->mismatch != NULL && entry->mismatch->why != NULL)
            status =
                rueda_coordinator_refuse(self, entry, entry->mismatch->why);
        entry = next;
    }
    return status;
}

/* A refusal must not be taken for that of a later operation. Those whose error
 * all members know are forgotten: no member reports them as waiting any more.
 */
rueda_status rueda_mismatch_note_refusal(struct rueda_negotiator *self,
                                         uint64_t hash)
{
    const uint64_t known_to_all = rueda_negotiator_applied(self);
    struct rueda_coordinator *root = &self->root;
    struct rueda_refused *larger;
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
    larger[kept] = (struct rueda_refused){hash, self->applied};
    root->refusals = larger;
    root->refusal_count = kept + 1;
    return RUEDA_OK;
}

/* ---- The others ------------------------------------------------------- */

bool rueda_mismatch_is_called(const struct rueda_entry *entry)
{
    return entry->mismatch != NULL && entry->mismatch->is_called;
}

rueda_status rueda_mismatch_follow(struct rueda_negotiator *self,
                                   struct rueda_in *in)
{
    struct rueda_request label;
    struct rueda_entry *entry;

    rueda_in_label(in, &label);
    if (in->has_failed)
        return RUEDA_ERR_IO;
    entry = rueda_entry_get(&self->entries, &label);
    free((char *)label.name);
    if (entry == NULL || mismatch_of(entry) == NULL)
        return RUEDA_ERR_NOMEM;
    rueda_entry_begin(&self->entries, entry);
    entry->mismatch->is_called = true;
    if (entry->mine == NULL && self->my_join == NULL &&
        (entry->from & RUEDA_FROM_SELF) == 0) {
        entry->from |= RUEDA_FROM_SELF;
        entry->count++;
    }
    rueda_ready_check(self, entry);
    return RUEDA_OK;
}

/* This member has reported that it lacks the operation, and now submits it. */
rueda_status rueda_mismatch_submit(struct rueda_negotiator *self,
                                   struct rueda_entry *entry,
                                   const struct rueda_request *request,
                                   void *mine)
{
    if (entry->mismatch->late != NULL)
        return RUEDA_ERR_INVALID;
    self->undecided++;
    if (request->name == NULL) {
        entry->mine = mine;
        entry->my_request = request;
    } else {
        entry->mismatch->late = mine;
        entry->mismatch->late_request = request;
    }
    return RUEDA_OK;
}

/* Not if I have joined since, for the others do not wait for me then. */
rueda_status rueda_mismatch_submit_late(struct rueda_negotiator *self,
                                        const struct rueda_mismatch *mismatch,
                                        const char *words)
{
    const struct rueda_request *request = mismatch->late_request;
    struct rueda_entry *entry;

    if (self->my_join != NULL)
        return rueda_negotiator_log_fail(self, mismatch->late, request, words);
    entry = rueda_entry_get(&self->entries, request);
    if (entry == NULL)
        return RUEDA_ERR_NOMEM;
    rueda_negotiator_enter(self, entry, request, mismatch->late);
    return mismatch->late_why != NULL
               ? give_member_up(self, entry, mismatch->late_why)
               : RUEDA_OK;
}

/* The index of a number among those that failed before this member reached
 * them, or -1. */
static int find_past(const struct rueda_negotiator *self, uint64_t number)
{
    int i = self->past_count - 1;

    while (i >= 0 && self->past[i] != number)
        i--;
    return i;
}

/* Several ranks may have this number called, so it may be known already. */
rueda_status rueda_mismatch_note_number(struct rueda_negotiator *self,
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

bool rueda_mismatch_is_past(struct rueda_negotiator *self, uint64_t number)
{
    const int i = find_past(self, number);

    if (i < 0)
        return false;
    self->past[i] = self->past[--self->past_count];
    return true;
}

void rueda_mismatch_free(struct rueda_mismatch *mismatch)
{
    if (mismatch == NULL)
        return;
    free(mismatch->why);
    free(mismatch->late_why);
    free(mismatch);
}
