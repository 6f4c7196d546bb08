/* SPDX-License-Identifier: Apache-2.0 */
#include "job/topology.h"
#include "unit/unit.h"

#define MOST 16

/* A job in a test: the host of each rank by a letter, and what the launcher
 * says, if anything. */
struct job {
    const char *hosts;
    int local_rank[MOST];
    int local_size[MOST];
    bool is_said;
};

static void fill_in(const struct job *job, struct rueda_topology_record *out)
{
    for (size_t i = 0; i < strlen(job->hosts); i++) {
        memset(&out[i], 0, sizeof(out[i]));
        /* Ids that differ in their last byte only. */
        memset(out[i].host, 0xee, sizeof(out[i].host));
        out[i].host[RUEDA_TOPOLOGY_ID_BYTES - 1] = (unsigned char)job->hosts[i];
        snprintf(out[i].name, sizeof(out[i].name), "host-%c", job->hosts[i]);
        out[i].local_rank = job->is_said ? job->local_rank[i] : -1;
        out[i].local_size =
            job->is_said && job->local_size[i] > 0 ? job->local_size[i] : -1;
    }
}

static struct rueda_topology *made(const struct job *job)
{
    struct rueda_topology_record records[MOST];
    struct rueda_topology *topology = NULL;
    struct rueda_text error = {{0}};

    fill_in(job, records);
    assert_int_equal(
        rueda_topology_new(records, (int)strlen(job->hosts), &topology, &error),
        RUEDA_OK);
    assert_true(rueda_text_is_empty(&error));
    return topology;
}

/* A field of the rows, rank by rank. */
#define check_field(topology, field, ...)                                      \
    do {                                                                       \
        const int wanted[] = {__VA_ARGS__};                                    \
        const int count = (int)(sizeof(wanted) / sizeof(wanted[0]));           \
        assert_int_equal((topology)->size, count);                             \
        for (int rank_ = 0; rank_ < count; rank_++)                            \
            assert_int_equal((topology)->rows[rank_].field, wanted[rank_]);    \
    } while (0)

static void hosts_are_numbered_as_ranks_show_them(void **state)
{
    const struct job job = {.hosts = "zazb"};
    struct rueda_topology *topology = made(&job);

    (void)state;
    assert_int_equal(topology->size, 4);
    assert_int_equal(topology->host_count, 3);
    check_field(topology, host, 0, 1, 0, 2);
    check_field(topology, index, 0, 0, 1, 0);
    assert_string_equal(topology->hosts[0].name, "host-z");
    assert_string_equal(topology->hosts[1].name, "host-a");
    assert_int_equal(topology->hosts[0].size, 2);
    assert_int_equal(topology->hosts[2].size, 1);
    assert_int_equal(topology->hosts[2].first, 3);
    assert_int_equal(topology->hosts[1].id[RUEDA_TOPOLOGY_ID_BYTES - 1], 'a');
    assert_false(topology->is_homogeneous);
    rueda_topology_free(topology);
}

static void without_a_launcher_ranks_are_numbered_in_their_host(void **state)
{
    const struct job job = {.hosts = "aabbba"};
    struct rueda_topology *topology = made(&job);

    (void)state;
    assert_false(topology->is_launchers);
    check_field(topology, local_rank, 0, 1, 0, 1, 2, 2);
    check_field(topology, local_size, 3, 3, 3, 3, 3, 3);
    check_field(topology, cross_rank, 0, 0, 1, 1, 1, 0);
    check_field(topology, cross_size, 2, 2, 2, 2, 2, 2);
    assert_true(topology->is_homogeneous);
    rueda_topology_free(topology);
}

static void only_hosts_that_have_my_local_rank_are_crossed(void **state)
{
    const struct job job = {.hosts = "abbccc"};
    struct rueda_topology *topology = made(&job);

    (void)state;
    check_field(topology, local_rank, 0, 0, 1, 0, 1, 2);
    check_field(topology, local_size, 1, 2, 2, 3, 3, 3);
    check_field(topology, cross_rank, 0, 1, 0, 2, 1, 0);
    check_field(topology, cross_size, 3, 3, 2, 3, 2, 1);
    assert_false(topology->is_homogeneous);
    rueda_topology_free(topology);
}

static void the_launcher_numbers_the_ranks_of_a_host(void **state)
{
    const struct job job = {
        .hosts = "aabb", .local_rank = {1, 0, 0, 1}, .is_said = true};
    struct rueda_topology *topology = made(&job);

    (void)state;
    assert_true(topology->is_launchers);
    check_field(topology, index, 0, 1, 0, 1);
    check_field(topology, local_rank, 1, 0, 0, 1);
    check_field(topology, local_size, 2, 2, 2, 2);
    check_field(topology, cross_rank, 0, 0, 1, 1);
    check_field(topology, cross_size, 2, 2, 2, 2);
    rueda_topology_free(topology);
}

/* Two machines with two containers each, which share no memory. */
static void the_launchers_word_stands_against_the_hosts(void **state)
{
    const struct job job = {.hosts = "abcd",
                            .local_rank = {0, 1, 0, 1},
                            .local_size = {2, 2, 2, 2},
                            .is_said = true};
    struct rueda_topology *topology = made(&job);

    (void)state;
    assert_int_equal(topology->host_count, 4);
    check_field(topology, local_rank, 0, 1, 0, 1);
    check_field(topology, local_size, 2, 2, 2, 2);
    check_field(topology, cross_rank, 0, 0, 1, 1);
    check_field(topology, cross_size, 2, 2, 2, 2);
    assert_true(topology->is_homogeneous);
    rueda_topology_free(topology);
}

/* Every rank believes to be alone on its host, and no two get one place. */
static void ranks_of_a_host_with_one_local_rank_stay_apart(void **state)
{
    const struct job job = {.hosts = "baba",
                            .local_rank = {0, 0, 0, 0},
                            .local_size = {1, 1, 1, 1},
                            .is_said = true};
    struct rueda_topology *topology = made(&job);

    (void)state;
    check_field(topology, local_size, 1, 1, 1, 1);
    check_field(topology, cross_rank, 0, 2, 1, 3);
    check_field(topology, cross_size, 4, 4, 4, 4);
    rueda_topology_free(topology);
}

static void a_local_size_is_never_below_its_ranks(void **state)
{
    const struct job job = {
        .hosts = "aab", .local_rank = {0, 5, 3}, .is_said = true};
    struct rueda_topology *topology = made(&job);

    (void)state;
    check_field(topology, local_rank, 0, 5, 3);
    check_field(topology, local_size, 6, 6, 4);
    rueda_topology_free(topology);
}

static void a_launcher_that_speaks_of_some_ranks_is_not_heard(void **state)
{
    const struct job job = {.hosts = "aab",
                            .local_rank = {1, -1, 0},
                            .local_size = {9, 9, 9},
                            .is_said = true};
    struct rueda_topology *topology = made(&job);

    (void)state;
    assert_false(topology->is_launchers);
    check_field(topology, local_rank, 0, 1, 0);
    check_field(topology, local_size, 2, 2, 1);
    rueda_topology_free(topology);
}

static void what_cannot_be_is_refused(void **state)
{
    static const int bad[][2] = {{-2, -1},    {0, 0},     {2, 2}, {0, -2},
                                 {65536, -1}, {0, 65537}, {-1, 0}};
    struct rueda_topology_record *records = calloc(2, sizeof(*records));
    struct rueda_topology *topology = NULL;
    struct rueda_text error = {{0}};

    (void)state;
    assert_non_null(records);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&error, 0, sizeof(error));
        records[0].local_rank = records[0].local_size = -1;
        records[1].local_rank = bad[i][0];
        records[1].local_size = bad[i][1];
        assert_int_equal(rueda_topology_new(records, 2, &topology, &error),
                         RUEDA_ERR_INVALID);
        assert_non_null(strstr(error.chars, "rank 1 says"));
    }
    assert_int_equal(rueda_topology_new(records, 0, &topology, &error),
                     RUEDA_ERR_LIMIT);
    assert_int_equal(
        rueda_topology_new(records, RUEDA_TOPOLOGY_MAX + 1, &topology, &error),
        RUEDA_ERR_LIMIT);
    assert_null(topology);
    free(records);
}

/* 65,536 ranks in turns on 8192 hosts; quadratic work would not end in time. */
static void the_largest_job_is_numbered_and_packed(void **state)
{
    const int hosts = 8192;
    struct rueda_topology_record *records =
        calloc(RUEDA_TOPOLOGY_MAX, sizeof(*records));
    struct rueda_topology *topology = NULL;
    struct rueda_topology *again = NULL;
    struct rueda_text error = {{0}};
    unsigned char *bytes;

    (void)state;
    assert_non_null(records);
    for (int i = 0; i < RUEDA_TOPOLOGY_MAX; i++) {
        int host = i % hosts;

        memcpy(records[i].host, &host, sizeof(host));
        records[i].local_rank = records[i].local_size = -1;
    }
    assert_int_equal(
        rueda_topology_new(records, RUEDA_TOPOLOGY_MAX, &topology, &error),
        RUEDA_OK);
    assert_int_equal(topology->host_count, hosts);
    assert_true(topology->is_homogeneous);
    bytes = malloc(rueda_topology_bytes(topology));
    assert_non_null(bytes);
    rueda_topology_pack(topology, bytes);
    assert_int_equal(rueda_topology_unpack(
                         bytes, rueda_topology_bytes(topology), &again, &error),
                     RUEDA_OK);
    for (int i = 0; i < RUEDA_TOPOLOGY_MAX; i++) {
        assert_int_equal(again->rows[i].host, i % hosts);
        assert_int_equal(again->rows[i].local_rank, i / hosts);
        assert_int_equal(again->rows[i].cross_rank, i % hosts);
        assert_int_equal(again->rows[i].cross_size, hosts);
    }
    rueda_topology_free(again);
    rueda_topology_free(topology);
    free(bytes);
    free(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_numbered_as_ranks_show_them),
        cmocka_unit_test(without_a_launcher_ranks_are_numbered_in_their_host),
        cmocka_unit_test(only_hosts_that_have_my_local_rank_are_crossed),
        cmocka_unit_test(the_launcher_numbers_the_ranks_of_a_host),
        cmocka_unit_test(the_launchers_word_stands_against_the_hosts),
        cmocka_unit_test(ranks_of_a_host_with_one_local_rank_stay_apart),
        cmocka_unit_test(a_local_size_is_never_below_its_ranks),
        cmocka_unit_test(a_launcher_that_speaks_of_some_ranks_is_not_heard),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(the_largest_job_is_numbered_and_packed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
