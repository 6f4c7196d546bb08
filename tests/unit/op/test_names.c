/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are in flight. */
#include "op/names.h"
#include "op/request.h"
#include "os/thread.h"
#include "unit/unit.h"

static int names_open(void **state)
{
    static struct rueda_names names;

    rueda_names_init(&names);
    *state = &names;
    return 0;
}

static int names_close(void **state)
{
    rueda_names_fini(*state);
    return 0;
}

static uint64_t key_for(int set, const char *name)
{
    return rueda_names_key(set, rueda_name_hash(name, strlen(name)));
}

/* The key of a name that ends with a number. */
static uint64_t key_of(int set, const char *name, int number)
{
    char text[64];

    snprintf(text, sizeof(text), "%s.%d", name, number);
    return key_for(set, text);
}

static void a_name_is_under_way_until_it_leaves(void **state)
{
    uint64_t key = key_for(0, "x");

    for (int i = 0; i < 3; i++) {
        assert_int_equal(rueda_names_enter(*state, key), RUEDA_OK);
        assert_int_equal(rueda_names_enter(*state, key), RUEDA_ERR_INVALID);
        rueda_names_leave(*state, key);
    }
}

static void names_of_two_sets_are_two(void **state)
{
    assert_int_equal(rueda_names_enter(*state, key_for(0, "x")), RUEDA_OK);
    assert_int_equal(rueda_names_enter(*state, key_for(1, "x")), RUEDA_OK);
    assert_int_equal(rueda_names_enter(*state, key_for(1, "x")),
                     RUEDA_ERR_INVALID);
    assert_int_equal(rueda_names_enter(*state, key_for(1, "")), RUEDA_OK);
}

static void a_hundred_thousand_names_are_under_way_at_once(void **state)
{
    enum {
        COUNT = 100000
    };
    int refused = 0;

    for (int i = 0; i < COUNT; i++)
        assert_int_equal(rueda_names_enter(*state, key_of(0, "layer", i)),
                         RUEDA_OK);
    for (int i = 0; i < COUNT; i++)
        refused += rueda_names_enter(*state, key_of(0, "layer", i)) ==
                   RUEDA_ERR_INVALID;
    assert_int_equal(refused, COUNT);
    for (int i = 0; i < COUNT; i++)
        rueda_names_leave(*state, key_of(0, "layer", i));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(rueda_names_enter(*state, key_of(0, "layer", i)),
                         RUEDA_OK);
}

/* A table of a thousand buckets lives through a hundred thousand names. */
static void names_that_never_come_again_take_no_room(void **state)
{
    uint64_t stays = key_for(0, "stays");

    assert_int_equal(rueda_names_enter(*state, stays), RUEDA_OK);
    for (int i = 0; i < 100000; i++) {
        uint64_t key = key_of(0, "step", i);

        assert_int_equal(rueda_names_enter(*state, key), RUEDA_OK);
        rueda_names_leave(*state, key);
    }
    assert_int_equal(rueda_names_enter(*state, stays), RUEDA_ERR_INVALID);
}

/* ---- Threads ----------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  4000
#define COMMON  16

static atomic_int holders[COMMON];

struct user {
    struct rueda_names *names;
    int me;
    int entered;
    int wrong;
};

/* Names that all threads want, and names of its own that push the table to its
 * limits again and again. */
static void *use(void *arg)
{
    struct user *user = arg;

    for (int i = 0; i < ROUNDS; i++) {
        int common = (i * 7 + user->me) % COMMON;
        uint64_t key = key_of(0, "common", common);
        uint64_t own = key_of(user->me, "own", i);

        user->wrong += rueda_names_enter(user->names, own) != RUEDA_OK;
        if (rueda_names_enter(user->names, key) == RUEDA_OK) {
            user->wrong += atomic_fetch_add(&holders[common], 1) != 0;
            user->entered++;
            atomic_fetch_sub(&holders[common], 1);
            rueda_names_leave(user->names, key);
        }
        user->wrong += rueda_names_enter(user->names, own) != RUEDA_ERR_INVALID;
        rueda_names_leave(user->names, own);
    }
    return NULL;
}

static void of_several_threads_one_has_a_name(void **state)
{
    struct user users[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.names = *state, .me = i};
        assert_int_equal(rueda_thread_start(&threads[i], use, &users[i]),
                         RUEDA_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(users[i].wrong, 0);
        assert_true(users[i].entered > 0);
    }
    for (int i = 0; i < COMMON; i++)
        assert_int_equal(rueda_names_enter(*state, key_of(0, "common", i)),
                         RUEDA_OK);
}

#define MEETINGS 500

static void *enter_all(void *arg)
{
    struct user *user = arg;

    for (int i = 0; i < MEETINGS; i++)
        user->entered +=
            rueda_names_enter(user->names, key_of(0, "meet", i)) == RUEDA_OK;
    return NULL;
}

static void a_name_that_all_enter_is_entered_once(void **state)
{
    struct user users[THREADS];
    pthread_t threads[THREADS];
    int entered = 0;

    for (int i = 0; i < THREADS; i++) {
        users[i] = (struct user){.names = *state, .me = i};
        assert_int_equal(rueda_thread_start(&threads[i], enter_all, &users[i]),
                         RUEDA_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        entered += users[i].entered;
    }
    assert_int_equal(entered, MEETINGS);
}

#define NAMES(test)                                                            \
    cmocka_unit_test_setup_teardown(test, names_open, names_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NAMES(a_name_is_under_way_until_it_leaves),
        NAMES(names_of_two_sets_are_two),
        NAMES(a_hundred_thousand_names_are_under_way_at_once),
        NAMES(names_that_never_come_again_take_no_room),
        NAMES(of_several_threads_one_has_a_name),
        NAMES(a_name_that_all_enter_is_entered_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
