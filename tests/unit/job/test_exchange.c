/* SPDX-License-Identifier: Apache-2.0 */
/* A card with a secret, through a launcher that keeps all that it is told. Its
 * ranks are threads. */
#include <pthread.h>

#include "job/exchange.h"
#include "unit/unit.h"

#define RANKS      4
#define CARD_BYTES 100
#define SECRET_AT  20

#define MOST_VALUES 32

struct launcher {
    pthread_mutex_t lock;
    pthread_barrier_t fence;
    int count;
    struct {
        char name[32];
        unsigned char bytes[RUEDA_BUSINESS_CARD_BYTES];
        size_t len;
    } values[MOST_VALUES];
    const char *changes; /* the value with this name, in its first byte */
    const char *loses;
};

struct rank {
    struct launcher *launcher;
    struct rueda_business_card_exchange exchange;
    unsigned char card[CARD_BYTES];
    struct rueda_text error;
    rueda_status status;
};

/* ---- The launcher -------------------------------------------------------- */

static rueda_status put(void *arg, const char *name, const void *bytes,
                        size_t len)
{
    struct launcher *launcher = ((struct rank *)arg)->launcher;
    int at;

    pthread_mutex_lock(&launcher->lock);
    at = launcher->count++;
    snprintf(launcher->values[at].name, sizeof(launcher->values[at].name), "%s",
             name);
    memcpy(launcher->values[at].bytes, bytes, len);
    launcher->values[at].len = len;
    if (launcher->changes != NULL && strcmp(launcher->changes, name) == 0)
        launcher->values[at].bytes[0] ^= 1;
    if (launcher->loses != NULL && strcmp(launcher->loses, name) == 0)
        launcher->count--;
    pthread_mutex_unlock(&launcher->lock);
    return RUEDA_OK;
}

static rueda_status meet(void *arg)
{
    pthread_barrier_wait(&((struct rank *)arg)->launcher->fence);
    return RUEDA_OK;
}

static rueda_status get(void *arg, int rank, const char *name, void *out,
                        size_t len)
{
    struct launcher *launcher = ((struct rank *)arg)->launcher;
    rueda_status status = RUEDA_ERR_MISMATCH;

    (void)rank;
    pthread_mutex_lock(&launcher->lock);
    for (int i = 0; i < launcher->count; i++)
        if (strcmp(launcher->values[i].name, name) == 0 &&
            launcher->values[i].len == len) {
            memcpy(out, launcher->values[i].bytes, len);
            status = RUEDA_OK;
        }
    pthread_mutex_unlock(&launcher->lock);
    return status;
}

static void *live(void *arg)
{
    static const struct rueda_business_card_ops ops = {
        .put = put, .meet = meet, .get = get};
    struct rank *rank = arg;

    rank->status = rueda_business_card_pass(
        &rank->exchange, &ops, rank, rank->card, CARD_BYTES, &rank->error);
    return NULL;
}

/* ---- Jobs ---------------------------------------------------------------- */

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + 3);
}

static void run(struct launcher *launcher, struct rank *ranks)
{
    pthread_t threads[RANKS];

    pthread_mutex_init(&launcher->lock, NULL);
    pthread_barrier_init(&launcher->fence, NULL, RANKS);
    memset(ranks, 0, RANKS * sizeof(ranks[0]));
    for (size_t i = 0; i < CARD_BYTES; i++)
        ranks[0].card[i] = byte_at(i);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].launcher = launcher;
        ranks[i].exchange.rank = i;
        ranks[i].exchange.size = RANKS;
        ranks[i].exchange.secret_at = SECRET_AT;
        ranks[i].exchange.secret_bytes = RUEDA_CARD_SECRET_BYTES;
        assert_int_equal(pthread_create(&threads[i], NULL, live, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&launcher->fence);
    pthread_mutex_destroy(&launcher->lock);
}

static bool knows_the_card(const struct rank *rank)
{
    for (size_t i = 0; i < CARD_BYTES; i++)
        if (rank->card[i] != byte_at(i))
            return false;
    return true;
}

/* Are four bytes in a row of the secret anywhere in what it was told? */
static bool has_heard_the_secret(const struct launcher *launcher)
{
    unsigned char secret[RUEDA_CARD_SECRET_BYTES];

    for (size_t i = 0; i < sizeof(secret); i++)
        secret[i] = byte_at(SECRET_AT + i);
    for (int i = 0; i < launcher->count; i++)
        for (size_t part = 0; part + 4 <= sizeof(secret); part++)
            if (memmem(launcher->values[i].bytes, launcher->values[i].len,
                       secret + part, 4) != NULL)
                return true;
    return false;
}

/* ---- Tests --------------------------------------------------------------- */

static void all_ranks_learn_the_secret_and_the_launcher_does_not(void **state)
{
    struct launcher launcher = {.count = 0};
    struct rank ranks[RANKS];

    (void)state;
    run(&launcher, ranks);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].status, RUEDA_OK);
        assert_true(knows_the_card(&ranks[i]));
    }
    assert_int_equal(launcher.count, 1 + 2 * (RANKS - 1));
    assert_false(has_heard_the_secret(&launcher));
}

static void the_rest_of_the_card_is_open(void **state)
{
    struct launcher launcher = {.count = 0};
    struct rank ranks[RANKS];
    const unsigned char *open = NULL;

    (void)state;
    run(&launcher, ranks);
    for (int i = 0; i < launcher.count; i++)
        if (strcmp(launcher.values[i].name, "rueda.card") == 0)
            open = launcher.values[i].bytes;
    assert_non_null(open);
    for (size_t i = 0; open != NULL && i < CARD_BYTES; i++)
        assert_int_equal(
            open[i], i < SECRET_AT || i >= SECRET_AT + RUEDA_CARD_SECRET_BYTES
                         ? byte_at(i)
                         : 0);
}

static void an_envelope_that_was_changed_is_refused(void **state)
{
    struct launcher launcher = {.changes = "rueda.envelope.2"};
    struct rank ranks[RANKS];

    (void)state;
    run(&launcher, ranks);
    assert_int_equal(ranks[2].status, RUEDA_ERR_AUTH);
    assert_non_null(strstr(ranks[2].error.chars,
                           "rank 2 cannot open what rank 0 sealed for it"));
    assert_int_equal(ranks[1].status, RUEDA_OK);
    assert_true(knows_the_card(&ranks[3]));
}

/* It was sealed for the key that rank 0 was told, so its owner cannot open it.
 */
static void
a_public_key_that_was_changed_gives_nothing_to_its_rank(void **state)
{
    struct launcher launcher = {.changes = "rueda.key.3"};
    struct rank ranks[RANKS];

    (void)state;
    run(&launcher, ranks);
    assert_int_equal(ranks[3].status, RUEDA_ERR_AUTH);
    assert_int_equal(ranks[2].status, RUEDA_OK);
}

static void a_rank_without_an_envelope_says_so(void **state)
{
    struct launcher launcher = {.loses = "rueda.envelope.1"};
    struct rank ranks[RANKS];

    (void)state;
    run(&launcher, ranks);
    assert_int_equal(ranks[1].status, RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(ranks[1].error.chars, "no rueda.envelope.1 of 80"));
    assert_int_equal(ranks[2].status, RUEDA_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_learn_the_secret_and_the_launcher_does_not),
        cmocka_unit_test(the_rest_of_the_card_is_open),
        cmocka_unit_test(an_envelope_that_was_changed_is_refused),
        cmocka_unit_test(
            a_public_key_that_was_changed_gives_nothing_to_its_rank),
        cmocka_unit_test(a_rank_without_an_envelope_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
