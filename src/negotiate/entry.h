/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a member knows of one operation: which members below it have it, and
 * whether their requests agree. An entry with an id outlives its operation, and
 * is used again when the name comes again.
 */
#ifndef RUEDA_NEGOTIATE_ENTRY_H
#define RUEDA_NEGOTIATE_ENTRY_H

#include "negotiate/compare.h"
#include "negotiate/labels.h"

/* Bit i: child i of the tree; this one: myself. */
#define RUEDA_FROM_SELF ((uint64_t)1 << 63)

/* A rank's request, perhaps in a copy of our own. */
struct rueda_voice {
    struct rueda_said said;     /* request is NULL: no member has it */
    struct rueda_request *copy; /* or NULL: it lives elsewhere */
};

/* Members that do not have it, as a child reports. */
struct rueda_absent {
    struct rueda_absent *next;
    int child;
    int kind; /* of the operation, or -1 */
    int count;
    int ranks[];
};

/* Of one that can never become ready (mismatch.c). */
struct rueda_mismatch {
    bool is_told;     /* mine, and reported with all of its group */
    bool is_called;   /* all members report on it, so that it can fail */
    char *why;        /* the coordinator's: with these words, or NULL, */
    int64_t since_ns; /* and when it heard so */
    void *late;       /* mine, submitted after I reported that I lack it */
    const struct rueda_request *late_request;
    char *late_why; /* its group has failed with these words, or NULL */
};

/* What a step that repeats looks at comes first, and lies together. The name of
 * its label is the entry's own. */
struct rueda_entry {
    _Alignas(RUEDA_CACHE_LINE) struct rueda_label label;
    struct rueda_entry *prev; /* among those in flight, by arrival */
    struct rueda_entry *next;
    int id; /* -1: none */
    bool is_live;

    /* While it is in flight: */
    bool is_pending;
    bool is_warned; /* of its stall (stall.c) */
    bool is_told;   /* to my parent; the coordinator's: it is ready */
    int count;      /* members below and with me that have it */
    int difference; /* by the check of this number; 0: all are equal */
    uint64_t from;
    void *mine;
    const struct rueda_request *my_request;
    struct rueda_voice first;
    struct rueda_entry *next_ready; /* in a list of the coordinator's */
    struct rueda_absent *absent;
    struct rueda_mismatch *mismatch; /* or NULL */
    int64_t since_ns; /* when it was first looked at, or -1 (stall.c) */

    struct rueda_entry *after; /* came after it the last time, or NULL; perhaps
                                  it is spare by now, but never freed */

    /* What all agreed upon when it ran last, and for which the number of the
     * id stands, as long as that is live. */
    struct rueda_request agreed;

    struct rueda_voice other; /* differs from the first */

    struct rueda_entry *older; /* the coordinator's: by last use */
    struct rueda_entry *newer;
};

struct rueda_entries {
    struct rueda_labels labels;
    struct rueda_entry *first; /* in flight */
    struct rueda_entry *last;
    struct rueda_entry *spare;
};

void rueda_entries_fini(struct rueda_entries *entries);

/* The entry of a label, or NULL. */
struct rueda_entry *rueda_entry_find(const struct rueda_entries *entries,
                                     const struct rueda_request *request);

/* The entry of a label, made if there is none; NULL without memory. */
struct rueda_entry *rueda_entry_get(struct rueda_entries *entries,
                                    const struct rueda_request *request);

/* It is in flight from now on, if it was not. */
static inline void rueda_entry_begin(struct rueda_entries *entries,
                                     struct rueda_entry *entry)
{
    if (entry->is_pending)
        return;
    entry->is_pending = true;
    entry->since_ns = -1;
    entry->is_warned = false;
    entry->prev = entries->last;
    entry->next = NULL;
    if (entries->last != NULL)
        entries->last->next = entry;
    else
        entries->first = entry;
    entries->last = entry;
}

/* A second request, which is not equal to the first bit by bit: do they differ?
 * Of several differences the one counts whose check comes first. */
void rueda_entry_weigh(struct rueda_entry *entry, const struct rueda_said *said,
                       struct rueda_request *copy);

/*
 * A child or this member (a bit of `from`) has it, on `count` members, and
 * `rank` reports this request. The request lives elsewhere as long as the entry
 * is in flight, or it is `copy`, which is then the entry's.
 */
static inline void rueda_entry_hear(struct rueda_entry *entry,
                                    const struct rueda_said *said,
                                    struct rueda_request *copy)
{
    if (entry->first.said.request == NULL)
        entry->first = (struct rueda_voice){*said, copy};
    else if (entry->first.said.request != said->request)
        rueda_entry_weigh(entry, said, copy);
}

/* No longer in flight; freed if it has no id. */
void rueda_entry_end(struct rueda_entries *entries, struct rueda_entry *entry);

/* It has lost its id: freed if it is not in flight. */
void rueda_entry_drop_id(struct rueda_entries *entries,
                         struct rueda_entry *entry);

/* Remember what all have agreed upon. RUEDA_ERR_NOMEM. */
void rueda_entry_agree(struct rueda_entry *entry,
                       const struct rueda_request *request, int id);

void rueda_absent_free(struct rueda_entry *entry);
void rueda_mismatch_free(struct rueda_mismatch *mismatch);

#endif /* RUEDA_NEGOTIATE_ENTRY_H */
