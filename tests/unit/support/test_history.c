/* SPDX-License-Identifier: Apache-2.0 */
/* Histories that cannot have been are found, each for its own reason, and those
 * that can are not. Operations are written from left to right in time. */
#include "support/history.h"
#include "unit/unit.h"

#define MOST 16

/* Shorthand: client, key, begin and end, what was written and found. */
#define SET(c, k, b, e, v, r)                                                  \
    {                                                                          \
        .kind = HISTORY_SET, .client = (c), .key = (k), .value = (v),          \
        .begin_ns = (b), .end_ns = (e), .revision = (r)                        \
    }
#define GET(c, k, b, e, v, r)                                                  \
    {                                                                          \
        .kind = HISTORY_GET, .client = (c), .key = (k), .found = (v),          \
        .begin_ns = (b), .end_ns = (e), .revision = (r)                        \
    }
#define DELETE(c, k, b, e, r)                                                  \
    {                                                                          \
        .kind = HISTORY_DELETE, .client = (c), .key = (k), .begin_ns = (b),    \
        .end_ns = (e), .revision = (r)                                         \
    }
#define CAS(c, k, b, e, v, x, r)                                               \
    {                                                                          \
        .kind = HISTORY_CAS, .client = (c), .key = (k), .value = (v),          \
        .expected = (x), .begin_ns = (b), .end_ns = (e), .revision = (r)       \
    }
#define REFUSED(c, k, b, e, x, v, r)                                           \
    {                                                                          \
        .kind = HISTORY_CAS, .client = (c), .key = (k), .expected = (x),       \
        .begin_ns = (b), .end_ns = (e), .found = (v), .revision = (r),         \
        .status = RUEDA_ERR_MISMATCH                                           \
    }
#define ADD(c, k, b, e, s, r)                                                  \
    {                                                                          \
        .kind = HISTORY_ADD, .client = (c), .key = (k), .found = (s),          \
        .begin_ns = (b), .end_ns = (e), .revision = (r)                        \
    }
#define NO_ANSWER 0

struct example {
    const char *why; /* NULL: it can have been */
    uint64_t next;
    struct history_op ops[MOST]; /* the rest has begun at 0 */
};

static void check(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct example *example = &examples[i];
        struct rueda_text why = {{0}};
        size_t ops = 0;
        bool is_right;

        while (ops < MOST && example->ops[ops].begin_ns > 0)
            ops++;
        is_right = history_check(example->ops, ops, example->next, 0, &why);
        if (is_right != (example->why == NULL) ||
            (!is_right && strstr(why.chars, example->why) == NULL))
            fail_msg("example %zu: \"%s\"", i, why.chars);
    }
}

static void what_can_have_been_is_right(void **state)
{
    static const struct example examples[] = {
        {NULL, 1, {{.begin_ns = 0}}},
        {NULL, 3, {SET(0, 0, 1, 2, 7, 1), SET(1, 0, 3, 4, 8, 2)}},
        /* At the same time, so either may be first. */
        {NULL, 3, {SET(0, 0, 1, 9, 7, 2), SET(1, 0, 3, 4, 8, 1)}},
        {NULL, 2, {SET(0, 0, 1, 9, 7, 1), GET(1, 0, 2, 3, 7, 1)}},
        {NULL, 2, {SET(0, 0, 1, 9, 7, 1), GET(1, 0, 2, 3, 0, 0)}},
        {NULL,
         3,
         {SET(0, 0, 1, 2, 7, 1), DELETE(0, 0, 3, 4, 2), GET(1, 0, 5, 6, 0, 0)}},
        /* Carried out, or not, or later than the client has lived. */
        {NULL, 2, {SET(0, 0, 1, NO_ANSWER, 7, 0), GET(1, 0, 2, 3, 7, 1)}},
        {NULL, 2, {SET(0, 0, 1, NO_ANSWER, 7, 0), GET(1, 0, 2, 3, 0, 0)}},
        {NULL, 1, {SET(0, 0, 1, NO_ANSWER, 7, 0), GET(1, 0, 2, 3, 0, 0)}},
        {NULL, 3, {CAS(0, 0, 1, 2, 7, 0, 1), CAS(1, 0, 3, 4, 8, 1, 2)}},
        {NULL, 3, {CAS(0, 0, 1, NO_ANSWER, 7, 0, 0), CAS(1, 0, 3, 4, 8, 1, 2)}},
        {NULL, 2, {SET(0, 0, 1, 2, 7, 1), REFUSED(1, 0, 3, 4, 9, 7, 1)}},
        {NULL,
         4,
         {ADD(0, 0, 1, 2, 1, 1), ADD(1, 0, 3, 4, 1 + 1024, 2),
          ADD(0, 0, 5, 6, 2 + 1024, 3)}},
        {NULL,
         3,
         {ADD(0, 0, 1, NO_ANSWER, 0, 0), ADD(1, 0, 3, 4, 1 + 1024, 2)}},
    };

    (void)state;
    check(examples, sizeof(examples) / sizeof(examples[0]));
}

static void reads_out_of_order_are_found(void **state)
{
    static const struct example examples[] = {
        /* The old value, after the new one was written, and after it was read.
         */
        {"the past was seen",
         3,
         {SET(0, 0, 1, 2, 7, 1), SET(0, 0, 3, 4, 8, 2), GET(1, 0, 5, 6, 7, 1)}},
        {"the past was seen",
         3,
         {SET(0, 0, 1, 2, 7, 1), SET(0, 0, 3, 20, 8, 2), GET(1, 0, 5, 6, 8, 2),
          GET(2, 0, 7, 8, 7, 1)}},
        {"before it was written",
         2,
         {GET(1, 0, 1, 2, 7, 1), SET(0, 0, 3, 4, 7, 1)}},
        {"nothing was found",
         2,
         {SET(0, 0, 1, 2, 7, 1), GET(1, 0, 3, 4, 0, 0)}},
        {"nobody has written",
         2,
         {SET(0, 0, 1, NO_ANSWER, 7, 0), GET(1, 0, 3, 4, 9, 1)}},
        {"something else was found",
         2,
         {SET(0, 0, 1, 2, 7, 1), GET(1, 0, 3, 4, 9, 1)}},
        {"one revision has two values",
         3,
         {SET(0, 0, 1, NO_ANSWER, 7, 0), SET(1, 0, 1, NO_ANSWER, 8, 0),
          GET(2, 0, 3, 4, 7, 1), GET(3, 0, 3, 4, 8, 1)}},
    };

    (void)state;
    check(examples, sizeof(examples) / sizeof(examples[0]));
}

static void changes_out_of_order_are_found(void **state)
{
    static const struct example examples[] = {
        {"the past was seen",
         3,
         {SET(0, 0, 1, 2, 7, 2), SET(1, 1, 3, 4, 8, 1)}},
        {"two changes have one revision",
         2,
         {SET(0, 0, 1, 9, 7, 1), SET(1, 1, 1, 9, 8, 1)}},
        {"took the place of something else",
         4,
         {SET(0, 0, 1, 2, 7, 1), SET(0, 0, 3, 4, 8, 2),
          CAS(1, 0, 5, 6, 9, 1, 3)}},
        {"took the place of something else",
         3,
         {SET(0, 0, 1, 2, 7, 1), CAS(1, 0, 5, 6, 9, 0, 2)}},
        {"refused although it matched",
         2,
         {SET(0, 0, 1, 2, 7, 1), REFUSED(1, 0, 3, 4, 1, 7, 1)}},
    };

    (void)state;
    check(examples, sizeof(examples) / sizeof(examples[0]));
}

static void what_was_done_twice_or_not_at_all_is_found(void **state)
{
    static const struct example examples[] = {
        {"changes are known", 3, {SET(0, 0, 1, 2, 7, 1)}},
        {"changes are known", 3, {SET(0, 0, 1, NO_ANSWER, 7, 0)}},
        {"changes are known",
         2,
         {SET(0, 0, 1, 2, 7, 1), SET(0, 0, 3, 4, 8, 2)}},
        {"the sum is wrong", 2, {ADD(0, 0, 1, 2, 2, 1)}},
        {"the sum is wrong",
         3,
         {ADD(0, 0, 1, 2, 1, 1), ADD(1, 0, 3, 4, 1024, 2)}},
        {"the sum is wrong",
         4,
         {ADD(0, 0, 1, NO_ANSWER, 0, 0), ADD(1, 0, 3, 4, 1 + 1024, 2),
          ADD(1, 0, 5, 6, 2048, 3)}},
    };

    (void)state;
    check(examples, sizeof(examples) / sizeof(examples[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_have_been_is_right),
        cmocka_unit_test(reads_out_of_order_are_found),
        cmocka_unit_test(changes_out_of_order_are_found),
        cmocka_unit_test(what_was_done_twice_or_not_at_all_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
