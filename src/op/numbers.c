/* SPDX-License-Identifier: Apache-2.0 */
#include "op/numbers.h"

#include <stdlib.h>

/* A bit of a counter: this rank has joined the set. */
#define HAS_JOINED ((uint64_t)1 << 63)

void rueda_numbers_fini(struct rueda_numbers *numbers)
{
    for (int i = 0; i < RUEDA_NUMBERS_PAGES; i++)
        free((void *)atomic_load_explicit(&numbers->pages[i],
                                          memory_order_relaxed));
}

/* NULL: there is none, and no memory. */
static _Atomic uint64_t *counter_of(struct rueda_numbers *numbers, int set)
{
    _Atomic(_Atomic uint64_t *) *at = &numbers->pages[set / RUEDA_NUMBERS_PAGE];
    _Atomic uint64_t *page = atomic_load_explicit(at, memory_order_acquire);

    if (page == NULL) {
        _Atomic uint64_t *made = calloc(RUEDA_NUMBERS_PAGE, sizeof(*made));

        if (made == NULL)
            return NULL;
        if (atomic_compare_exchange_strong(at, &page, made))
            page = made;
        else
            free((void *)made);
    }
    return &page[set % RUEDA_NUMBERS_PAGE];
}

/* The counter of a set, or why there is none. */
static rueda_status find(struct rueda_numbers *numbers, int set,
                         _Atomic uint64_t **out)
{
    if (set < 0 || set >= RUEDA_NUMBERS_PAGE * RUEDA_NUMBERS_PAGES)
        return RUEDA_ERR_LIMIT;
    *out = counter_of(numbers, set);
    return *out != NULL ? RUEDA_OK : RUEDA_ERR_NOMEM;
}

rueda_status rueda_numbers_next(struct rueda_numbers *numbers, int set,
                                uint64_t *out)
{
    _Atomic uint64_t *counter;
    rueda_status status = find(numbers, set, &counter);
    uint64_t next;

    if (status != RUEDA_OK)
        return status;
    next = atomic_load_explicit(counter, memory_order_relaxed);
    do {
        if ((next & HAS_JOINED) != 0)
            return RUEDA_ERR_INVALID;
    } while (!atomic_compare_exchange_weak(counter, &next, next + 1));
    *out = next;
    return RUEDA_OK;
}

rueda_status rueda_numbers_join(struct rueda_numbers *numbers, int set)
{
    _Atomic uint64_t *counter;
    rueda_status status = find(numbers, set, &counter);

    if (status == RUEDA_OK &&
        (atomic_fetch_or(counter, HAS_JOINED) & HAS_JOINED) != 0)
        status = RUEDA_ERR_INVALID;
    return status;
}

void rueda_numbers_go_on(struct rueda_numbers *numbers, int set,
                         uint64_t number)
{
    _Atomic uint64_t *counter;

    if (find(numbers, set, &counter) == RUEDA_OK)
        atomic_store(counter, number);
}
