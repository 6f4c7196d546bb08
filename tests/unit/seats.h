/* SPDX-License-Identifier: Apache-2.0 */
/* The seat of a process in a table that stands for its environment. */
#ifndef RUEDA_TESTS_UNIT_SEATS_H
#define RUEDA_TESTS_UNIT_SEATS_H

#include <string.h>

#include "job/seat.h"
#include "unit/unit.h"

/* "NAME=value", up to NULL. */
typedef const char *const environment[16];

static const char *look(void *arg, const char *name)
{
    size_t length = strlen(name);

    for (const char *const *entry = arg; *entry != NULL; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

static struct rueda_seat_query query_of(environment table)
{
    struct rueda_seat_query query;

    rueda_seat_query_init(&query);
    query.environment = look;
    query.arg = (void *)table;
    query.has_mpi = false;
    query.parent = 4711;
    return query;
}

static struct rueda_seat found(const struct rueda_seat_query *query)
{
    struct rueda_text error = {{0}};
    struct rueda_seat seat;

    if (rueda_seat_find(query, &seat, &error) != RUEDA_OK)
        fail_msg("refused: %s", error.chars);
    assert_true(rueda_text_is_empty(&error));
    return seat;
}

static struct rueda_seat seat_in(environment table)
{
    struct rueda_seat_query query = query_of(table);

    return found(&query);
}

#endif /* RUEDA_TESTS_UNIT_SEATS_H */
