/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of the store: circular, through links inside of their members. */
#ifndef RUEDA_JOB_STORE_LIST_H
#define RUEDA_JOB_STORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The head of a list, or a member's link. */
struct rueda_store_list {
    struct rueda_store_list *prev;
    struct rueda_store_list *next;
};

/* The member that a link is the field of. */
#define RUEDA_STORE_OF(link, type, field)                                      \
    ((type *)(void *)((char *)(link)-offsetof(type, field)))

/* An empty list, or a link that is in none. */
static inline void rueda_store_list_init(struct rueda_store_list *list)
{
    list->prev = list;
    list->next = list;
}

static inline bool
rueda_store_list_is_empty(const struct rueda_store_list *list)
{
    return list->next == list;
}

static inline void rueda_store_list_append(struct rueda_store_list *list,
                                           struct rueda_store_list *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

/* Harmless for a link that is in no list. */
static inline void rueda_store_list_remove(struct rueda_store_list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    rueda_store_list_init(link);
}

#endif /* RUEDA_JOB_STORE_LIST_H */
