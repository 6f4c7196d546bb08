/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of entries, by label, and the life of an entry. It is made by the
 * first member that reports an operation, and is in flight until the operation
 * is decided. Then it is freed, unless it has an id: it is kept for the next
 * step, which then costs a number in place of a request.
 */
#include "negotiate/entry.h"

#include <stdlib.h>
#include <string.h>

static void release(struct rueda_voice *voice)
{
    if (voice->copy != NULL) {
        free((char *)voice->copy->name);
        free(voice->copy);
    }
    memset(voice, 0, sizeof(*voice));
}

void rueda_absent_free(struct rueda_entry *entry)
{
    while (entry->absent != NULL) {
        struct rueda_absent *absent = entry->absent;

        entry->absent = absent->next;
        free(absent);
    }
}

/* Forget what it was while it was in flight. */
static void clear(struct rueda_entry *entry)
{
    release(&entry->first);
    if (entry->difference != 0)
        release(&entry->other);
    rueda_absent_free(entry);
    if (entry->mismatch != NULL) {
        rueda_mismatch_free(entry->mismatch);
        entry->mismatch = NULL;
    }
    entry->is_pending = false;
    entry->is_told = false;
    entry->mine = NULL;
    entry->my_request = NULL;
    entry->from = 0;
    entry->count = 0;
    entry->difference = 0;
}

static void put_aside(struct rueda_entries *entries, struct rueda_entry *entry)
{
    free((char *)entry->label.name);
    entry->next = entries->spare;
    entries->spare = entry;
}

static void dispose(struct rueda_entries *entries, struct rueda_entry *entry)
{
    rueda_labels_remove(&entries->labels, &entry->label);
    put_aside(entries, entry);
}

void rueda_entries_fini(struct rueda_entries *entries)
{
    struct rueda_label *label;
    size_t bucket = 0;

    while ((label = rueda_labels_pop(&entries->labels, &bucket)) != NULL) {
        struct rueda_entry *entry = (struct rueda_entry *)label;

        clear(entry);
        put_aside(entries, entry);
    }
    while (entries->spare != NULL) {
        struct rueda_entry *entry = entries->spare;

        entries->spare = entry->next;
        free(entry);
    }
    rueda_labels_fini(&entries->labels);
}

struct rueda_entry *rueda_entry_find(const struct rueda_entries *entries,
                                     const struct rueda_request *request)
{
    struct rueda_label label = rueda_label_for(request);

    return (struct rueda_entry *)rueda_labels_find(&entries->labels, &label);
}

static struct rueda_entry *make(struct rueda_entries *entries,
                                const struct rueda_label *label)
{
    struct rueda_entry *entry = entries->spare;
    char *name = NULL;

    if (label->name != NULL && (name = strdup(label->name)) == NULL)
        return NULL;
    if (entry != NULL)
        entries->spare = entry->next;
    else
        entry = aligned_alloc(_Alignof(struct rueda_entry), sizeof(*entry));
    if (entry == NULL) {
        free(name);
        return NULL;
    }
    memset(entry, 0, sizeof(*entry));
    entry->label = *label;
    entry->label.name = name;
    entry->id = -1;
    if (rueda_labels_add(&entries->labels, &entry->label) != RUEDA_OK) {
        put_aside(entries, entry);
        return NULL;
    }
    return entry;
}

struct rueda_entry *rueda_entry_get(struct rueda_entries *entries,
                                    const struct rueda_request *request)
{
    struct rueda_label label = rueda_label_for(request);
    struct rueda_label *found = rueda_labels_find(&entries->labels, &label);

    return found != NULL ? (struct rueda_entry *)found : make(entries, &label);
}

void rueda_entry_weigh(struct rueda_entry *entry, const struct rueda_said *said,
                       struct rueda_request *copy)
{
    struct rueda_voice voice = {*said, copy};
    int difference = rueda_compare(entry->first.said.request, said->request);

    if (difference != 0 &&
        (entry->difference == 0 || difference < entry->difference)) {
        release(&entry->other);
        entry->other = voice;
        entry->difference = difference;
        return;
    }
    release(&voice);
}

void rueda_entry_end(struct rueda_entries *entries, struct rueda_entry *entry)
{
    if (entry->is_pending) {
        if (entry->prev != NULL)
            entry->prev->next = entry->next;
        else
            entries->first = entry->next;
        if (entry->next != NULL)
            entry->next->prev = entry->prev;
        else
            entries->last = entry->prev;
        clear(entry);
    }
    if (entry->id < 0)
        dispose(entries, entry);
}

void rueda_entry_drop_id(struct rueda_entries *entries,
                         struct rueda_entry *entry)
{
    entry->id = -1;
    entry->is_live = false;
    if (!entry->is_pending)
        dispose(entries, entry);
}

void rueda_entry_agree(struct rueda_entry *entry,
                       const struct rueda_request *request, int id)
{
    entry->agreed = *request;
    entry->agreed.name = entry->label.name;
    entry->id = id;
    entry->is_live = true;
}
