/* SPDX-License-Identifier: Apache-2.0 */
#include "op/numbers.h"

#include <stdlib.h>

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

static bool is_countable(int set)
{
    return set >= 0 && set < RUEDA_NUMBERS_PAGE * RUEDA_NUMBERS_PAGES;
}

rueda_status rueda_numbers_next(struct rueda_numbers *numbers, int set,
                                uint64_t *out)
{
    _Atomic uint64_t *counter;

    if (!is_countable(set))
        return RUEDA_ERR_LIMIT;
    counter = counter_of(numbers, set);
    if (counter == NULL)
        return RUEDA_ERR_NOMEM;
    *out = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    return RUEDA_OK;
}

void rueda_numbers_skip(struct rueda_numbers *numbers, int set, uint64_t number)
{
    _Atomic uint64_t *counter =
        is_countable(set) ? counter_of(numbers, set) : NULL;
    uint64_t next;

    if (counter == NULL)
        return;
    next = atomic_load_explicit(counter, memory_order_relaxed);
    while (next <= number &&
           !atomic_compare_exchange_weak(counter, &next, number + 1))
        continue;
}
