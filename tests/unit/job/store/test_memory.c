/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store where memory is short: the same requests again and again, with
 * another allocation failing each time. The linker puts the functions below in
 * the place of malloc() and its like (see CMakeLists.txt).
 */
#include "support/recorded_store.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

/* Allocations until one fails, negative: none will; how many fail from then
 * on. Functions that stand in for others can get this in no other way. */
static int until_failure = -1;
static int failures;

static bool is_failing(void)
{
    if (until_failure < 0)
        return false;
    if (until_failure > 0) {
        until_failure--;
        return false;
    }
    if (--failures == 0)
        until_failure = -1;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return is_failing() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_failing() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_failing() ? NULL : __real_realloc(memory, bytes);
}

/* ---- Requests that need memory ------------------------------------------ */

static struct rueda_store_request request_of(int i)
{
    static char key[16];
    static const rueda_store_kind kinds[] = {
        RUEDA_STORE_SET,   RUEDA_STORE_ADD,        RUEDA_STORE_CAS,
        RUEDA_STORE_WATCH, RUEDA_STORE_LEASE_OPEN, RUEDA_STORE_WAIT,
    };
    struct rueda_store_request request = {
        .kind = kinds[i % 6], .number = (uint64_t)i + 1, .time_ms = 1000};

    if (request.kind == RUEDA_STORE_LEASE_OPEN)
        return request;
    request.key_bytes = (size_t)snprintf(key, sizeof(key), "key %d", i);
    request.key = key;
    return request;
}

/* One request; what is refused for lack of memory has changed nothing. */
static void ask_one(struct recorded_store *recorded, int i)
{
    struct rueda_store_stats before = recorded_stats_of(recorded);
    struct rueda_store_stats after;
    rueda_status status = RUEDA_OK;

    recorded_store_ask(recorded, 1, request_of(i));
    if (recorded->count > 0)
        status = recorded->heard[recorded->count - 1].reply.status;
    after = recorded_stats_of(recorded);
    if (status == RUEDA_ERR_NOMEM)
        assert_memory_equal(&after, &before, sizeof(after));
}

/* Enough requests for tables and heap to grow. Returns false if the store did
 * not even open. */
static bool play(struct recorded_store *recorded)
{
    struct rueda_store_options options = {.emit = recorded_store_record,
                                          .arg = recorded};
    rueda_status status = rueda_store_open(&options, &recorded->store);

    if (status != RUEDA_OK) {
        assert_int_equal(status, RUEDA_ERR_NOMEM);
        return false;
    }
    do
        ASK(recorded, 1, ATTACH, SESSION('a'));
    while (recorded_only_on(recorded, 1)->status == RUEDA_ERR_NOMEM);
    for (int i = 0; i < 300; i++)
        ask_one(recorded, i);
    return true;
}

static void check_play(struct recorded_store *recorded)
{
    struct rueda_store_stats stats;

    if (!play(recorded))
        return;
    /* Memory is there again, and so is the store. */
    until_failure = -1;
    recorded_attach(recorded, 1, 'a');
    ASK(recorded, 1, SET, .number = 10000, KEY("key"), VALUE("value"));
    ASK(recorded, 1, GET, KEY("key"));
    stats = recorded_stats_of(recorded);
    check_value(recorded_only_on(recorded, 1), stats.revision, "value");
    rueda_store_close(recorded->store);
    recorded->store = NULL;
}

static void every_allocation_may_fail(struct recorded_store *recorded,
                                      int in_a_row)
{
    bool was_reached;
    int nth = 0;

    do {
        until_failure = nth++;
        failures = in_a_row;
        check_play(recorded);
        was_reached = failures < in_a_row;
        until_failure = -1;
    } while (was_reached);
    assert_true(nth > 300);
}

static int no_store(void **state)
{
    *state = calloc(1, sizeof(struct recorded_store));
    return *state != NULL ? 0 : -1;
}

static void one_failed_allocation_is_survived(void **state)
{
    every_allocation_may_fail(*state, 1);
}

static void three_failed_allocations_are_survived(void **state)
{
    every_allocation_may_fail(*state, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_failed_allocation_is_survived,
                                        no_store, recorded_store_close),
        cmocka_unit_test_setup_teardown(three_failed_allocations_are_survived,
                                        no_store, recorded_store_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
