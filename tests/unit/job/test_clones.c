/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts with one id are told apart by the addresses at which ranks listen. */
#include "job/clones.h"

#include <stdio.h>
#include <stdlib.h>

#include "unit/unit.h"

#define MOST 8

/*
 * ids: a letter for each rank, the id of its host before. contacts: where each
 * listens. hosts: a letter for each rank, equal where they are of one host.
 */
static void check(const char *ids, const char *const *contacts,
                  const char *hosts)
{
    struct rueda_topology_record records[MOST] = {{.local_rank = 0}};
    char texts[MOST * 64] = "";
    size_t used = 0;
    int size = (int)strlen(ids);

    for (int i = 0; i < size; i++) {
        memset(records[i].host, ids[i], sizeof(records[i].host));
        used += 1 + (size_t)snprintf(texts + used, sizeof(texts) - used, "%s",
                                     contacts[i]);
    }
    assert_int_equal(rueda_clones_part(records, size, texts), RUEDA_OK);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < i; j++)
            if ((memcmp(records[i].host, records[j].host,
                        sizeof(records[i].host)) == 0) !=
                (hosts[i] == hosts[j]))
                fail_msg("ranks %d and %d of \"%s\"", j, i, hosts);
}

static void ranks_of_one_host_stay_together(void **state)
{
    static const char *const contacts[] = {
        "10.0.0.1:4000 [fd00::1]:4000", "10.0.0.1:4001 [fd00::1]:4001",
        "10.0.0.2:4000", "10.0.0.1:5 [fd00::1]:70", "10.0.0.2:44444"};

    (void)state;
    check("aabab", contacts, "aabab");
}

static void clones_are_told_apart(void **state)
{
    static const char *const contacts[] = {"10.0.0.1:4000", "10.0.0.2:4000",
                                           "10.0.0.2:4001", "10.0.0.1:4001",
                                           "10.0.0.11:4000"};

    (void)state;
    check("aaaaa", contacts, "xyyxz");
}

/* Each host that runs containers has this bridge. */
static void clones_may_share_an_address(void **state)
{
    static const char *const contacts[] = {"172.17.0.1:4000 10.0.0.1:4000",
                                           "172.17.0.1:4000 10.0.0.2:4000",
                                           "172.17.0.1:4001 10.0.0.1:4001"};

    (void)state;
    check("aaa", contacts, "xyx");
}

static void an_address_that_comes_or_goes_parts_nobody(void **state)
{
    static const char *const contacts[] = {
        "10.0.0.1:4000", "[fd00::7]:4000 10.0.0.1:4001", "10.0.0.1:4002", ""};

    (void)state;
    check("aaaa", contacts, "xxxx");
}

static void who_listens_nowhere_is_left_alone(void **state)
{
    static const char *const contacts[] = {"", "", ""};

    (void)state;
    check("aab", contacts, "aab");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_one_host_stay_together),
        cmocka_unit_test(clones_are_told_apart),
        cmocka_unit_test(clones_may_share_an_address),
        cmocka_unit_test(an_address_that_comes_or_goes_parts_nobody),
        cmocka_unit_test(who_listens_nowhere_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
