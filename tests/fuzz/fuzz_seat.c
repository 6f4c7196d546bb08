/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A seat in any environment: lines NAME=value. Names in small letters stand for
 * what a caller says itself (rank=3).
 */
#include "fuzz/fuzz.h"
#include "job/seat.h"

#define MOST_LINES 64

struct table {
    char *text;
    const char *lines[MOST_LINES + 1];
};

static void table_init(struct table *table, const uint8_t *data, size_t size)
{
    char *rest;
    int count = 0;

    table->text = fuzz_text(data, size);
    rest = table->text;
    while (rest != NULL && count < MOST_LINES)
        table->lines[count++] = strsep(&rest, "\n");
    table->lines[count] = NULL;
}

static const char *look(void *arg, const char *name)
{
    const struct table *table = arg;
    const size_t length = strlen(name);

    for (const char *const *line = table->lines; *line != NULL; line++)
        if (strncmp(*line, name, length) == 0 && (*line)[length] == '=')
            return *line + length + 1;
    return NULL;
}

static void look_number(struct table *table, const char *name, int *out)
{
    const char *value = look(table, name);

    if (value != NULL)
        *out = (int)strtol(value, NULL, 10);
}

static bool is_part(int rank, int size, int all)
{
    return size <= all && size != 0 &&
           (rank < 0 || rank < (size > 0 ? size : all));
}

static void check_seat(const struct rueda_seat *seat)
{
    must(seat->launcher < RUEDA_LAUNCHER_COUNT);
    must(seat->introduction < RUEDA_INTRODUCE_COUNT);
    must(seat->rank >= 0 && seat->rank < seat->size);
    must(is_part(seat->local_rank, seat->local_size, seat->size));
    must(is_part(seat->cross_rank, seat->cross_size, seat->size));
    must(seat->size > 1 || seat->introduction == RUEDA_INTRODUCE_NONE);
    must(seat->job[0] != '\0');
    must(strnlen(seat->job, sizeof(seat->job)) < sizeof(seat->job));
    must(strnlen(seat->store, sizeof(seat->store)) < sizeof(seat->store));
    must((seat->introduction == RUEDA_INTRODUCE_STORE) ==
         (strchr(seat->store, ':') != NULL));
    must(!rueda_text_is_empty(&seat->why));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rueda_text error = {{0}};
    struct rueda_seat_query query;
    struct rueda_seat before;
    struct rueda_seat seat;
    struct table table;
    rueda_status status;

    table_init(&table, data, size);
    rueda_seat_query_init(&query);
    query.environment = look;
    query.arg = &table;
    look_number(&table, "rank", &query.rank);
    look_number(&table, "size", &query.size);
    look_number(&table, "local_rank", &query.local_rank);
    look_number(&table, "local_size", &query.local_size);
    query.has_exchange = look(&table, "exchange") != NULL;
    query.job = look(&table, "job");
    query.store = look(&table, "store");
    memset(&before, 0x5a, sizeof(before));
    seat = before;
    status = rueda_seat_find(&query, &seat, &error);
    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    if (status == RUEDA_OK)
        check_seat(&seat);
    else
        must(memcmp((const char *)&seat, (const char *)&before, sizeof(seat)) ==
             0);
    free(table.text);
    return 0;
}
