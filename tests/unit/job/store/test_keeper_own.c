/* SPDX-License-Identifier: Apache-2.0 */
/* A program that keeps the store sets keys itself and sees what guests set. */
#include <pthread.h>

#include "job/store/client.h"
#include "job/store/keeper.h"
#include "os/clock.h"
#include "unit/unit.h"

#define SECOND ((int64_t)1000000000)

struct house {
    char socket[64];
    struct rueda_key key;
    struct rueda_keeper *keeper;
    struct rueda_client *client;
    struct rueda_text error;
    pthread_mutex_t lock;
    int changes; /* under the lock, with what follows */
    char key_seen[64];
    char value_seen[64];
};

/* On the keeper's thread. */
static void changed(void *arg, const char *key, size_t key_bytes,
                    const void *value, size_t bytes)
{
    struct house *house = arg;

    pthread_mutex_lock(&house->lock);
    house->changes++;
    snprintf(house->key_seen, sizeof(house->key_seen), "%.*s", (int)key_bytes,
             key);
    snprintf(house->value_seen, sizeof(house->value_seen), "%.*s", (int)bytes,
             (const char *)value);
    pthread_mutex_unlock(&house->lock);
}

static int open_house(void **state)
{
    struct house *house = calloc(1, sizeof(*house));
    struct rueda_keeper_args keeper = {.most = 4,
                                       .key = &house->key,
                                       .socket = house->socket,
                                       .watched = "ready/",
                                       .changed = changed,
                                       .arg = house};
    struct rueda_client_args client = {
        .rank = 7, .size = 8, .socket = house->socket, .key = &house->key};

    pthread_mutex_init(&house->lock, NULL);
    snprintf(house->socket, sizeof(house->socket), "rueda-test-own-%d",
             (int)getpid());
    *state = house;
    return rueda_key_create(&house->key) == RUEDA_OK &&
                   rueda_keeper_open(&keeper, &house->keeper, &house->error) ==
                       RUEDA_OK &&
                   rueda_client_open(&client, rueda_clock_ns() + 10 * SECOND,
                                     &house->client, &house->error) == RUEDA_OK
               ? 0
               : -1;
}

static int close_house(void **state)
{
    struct house *house = *state;

    rueda_client_close(house->client);
    rueda_keeper_close(house->keeper);
    pthread_mutex_destroy(&house->lock);
    free(house);
    return 0;
}

static void a_guest_that_waits_gets_what_the_program_sets(void **state)
{
    struct house *house = *state;
    struct rueda_store_request wait = {
        .kind = RUEDA_STORE_WAIT, .key = "place/7", .key_bytes = 7};
    struct rueda_store_reply reply;

    for (int i = 0; i < 3; i++) {
        char value[8];

        snprintf(value, sizeof(value), "term %d", i);
        assert_true(rueda_keeper_set(house->keeper, "place/7", value, 6));
        assert_int_equal(rueda_client_ask(house->client, &wait,
                                          rueda_clock_ns() + 10 * SECOND,
                                          &reply, &house->error),
                         RUEDA_OK);
        assert_int_equal(reply.value_bytes, 6);
        assert_memory_equal(reply.value, value, 6);
        wait.revision = reply.revision;
    }
}

static void what_is_set_first_is_there_first(void **state)
{
    struct house *house = *state;
    struct rueda_store_request get = {
        .kind = RUEDA_STORE_WAIT, .key = "last", .key_bytes = 4};
    struct rueda_store_reply reply;

    for (int i = 0; i < 100; i++)
        assert_true(rueda_keeper_set(house->keeper, "one", &i, sizeof(i)));
    assert_true(rueda_keeper_set(house->keeper, "last", "x", 1));
    assert_int_equal(rueda_client_ask(house->client, &get,
                                      rueda_clock_ns() + 10 * SECOND, &reply,
                                      &house->error),
                     RUEDA_OK);
    get = (struct rueda_store_request){
        .kind = RUEDA_STORE_GET, .key = "one", .key_bytes = 3};
    assert_int_equal(rueda_client_ask(house->client, &get,
                                      rueda_clock_ns() + 10 * SECOND, &reply,
                                      &house->error),
                     RUEDA_OK);
    assert_int_equal(*(const int *)reply.value, 99);
}

static void the_program_sees_what_guests_set_under_its_prefix(void **state)
{
    struct house *house = *state;
    struct rueda_store_request set = {.kind = RUEDA_STORE_SET,
                                      .key = "other/7",
                                      .key_bytes = 7,
                                      .value = "no",
                                      .value_bytes = 2};
    struct rueda_store_reply reply;

    rueda_client_ask(house->client, &set, rueda_clock_ns() + 10 * SECOND,
                     &reply, &house->error);
    set.key = "ready/7";
    set.value = "go";
    /* The program sees it before the guest has its answer. */
    assert_int_equal(rueda_client_ask(house->client, &set,
                                      rueda_clock_ns() + 10 * SECOND, &reply,
                                      &house->error),
                     RUEDA_OK);
    pthread_mutex_lock(&house->lock);
    assert_int_equal(house->changes, 1);
    assert_string_equal(house->key_seen, "ready/7");
    assert_string_equal(house->value_seen, "go");
    pthread_mutex_unlock(&house->lock);
}

/* What a client of a roll call does when its term is over. */
static void end_term(void *arg, const struct rueda_store_reply *event)
{
    struct house *house = arg;

    if (event->kind == RUEDA_STORE_EVENT_SET)
        rueda_client_abandon(house->client, "the term is over");
}

static void a_client_that_is_abandoned_gives_up_what_it_waits_for(void **state)
{
    struct house *house = *state;
    struct rueda_client_args args = {.rank = 1,
                                     .size = 2,
                                     .socket = house->socket,
                                     .key = &house->key,
                                     .on_event = end_term,
                                     .arg = house};
    struct rueda_store_request request = {
        .kind = RUEDA_STORE_WATCH, .key = "3/over", .key_bytes = 6};
    struct rueda_store_reply reply;

    rueda_client_close(house->client);
    assert_int_equal(rueda_client_open(&args, rueda_clock_ns() + 10 * SECOND,
                                       &house->client, &house->error),
                     RUEDA_OK);
    assert_int_equal(rueda_client_ask(house->client, &request,
                                      rueda_clock_ns() + 10 * SECOND, &reply,
                                      &house->error),
                     RUEDA_OK);
    assert_true(rueda_keeper_set(house->keeper, "3/over", "x", 1));
    request = (struct rueda_store_request){
        .kind = RUEDA_STORE_WAIT, .key = "never", .key_bytes = 5};
    for (int i = 0; i < 2; i++) {
        house->error.chars[0] = '\0';
        assert_int_equal(rueda_client_ask(house->client, &request,
                                          rueda_clock_ns() + 30 * SECOND,
                                          &reply, &house->error),
                         RUEDA_ERR_CANCELLED);
        assert_string_equal(house->error.chars, "the term is over");
    }
}

#define HOUSE(test)                                                            \
    cmocka_unit_test_setup_teardown(test, open_house, close_house)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOUSE(a_guest_that_waits_gets_what_the_program_sets),
        HOUSE(what_is_set_first_is_there_first),
        HOUSE(the_program_sees_what_guests_set_under_its_prefix),
        HOUSE(a_client_that_is_abandoned_gives_up_what_it_waits_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
