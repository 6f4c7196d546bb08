/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>

#include "unit/fake_pmi.h"
#include "unit/freed.h"

/* How every conversation begins, and what all ranks say at its end. */
#define GREETING                                                               \
    {                                                                          \
        "cmd=init pmi_version=1 pmi_subversion=1",                             \
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"         \
    }
#define LIMITS                                                                 \
    {                                                                          \
        "cmd=get_maxes",                                                       \
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"          \
    }
#define SPACE                                                                  \
    {                                                                          \
        "cmd=get_my_kvsname", "cmd=my_kvsname kvsname=kvs_1"                   \
    }
#define BARRIER                                                                \
    {                                                                          \
        "cmd=barrier_in", "cmd=barrier_out"                                    \
    }
#define LEAVE                                                                  \
    {                                                                          \
        "cmd=finalize", "cmd=finalize_ack"                                     \
    }
/* A rank that gives up says so, and waits for nothing. */
#define FAREWELL                                                               \
    {                                                                          \
        "cmd=finalize", NULL                                                   \
    }
#define END                                                                    \
    {                                                                          \
        NULL, NULL                                                             \
    }

static const struct step getting[] = {
    GREETING,
    LIMITS,
    SPACE,
    BARRIER,
    {"cmd=get kvsname=kvs_1 key=rueda.card.0",
     "cmd=get_result rc=0 msg=success value=63617264"},
    LEAVE,
    END,
};

static rueda_status meet(struct fake *fake, const struct step *script, int rank,
                         char *card, size_t bytes)
{
    return fake_meet(fake, rueda_launcher_exchange_pmi1, script, rank, card,
                     bytes);
}

static void rank_0_hands_out_its_card(void **state)
{
    static const struct step script[] = {
        GREETING,
        LIMITS,
        SPACE,
        {"cmd=put kvsname=kvs_1 key=rueda.card.0 value=63617264",
         "cmd=put_result rc=0 msg=success"},
        BARRIER,
        LEAVE,
        END,
    };
    char card[] = "card";

    assert_int_equal(meet(*state, script, 0, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
}

static void another_rank_gets_it_and_leaves_no_copy(void **state)
{
    char card[] = "....";

    watch_for("63617264");
    assert_int_equal(meet(*state, getting, 3, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
    assert_int_equal(freed_seen, 0);
    watch_for(NULL);
}

static void answers_may_come_byte_by_byte(void **state)
{
    struct fake *fake = *state;
    char card[] = "....";

    fake->is_slow = true;
    assert_int_equal(meet(fake, getting, 1, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
}

static void where_values_are_short_a_card_goes_in_parts(void **state)
{
    static const struct step put[] = {
        GREETING,
        {"cmd=get_maxes", "cmd=maxes vallen_max=6"},
        SPACE,
        {"cmd=put kvsname=kvs_1 key=rueda.card.0 value=6361",
         "cmd=put_result rc=0"},
        {"cmd=put kvsname=kvs_1 key=rueda.card.2 value=7264",
         "cmd=put_result rc=0"},
        {"cmd=put kvsname=kvs_1 key=rueda.card.4 value=73",
         "cmd=put_result rc=0"},
        BARRIER,
        LEAVE,
        END,
    };
    char card[] = "cards";

    assert_int_equal(meet(*state, put, 0, card, 5), RUEDA_OK);
}

static void a_large_card_fits_short_lines(void **state)
{
    static char get[2][64];
    static char value[2][600];
    char card[RUEDA_BUSINESS_CARD_BYTES] = {0};
    char expected[RUEDA_BUSINESS_CARD_BYTES];

    for (size_t i = 0; i < sizeof(expected); i++)
        expected[i] = (char)(i * 11);
    for (size_t part = 0; part < 2; part++) {
        size_t used = (size_t)snprintf(value[part], sizeof(value[part]),
                                       "cmd=get_result rc=0 value=");

        snprintf(get[part], sizeof(get[part]),
                 "cmd=get kvsname=kvs_1 key=rueda.card.%zu", part * 256);
        for (size_t i = 0; i < 256; i++)
            used += (size_t)snprintf(value[part] + used, 3, "%02x",
                                     (unsigned char)expected[part * 256 + i]);
    }
    const struct step script[] = {
        GREETING,           LIMITS, SPACE, BARRIER, {get[0], value[0]},
        {get[1], value[1]}, LEAVE,  END,
    };
    assert_int_equal(meet(*state, script, 1, card, sizeof(card)), RUEDA_OK);
    assert_memory_equal(card, expected, sizeof(card));
}

static void a_refusal_is_told_with_its_reason(void **state)
{
    static const struct step script[] = {
        {"cmd=init pmi_version=1 pmi_subversion=1",
         "cmd=response_to_init rc=-1 msg=no_more_today"},
        FAREWELL,
        END,
    };
    char card[] = "card";

    assert_int_equal(meet(*state, script, 0, card, 4), RUEDA_ERR_INVALID);
    assert_said(*state, "code -1, no_more_today");
}

static void an_answer_to_another_question_is_refused(void **state)
{
    static const struct step script[] = {
        {"cmd=init pmi_version=1 pmi_subversion=1", "cmd=barrier_out rc=0"},
        FAREWELL,
        END,
    };
    char card[] = "card";

    assert_int_equal(meet(*state, script, 0, card, 4), RUEDA_ERR_INVALID);
    assert_said(*state, "response_to_init");
}

static void useless_limits_are_refused(void **state)
{
    static const char *const limits[] = {
        "cmd=maxes",
        "cmd=maxes vallen_max=2",
        "cmd=maxes vallen_max=-1024",
        "cmd=maxes vallen_max=99999999999999999999",
        "cmd=maxes vallen_max=1024x",
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const struct step script[] = {
            GREETING,
            {"cmd=get_maxes", limits[i]},
            FAREWELL,
            END,
        };
        void *fake = NULL;
        char card[] = "card";

        (void)state;
        assert_int_equal(fake_open(&fake), 0);
        assert_int_equal(meet(fake, script, 0, card, 4), RUEDA_ERR_UNSUPPORTED);
        fake_close(&fake);
    }
}

static void a_card_that_is_none_is_refused_and_ours_left_alone(void **state)
{
    static const char *const answers[] = {
        "cmd=get_result rc=0 value=636172",
        "cmd=get_result rc=0 value=6361726473",
        "cmd=get_result rc=0 value=6361726X",
        "cmd=get_result rc=0 value=",
        "cmd=get_result rc=0",
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct step script[] = {
            GREETING,
            LIMITS,
            SPACE,
            BARRIER,
            {"cmd=get kvsname=kvs_1 key=rueda.card.0", answers[i]},
            FAREWELL,
            END,
        };
        char card[] = "mine";
        void *fake = NULL;

        (void)state;
        assert_int_equal(fake_open(&fake), 0);
        assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_MISMATCH);
        assert_said(fake, "same version");
        assert_string_equal(card, "mine");
        fake_close(&fake);
    }
}

static void a_key_that_is_not_there_is_told(void **state)
{
    static const struct step script[] = {
        GREETING,
        LIMITS,
        SPACE,
        BARRIER,
        {"cmd=get kvsname=kvs_1 key=rueda.card.0",
         "cmd=get_result rc=-1 msg=key_not_found value=unknown"},
        FAREWELL,
        END,
    };
    char card[] = "mine";

    assert_int_equal(meet(*state, script, 1, card, 4), RUEDA_ERR_INVALID);
    assert_said(*state, "key_not_found");
    assert_string_equal(card, "mine");
}

static void a_line_without_an_end_is_cut_short(void **state)
{
    static char endless[5000];
    const struct step script[] = {
        {"cmd=init pmi_version=1 pmi_subversion=1", endless},
        FAREWELL,
        END,
    };
    char card[] = "card";

    memset(endless, 'x', sizeof(endless) - 1);
    endless[0] = '!';
    assert_int_equal(meet(*state, script, 0, card, 4), RUEDA_ERR_INVALID);
    assert_said(*state, "a line without an end");
}

static void a_launcher_that_goes_is_lost(void **state)
{
    static const struct step script[] = {
        {"cmd=init pmi_version=1 pmi_subversion=1", "!cmd=response_to_ini"},
        END,
    };
    struct fake *fake = *state;
    char card[] = "card";

    fake->hangs_up = true;
    assert_int_equal(meet(fake, script, 0, card, 4), RUEDA_ERR_PEER_LOST);
    assert_said(fake, "closed PMI_FD");
}

static void silence_lasts_until_the_deadline(void **state)
{
    static const struct step script[] = {
        {"cmd=init pmi_version=1 pmi_subversion=1", "!cmd=response"},
        FAREWELL,
        END,
    };
    struct fake *fake = *state;
    int64_t start = rueda_clock_ns();
    char card[] = "card";

    fake->time_ms = 50;
    assert_int_equal(meet(fake, script, 0, card, 4), RUEDA_ERR_TIMEOUT);
    assert_said(fake, "did not answer in time");
    assert_true(rueda_clock_ns() - start >= 50 * MS);
    assert_true(rueda_clock_ns() - start < LONG_MS * MS);
}

static void ranks_that_do_not_come_are_blamed(void **state)
{
    static const struct step script[] = {
        GREETING, LIMITS, SPACE, {"cmd=barrier_in", NULL}, FAREWELL, END,
    };
    struct fake *fake = *state;
    char card[] = "mine";

    fake->time_ms = 50;
    assert_int_equal(meet(fake, script, 2, card, 4), RUEDA_ERR_TIMEOUT);
    assert_said(fake, "rank 2 waited for all 4 ranks, and not all ranks came");
    assert_said(fake, "did every rank call rueda_init()?");
    assert_string_equal(card, "mine");
}

static void the_socket_stays_open_and_keeps_its_flags(void **state)
{
    struct fake *fake = *state;
    int flags = fcntl(fake->theirs, F_GETFL);
    int descriptors = count_descriptors();
    char card[] = "....";

    assert_int_equal(meet(fake, getting, 1, card, 4), RUEDA_OK);
    assert_int_equal(fcntl(fake->theirs, F_GETFL), flags);
    assert_int_equal(fcntl(fake->theirs, F_GETFD), 0);
    assert_int_equal(count_descriptors(), descriptors);
}

static void a_job_of_one_has_nobody_to_tell(void **state)
{
    static const struct step script[] = {END};
    struct fake *fake = *state;
    char card[] = "card";

    fake->exchange.size = 1;
    assert_int_equal(meet(fake, script, 0, card, 4), RUEDA_OK);
}

/* ---- Where PMI_FD is no use ---------------------------------------------- */

/* As PMI_FD, or PMI_PORT if it begins with 'p'. */
static const char *only(void *arg, const char *name)
{
    const char *value = arg;

    if (value == NULL || strcmp(name, "PMI_JOBID") == 0)
        return NULL;
    return (value[0] == 'p') == (strcmp(name, "PMI_PORT") == 0) ? value : NULL;
}

static void without_a_socket_the_words_say_what_to_do(void **state)
{
    static const struct {
        const char *value;
        rueda_status status;
        const char *words;
    } cases[] = {
        {NULL, RUEDA_ERR_UNSUPPORTED, "PMI_FD is not set"},
        {"", RUEDA_ERR_UNSUPPORTED, "PMI_FD is not set"},
        {"port:1", RUEDA_ERR_UNSUPPORTED, "without -pmi-port"},
        {"7x", RUEDA_ERR_INVALID, "no descriptor"},
        {"-1", RUEDA_ERR_INVALID, "no descriptor"},
        {"99999999999", RUEDA_ERR_INVALID, "no descriptor"},
        {"1000000", RUEDA_ERR_IO, "Bad file descriptor"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_business_card_exchange exchange = {
            .size = 2,
            .environment = only,
            .arg = (void *)cases[i].value,
            .deadline_ns = INT64_MAX};
        struct rueda_text error = {{0}};
        char card[] = "card";

        assert_int_equal(
            rueda_launcher_exchange_pmi1(&exchange, card, 4, &error),
            cases[i].status);
        assert_non_null(strstr(error.chars, cases[i].words));
    }
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_open, fake_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE(rank_0_hands_out_its_card),
        FAKE(another_rank_gets_it_and_leaves_no_copy),
        FAKE(answers_may_come_byte_by_byte),
        FAKE(where_values_are_short_a_card_goes_in_parts),
        FAKE(a_large_card_fits_short_lines),
        FAKE(a_refusal_is_told_with_its_reason),
        FAKE(an_answer_to_another_question_is_refused),
        cmocka_unit_test(useless_limits_are_refused),
        cmocka_unit_test(a_card_that_is_none_is_refused_and_ours_left_alone),
        FAKE(a_key_that_is_not_there_is_told),
        FAKE(a_line_without_an_end_is_cut_short),
        FAKE(a_launcher_that_goes_is_lost),
        FAKE(silence_lasts_until_the_deadline),
        FAKE(ranks_that_do_not_come_are_blamed),
        FAKE(the_socket_stays_open_and_keeps_its_flags),
        FAKE(a_job_of_one_has_nobody_to_tell),
        cmocka_unit_test(without_a_socket_the_words_say_what_to_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
