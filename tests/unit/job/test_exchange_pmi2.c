/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/fake_pmi.h"

#define GREETING                                                               \
    {                                                                          \
        "cmd=init pmi_version=2 pmi_subversion=0",                             \
            "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0"         \
    }
#define JOIN(rank)                                                             \
    {                                                                          \
        "cmd=fullinit;pmijobid=7;pmirank=" rank ";threaded=FALSE;",            \
            "cmd=fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;"       \
            "rank=" rank ";size=4;appnum=-1;"                                  \
    }
#define SPACE                                                                  \
    {                                                                          \
        "cmd=job-getid;", "cmd=job-getid-response;rc=0;jobid=7.1;"             \
    }
#define FENCE                                                                  \
    {                                                                          \
        "cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;"                       \
    }
#define GET "cmd=kvs-get;jobid=7.1;srcid=0;key=rueda.card.0;"
#define LEAVE                                                                  \
    {                                                                          \
        "cmd=finalize;", "cmd=finalize-response;rc=0;"                         \
    }
#define FAREWELL                                                               \
    {                                                                          \
        "cmd=finalize;", NULL                                                  \
    }
#define END                                                                    \
    {                                                                          \
        NULL, NULL                                                             \
    }

static const struct step getting[] = {
    GREETING,
    JOIN("3"),
    SPACE,
    FENCE,
    {GET, "cmd=kvs-get-response;rc=0;found=TRUE;value=63617264;"},
    LEAVE,
    END,
};

static rueda_status meet(struct fake *fake, const struct step *script, int rank,
                         char *card, size_t bytes)
{
    return fake_meet(fake, rueda_launcher_exchange_pmi2, script, rank, card,
                     bytes);
}

static void rank_0_hands_out_its_card(void **state)
{
    static const struct step script[] = {
        GREETING,
        JOIN("0"),
        SPACE,
        {"cmd=kvs-put;key=rueda.card.0;value=63617264;",
         "cmd=kvs-put-response;rc=0;"},
        FENCE,
        LEAVE,
        END,
    };
    char card[] = "card";

    assert_int_equal(meet(*state, script, 0, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
}

static void another_rank_gets_it(void **state)
{
    char card[] = "....";

    assert_int_equal(meet(*state, getting, 3, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
}

static void answers_may_come_byte_by_byte(void **state)
{
    struct fake *fake = *state;
    char card[] = "....";

    fake->is_slow = true;
    assert_int_equal(meet(fake, getting, 3, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
}

static void two_answers_in_one_piece_are_two(void **state)
{
    static const struct step script[] = {
        {"cmd=init pmi_version=2 pmi_subversion=0",
         "!cmd=response_to_init rc=0\n"
         "    45cmd=fullinit-response;rc=0;rank=1;size=4;x=y;"},
        {"cmd=fullinit;pmijobid=7;pmirank=1;threaded=FALSE;", NULL},
        SPACE,
        FENCE,
        {GET, "cmd=kvs-get-response;rc=0;found=TRUE;value=63617264;"},
        LEAVE,
        END,
    };
    char card[] = "....";

    assert_int_equal(meet(*state, script, 1, card, 4), RUEDA_OK);
    assert_string_equal(card, "card");
}

static void a_rank_under_a_wrong_number_is_told(void **state)
{
    static const struct step script[] = {
        GREETING,
        {"cmd=fullinit;pmijobid=7;pmirank=2;threaded=FALSE;",
         "cmd=fullinit-response;rc=0;rank=1;size=8;"},
        FAREWELL,
        END,
    };
    char card[] = "mine";

    assert_int_equal(meet(*state, script, 2, card, 4), RUEDA_ERR_MISMATCH);
    assert_said(*state, "rank 1 of 8, the settings say rank 2 of 4");
}

static void a_place_that_is_not_told_is_refused(void **state)
{
    static const struct step script[] = {
        GREETING,
        {"cmd=fullinit;pmijobid=7;pmirank=2;threaded=FALSE;",
         "cmd=fullinit-response;rc=0;rank=two;size=4;"},
        FAREWELL,
        END,
    };
    char card[] = "mine";

    assert_int_equal(meet(*state, script, 2, card, 4), RUEDA_ERR_INVALID);
    assert_said(*state, "our rank and size");
}

static void a_card_that_is_none_is_refused_and_ours_left_alone(void **state)
{
    static const char *const answers[] = {
        "cmd=kvs-get-response;rc=0;found=FALSE;",
        "cmd=kvs-get-response;rc=0;value=63617264;",
        "cmd=kvs-get-response;rc=0;found=TRUE;",
        "cmd=kvs-get-response;rc=0;found=TRUE;value=6361;",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        const struct step script[] = {
            GREETING, JOIN("1"), SPACE, FENCE, {GET, answers[i]}, FAREWELL, END,
        };
        char card[] = "mine";
        void *fake = NULL;

        assert_int_equal(fake_open(&fake), 0);
        assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_MISMATCH);
        assert_said(fake, "same version");
        assert_string_equal(card, "mine");
        fake_close(&fake);
    }
}

static void a_fence_that_fails_is_told_with_its_reason(void **state)
{
    static const struct step script[] = {
        GREETING,
        JOIN("1"),
        SPACE,
        {"cmd=kvs-fence;",
         "cmd=kvs-fence-response;rc=14;errmsg=failed to send;"},
        FAREWELL,
        END,
    };
    char card[] = "mine";

    assert_int_equal(meet(*state, script, 1, card, 4), RUEDA_ERR_INVALID);
    assert_said(*state, "code 14, failed to send");
}

static void a_length_that_is_none_is_refused(void **state)
{
    static const struct {
        const char *reply;
        const char *words;
    } cases[] = {
        {"!cmd=fullinit-response;rc=0;", "no length"},
        {"!      cmd=", "no length"},
        {"!1 2   cmd=", "no length"},
        {"!-12   cmd=", "no length"},
        {"!999999cmd=", "too long"},
        {"!0     ", "fullinit-response"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct step script[] = {
            GREETING,
            {"cmd=fullinit;pmijobid=7;pmirank=1;threaded=FALSE;",
             cases[i].reply},
            FAREWELL,
            END,
        };
        char card[] = "mine";
        void *fake = NULL;

        assert_int_equal(fake_open(&fake), 0);
        assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_INVALID);
        assert_said(fake, cases[i].words);
        fake_close(&fake);
    }
}

static void half_a_message_and_the_end_is_a_loss(void **state)
{
    static const struct step script[] = {
        GREETING,
        {"cmd=fullinit;pmijobid=7;pmirank=1;threaded=FALSE;",
         "!90    cmd=fullinit-resp"},
        END,
    };
    struct fake *fake = *state;
    char card[] = "mine";

    fake->hangs_up = true;
    assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_PEER_LOST);
}

static void half_a_message_lasts_until_the_deadline(void **state)
{
    static const struct step script[] = {
        GREETING,
        {"cmd=fullinit;pmijobid=7;pmirank=1;threaded=FALSE;",
         "!90    cmd=fullinit-resp"},
        FAREWELL,
        END,
    };
    struct fake *fake = *state;
    char card[] = "mine";

    fake->time_ms = 50;
    assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_TIMEOUT);
    assert_said(fake, "did not answer in time");
}

static void ranks_that_do_not_come_are_blamed(void **state)
{
    static const struct step script[] = {
        GREETING, JOIN("1"), SPACE, {"cmd=kvs-fence;", NULL}, FAREWELL, END,
    };
    struct fake *fake = *state;
    int64_t start = rueda_clock_ns();
    char card[] = "mine";

    fake->time_ms = 50;
    assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_TIMEOUT);
    assert_said(fake, "rank 1 waited for all 4 ranks, and not all ranks came");
    assert_true(rueda_clock_ns() - start >= 50 * MS);
}

static const char *hostile_job(void *arg, const char *name)
{
    if (strcmp(name, "PMI_JOBID") == 0)
        return "7;cmd=abort";
    return fake_environment(arg, name);
}

static void a_job_that_would_be_two_pairs_is_not_sent(void **state)
{
    static const struct step script[] = {
        GREETING,
        {"cmd=fullinit;pmijobid=0;pmirank=1;threaded=FALSE;",
         "cmd=fullinit-response;rc=1;"},
        FAREWELL,
        END,
    };
    struct fake *fake = *state;
    char card[] = "mine";

    fake->exchange.environment = hostile_job;
    assert_int_equal(meet(fake, script, 1, card, 4), RUEDA_ERR_INVALID);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, fake_open, fake_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE(rank_0_hands_out_its_card),
        FAKE(another_rank_gets_it),
        FAKE(answers_may_come_byte_by_byte),
        FAKE(two_answers_in_one_piece_are_two),
        FAKE(a_rank_under_a_wrong_number_is_told),
        FAKE(a_place_that_is_not_told_is_refused),
        cmocka_unit_test(a_card_that_is_none_is_refused_and_ours_left_alone),
        FAKE(a_fence_that_fails_is_told_with_its_reason),
        cmocka_unit_test(a_length_that_is_none_is_refused),
        FAKE(half_a_message_and_the_end_is_a_loss),
        FAKE(half_a_message_lasts_until_the_deadline),
        FAKE(ranks_that_do_not_come_are_blamed),
        FAKE(a_job_that_would_be_two_pairs_is_not_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
