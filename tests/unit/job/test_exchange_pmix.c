/* SPDX-License-Identifier: Apache-2.0 */
/* Against tests/support/fake/pmix.c; the true library is met in
 * tests/python/test_exchange.py. */
#include "job/exchange.h"
#include "os/clock.h"
#include "os/library.h"
#include "unit/freed.h"

#define MS ((int64_t)1000000)

struct scene {
    const char *prefix; /* PMIX_PREFIX */
    bool is_launched;
};

static const char *environment(void *arg, const char *name)
{
    const struct scene *scene = arg;

    if (strcmp(name, "PMIX_PREFIX") == 0)
        return scene->prefix;
    if (!scene->is_launched)
        return NULL;
    if (strcmp(name, "PMIX_NAMESPACE") == 0)
        return "job";
    return strcmp(name, "PMIX_RANK") == 0 ? "1" : NULL;
}

static const struct scene fake = {FAKE_PMIX_PREFIX, true};

/* Exchange "card" as a rank of four, with a library that misbehaves so. */
static rueda_status meet(const char *how, int rank, int time_ms, char *card,
                         struct rueda_text *error)
{
    struct rueda_business_card_exchange exchange = {
        .rank = rank,
        .size = 4,
        .environment = environment,
        .arg = (void *)&fake,
        .deadline_ns = rueda_clock_ns() + time_ms * MS};

    error->chars[0] = '\0';
    setenv("FAKE_PMIX", how, 1);
    return rueda_launcher_exchange_pmix(&exchange, card, 4, error);
}

/* How many sessions have begun and not ended. */
static int open_sessions(void)
{
    void *library = rueda_library_find("libpmix.so.2");
    int (*sessions)(void);

    assert_non_null(library);
    assert_int_equal(
        rueda_library_function(library, "fake_pmix_sessions", &sessions),
        RUEDA_OK);
    rueda_library_close(library);
    return sessions();
}

/* The first test: no library has been loaded. */
static void a_library_of_an_unknown_version_is_refused(void **state)
{
    char card[] = "mine";
    struct rueda_text error;

    (void)state;
    assert_int_equal(meet("future", 1, 20000, card, &error),
                     RUEDA_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.chars, "PMIx 97.1.0"));
    assert_null(rueda_library_find("libpmix.so.2"));
}

static void rank_0_hands_out_its_card(void **state)
{
    struct rueda_text error;
    char card[] = "card";

    (void)state;
    assert_int_equal(meet("rank 0", 0, 20000, card, &error), RUEDA_OK);
    assert_string_equal(error.chars, "");
    assert_int_equal(open_sessions(), 0);
}

static void another_rank_gets_it_and_leaves_no_copy(void **state)
{
    static const char *const ways[] = {"", "at once"};
    struct rueda_text error;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char card[] = "....";

        watch_for("card");
        assert_int_equal(meet(ways[i], 1, 20000, card, &error), RUEDA_OK);
        assert_string_equal(card, "card");
        assert_int_equal(freed_seen, 0);
        watch_for(NULL);
        assert_int_equal(open_sessions(), 0);
    }
}

static void failures_are_told_and_leave_the_card_alone(void **state)
{
    static const struct {
        const char *how;
        int rank;
        rueda_status status;
        const char *words;
    } cases[] = {
        {"gone", 1, RUEDA_ERR_PEER_LOST, "UNREACHABLE (-25)"},
        {"", 2, RUEDA_ERR_MISMATCH, "takes us for rank 1"},
        {"fence", 1, RUEDA_ERR_INVALID, "PMIx_Fence failed: SOME-ERROR"},
        {"missing", 1, RUEDA_ERR_MISMATCH, "no card of 4 bytes"},
        {"short", 1, RUEDA_ERR_MISMATCH, "no card of 4 bytes"},
        {"type", 1, RUEDA_ERR_MISMATCH, "no card of 4 bytes"},
        {"rank 0", 0, RUEDA_ERR_INVALID, "PMIx_Put failed"},
    };
    struct rueda_text error;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char card[] = "mine";

        assert_int_equal(meet(cases[i].how, cases[i].rank, 20000, card, &error),
                         cases[i].status);
        assert_non_null(strstr(error.chars, cases[i].words));
        assert_string_equal(card, "mine");
        assert_int_equal(open_sessions(), 0);
    }
}

static void without_other_ranks_we_leave_in_time_and_good_order(void **state)
{
    int64_t start = rueda_clock_ns();
    struct rueda_text error;
    char card[] = "mine";

    (void)state;
    assert_int_equal(meet("late", 1, 100, card, &error), RUEDA_ERR_TIMEOUT);
    assert_non_null(strstr(error.chars, "rank 1 waited for all 4 ranks"));
    assert_non_null(strstr(error.chars, "not all ranks came"));
    assert_true(rueda_clock_ns() - start >= 80 * MS);
    assert_int_equal(open_sessions(), 0);
}

static void a_job_of_one_and_no_launcher_need_no_library(void **state)
{
    struct scene none = {"/nowhere", false};
    struct rueda_business_card_exchange exchange = {
        .size = 1, .environment = environment, .arg = &none};
    struct rueda_text error = {{0}};
    char card[] = "card";

    (void)state;
    assert_int_equal(rueda_launcher_exchange_pmix(&exchange, card, 4, &error),
                     RUEDA_OK);
    exchange.size = 2;
    assert_int_equal(rueda_launcher_exchange_pmix(&exchange, card, 4, &error),
                     RUEDA_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.chars, "not started by a launcher"));
}

/* The last test: it leaves a thread that sleeps. */
static void a_launcher_that_is_stopped_is_not_waited_for(void **state)
{
    int64_t start = rueda_clock_ns();
    struct rueda_text error;
    char card[] = "mine";

    (void)state;
    assert_int_equal(meet("stopped", 1, 100, card, &error), RUEDA_ERR_TIMEOUT);
    assert_non_null(strstr(error.chars, "is it stopped?"));
    assert_true(rueda_clock_ns() - start >= 100 * MS);
    assert_true(rueda_clock_ns() - start < 20000 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_of_an_unknown_version_is_refused),
        cmocka_unit_test(rank_0_hands_out_its_card),
        cmocka_unit_test(another_rank_gets_it_and_leaves_no_copy),
        cmocka_unit_test(failures_are_told_and_leave_the_card_alone),
        cmocka_unit_test(without_other_ranks_we_leave_in_time_and_good_order),
        cmocka_unit_test(a_job_of_one_and_no_launcher_need_no_library),
        cmocka_unit_test(a_launcher_that_is_stopped_is_not_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
