/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "job/encryption.h"
#include "unit/unit.h"

/* Ranks 0, 1, ... with these settings, by the first letter but for
 * "authenticate", which is p; all at this address. */
static rueda_status decide(const char *settings, const char *where,
                           rueda_config_encrypt *out, struct rueda_text *why)
{
    struct rueda_encrypt_vote vote = {.far_rank = 0};
    struct rueda_text error = {{0}};
    struct rueda_address address;

    assert_int_equal(rueda_address_find(where, &address, 1, &error), 1);
    for (int rank = 0; settings[rank] != '\0'; rank++) {
        static const char letters[] = "aynp";
        const char *at = strchr(letters, settings[rank]);

        assert_non_null(at);
        rueda_encrypt_hear(&vote, rank, (rueda_config_encrypt)(at - letters),
                           &address, 1);
    }
    return rueda_encrypt_decide(&vote, out, why);
}

static void one_decision_comes_of_all_settings(void **state)
{
    static const struct {
        const char *settings;
        rueda_config_encrypt near;
        rueda_config_encrypt far;
    } rows[] = {
        {"aa", RUEDA_ENCRYPT_NEVER, RUEDA_ENCRYPT_ALWAYS},
        {"ay", RUEDA_ENCRYPT_ALWAYS, RUEDA_ENCRYPT_ALWAYS},
        {"na", RUEDA_ENCRYPT_NEVER, RUEDA_ENCRYPT_NEVER},
        {"nn", RUEDA_ENCRYPT_NEVER, RUEDA_ENCRYPT_NEVER},
        {"pp", RUEDA_ENCRYPT_AUTHENTICATE, RUEDA_ENCRYPT_AUTHENTICATE},
        {"ap", RUEDA_ENCRYPT_AUTHENTICATE, RUEDA_ENCRYPT_ALWAYS},
        {"py", RUEDA_ENCRYPT_ALWAYS, RUEDA_ENCRYPT_ALWAYS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rueda_text why = {{0}};
        rueda_config_encrypt found;

        assert_int_equal(decide(rows[i].settings, "10.1.2.3:4", &found, &why),
                         RUEDA_OK);
        assert_int_equal(found, rows[i].near);
        assert_int_equal(
            decide(rows[i].settings, "[2001:db8::1]:4", &found, &why),
            RUEDA_OK);
        assert_int_equal(found, rows[i].far);
        assert_false(rueda_text_is_empty(&why));
    }
}

static void one_far_address_of_one_rank_seals_the_job(void **state)
{
    struct rueda_encrypt_vote vote = {.far_rank = 0};
    struct rueda_address addresses[2];
    struct rueda_text why = {{0}};
    rueda_config_encrypt found;

    (void)state;
    rueda_address_find("10.0.0.1:4", &addresses[0], 1, &why);
    rueda_address_find("11.0.0.1:4", &addresses[1], 1, &why);
    rueda_encrypt_hear(&vote, 0, RUEDA_ENCRYPT_AUTO, addresses, 1);
    rueda_encrypt_hear(&vote, 1, RUEDA_ENCRYPT_AUTO, addresses, 2);
    rueda_encrypt_hear(&vote, 2, RUEDA_ENCRYPT_AUTO, addresses, 1);
    assert_int_equal(rueda_encrypt_decide(&vote, &found, &why), RUEDA_OK);
    assert_int_equal(found, RUEDA_ENCRYPT_ALWAYS);
    assert_non_null(strstr(why.chars, "rank 1 listens at 11.0.0.1:4"));
}

static void contradictions_are_named(void **state)
{
    struct rueda_text why = {{0}};
    rueda_config_encrypt found;

    (void)state;
    assert_int_equal(decide("aany", "10.1.2.3:4", &found, &why),
                     RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(why.chars, "rank 3 has RUEDA_ENCRYPT=always"));
    assert_non_null(strstr(why.chars, "rank 2 has RUEDA_ENCRYPT=never"));
    why.chars[0] = '\0';
    assert_int_equal(decide("np", "10.1.2.3:4", &found, &why),
                     RUEDA_ERR_MISMATCH);
    assert_non_null(strstr(why.chars, "rank 1 has RUEDA_ENCRYPT=authenticate"));
}

static void the_line_names_every_kind_of_traffic(void **state)
{
    static const rueda_config_encrypt choices[] = {
        RUEDA_ENCRYPT_ALWAYS, RUEDA_ENCRYPT_NEVER, RUEDA_ENCRYPT_AUTHENTICATE};
    static const char *const words[] = {
        "are sealed (because)", "are neither encrypted nor authenticated",
        "are authenticated and not encrypted"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rueda_text line = {{0}};

        rueda_encrypt_explain(choices[i], "because", &line);
        assert_non_null(strstr(line.chars, words[i]));
        assert_non_null(
            strstr(line.chars, "the store and last words are sealed"));
        assert_non_null(
            strstr(line.chars, i == 0 ? "negotiation is sealed"
                                      : "negotiation is authenticated"));
        assert_non_null(strstr(
            line.chars, i == 1 ? "objects, bytes and integers are authenticated"
                               : "objects are authenticated"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_decision_comes_of_all_settings),
        cmocka_unit_test(one_far_address_of_one_rank_seals_the_job),
        cmocka_unit_test(contradictions_are_named),
        cmocka_unit_test(the_line_names_every_kind_of_traffic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
