/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a seat's job are introduced, in tables of environments. */
#include "unit/seats.h"
#include "unit/unit.h"

#define STEP "SLURM_STEP_ID=2", "SLURM_PROCID=5", "SLURM_NTASKS=8"
#define PMI  "PMI_RANK=4", "PMI_SIZE=7"
#define MPI                                                                    \
    "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=6",                        \
        "OMPI_COMM_WORLD_LOCAL_RANK=1"
#define TORCH   "RANK=2", "WORLD_SIZE=5", "TORCHELASTIC_RUN_ID=r"
#define HOROVOD "HOROVOD_RANK=1", "HOROVOD_SIZE=4"
#define RUEDA   "RUEDA_RANK=0", "RUEDA_SIZE=3"

static void refused(const struct rueda_seat_query *query, rueda_status status,
                    const char *words)
{
    struct rueda_text error = {{0}};
    struct rueda_seat seat;

    assert_int_equal(rueda_seat_find(query, &seat, &error), status);
    if (strstr(error.chars, words) == NULL)
        fail_msg("\"%s\" is not in: %s", words, error.chars);
}

static void every_launcher_has_its_way(void **state)
{
    static const struct {
        rueda_introduction introduction;
        const char *name; /* of the job, or of the store */
        environment table;
    } cases[] = {
        {RUEDA_INTRODUCE_SOCKET, "rueda", {RUEDA}},
        {RUEDA_INTRODUCE_SOCKET, "mine", {RUEDA, "RUEDA_JOB=mine"}},
        {RUEDA_INTRODUCE_SOCKET, "horovod", {HOROVOD, "HOROVOD_LOCAL_SIZE=4"}},
        {RUEDA_INTRODUCE_SOCKET,
         "horovod-10.0.0.1-4242",
         {HOROVOD, "HOROVOD_LOCAL_SIZE=4",
          "HOROVOD_GLOO_RENDEZVOUS_ADDR=10.0.0.1",
          "HOROVOD_GLOO_RENDEZVOUS_PORT=4242"}},
        {RUEDA_INTRODUCE_SOCKET,
         "torchrun-node1-29500",
         {TORCH, "LOCAL_WORLD_SIZE=5", "MASTER_ADDR=node1",
          "MASTER_PORT=29500"}},
        {RUEDA_INTRODUCE_SOCKET,
         "mine",
         {TORCH, "LOCAL_WORLD_SIZE=5", "MASTER_ADDR=node1", "MASTER_PORT=29500",
          "RUEDA_JOB=mine"}},
        {RUEDA_INTRODUCE_PMIX,
         "openmpi-7",
         {MPI, "PMIX_NAMESPACE=7", "OMPI_MCA_ess_base_jobid=7"}},
        {RUEDA_INTRODUCE_PMIX, "openmpi", {MPI, "PMIX_RANK=3"}},
        {RUEDA_INTRODUCE_SOCKET,
         "openmpi-7",
         {MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=6", "OMPI_MCA_ess_base_jobid=7"}},
        {RUEDA_INTRODUCE_SOCKET,
         "openmpi-8",
         {MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=6", "OMPI_MCA_orte_ess_jobid=8"}},
        {RUEDA_INTRODUCE_PMI1, "hydra-4711", {PMI, "PMI_FD=6"}},
        {RUEDA_INTRODUCE_PMIX,
         "slurm-77.2",
         {STEP, "SLURM_JOB_ID=77", "PMIX_NAMESPACE=s", "PMI_FD=3"}},
        {RUEDA_INTRODUCE_PMI2,
         "slurm-77.2",
         {STEP, "SLURM_JOB_ID=77", "PMI_FD=3", "SLURM_STEP_NUM_NODES=1"}},
        {RUEDA_INTRODUCE_SOCKET,
         "slurm-77.2",
         {STEP, "SLURM_JOB_ID=77", "SLURM_STEP_NUM_NODES=1",
          "SLURM_STEP_NODELIST=a"}},
        {RUEDA_INTRODUCE_SOCKET,
         "slurm-77.2",
         {STEP, "SLURM_JOB_ID=77", "SLURM_NODEID=0",
          "SLURM_STEP_TASKS_PER_NODE=8"}},
        /* 31 * 1000 + 2 = 31002 = 2 * 12000 + 7002 */
        {RUEDA_INTRODUCE_STORE,
         "n07:27002",
         {STEP, "SLURM_JOB_ID=1000", "SLURM_STEP_NUM_NODES=2",
          "SLURM_STEP_NODELIST=n[07-08]"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_seat seat = seat_in(cases[i].table);
        bool is_store = cases[i].introduction == RUEDA_INTRODUCE_STORE;

        assert_int_equal(seat.introduction, cases[i].introduction);
        assert_string_equal(is_store ? seat.store : seat.job, cases[i].name);
        if (!is_store)
            assert_string_equal(seat.store, "");
    }
}

static void ports_of_slurm_are_below_those_of_linux(void **state)
{
    char job[40];
    environment table = {STEP, "SLURM_STEP_NUM_NODES=2",
                         "SLURM_STEP_NODELIST=n", job, NULL};

    (void)state;
    for (uint32_t id = 1; id < UINT32_MAX / 2; id = id * 3 + 1) {
        int port;

        snprintf(job, sizeof(job), "SLURM_JOB_ID=%u", id);
        port = atoi(seat_in(table).store + 2);
        assert_in_range(port, 20000, 31999);
    }
}

/* The order: alone, the caller, the store, the launcher. */
static void who_has_another_way_takes_it(void **state)
{
    static environment alone = {"RUEDA_RANK=0", "RUEDA_SIZE=1",
                                "RUEDA_STORE=a:1", NULL};
    static environment hosts = {TORCH, "LOCAL_WORLD_SIZE=1", NULL};
    static environment store = {MPI, "PMIX_RANK=3", "RUEDA_STORE=[::1]:9",
                                NULL};
    struct rueda_seat_query query = query_of(alone);
    struct rueda_seat seat;

    (void)state;
    query.has_exchange = true;
    assert_int_equal(found(&query).introduction, RUEDA_INTRODUCE_NONE);
    query.arg = (void *)hosts;
    assert_int_equal(found(&query).introduction, RUEDA_INTRODUCE_CALLER);
    query.arg = (void *)store;
    assert_int_equal(found(&query).introduction, RUEDA_INTRODUCE_CALLER);
    query.has_exchange = false;
    seat = found(&query);
    assert_int_equal(seat.introduction, RUEDA_INTRODUCE_STORE);
    assert_string_equal(seat.store, "[::1]:9");
    query.store = "b:2";
    query.job = "other";
    seat = found(&query);
    assert_string_equal(seat.store, "b:2");
    assert_string_equal(seat.job, "other");
}

static void ranks_of_several_hosts_need_a_place_to_meet(void **state)
{
    static const struct {
        rueda_status status;
        const char *words;
        environment table;
    } cases[] = {
        {RUEDA_ERR_INVALID,
         "Horovod's HOROVOD_LOCAL_SIZE is 2 in a job of 4 ranks: they are on "
         "several hosts, and nothing says where they meet; set RUEDA_STORE",
         {HOROVOD, "HOROVOD_LOCAL_SIZE=2"}},
        {RUEDA_ERR_INVALID,
         "HOROVOD_LOCAL_SIZE is not set, so the 4 ranks may be on several",
         {HOROVOD}},
        {RUEDA_ERR_INVALID, "hand over torch's store", {TORCH}},
        {RUEDA_ERR_INVALID,
         "(MASTER_ADDR and a free port, say) and RUEDA_KEY_FILE for all ranks",
         {TORCH, "LOCAL_WORLD_SIZE=2"}},
        {RUEDA_ERR_INVALID,
         "Open MPI's OMPI_COMM_WORLD_LOCAL_SIZE is 3",
         {MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=3"}},
        {RUEDA_ERR_INVALID, "PMI_RANK is set and PMI_FD is not", {PMI}},
        {RUEDA_ERR_UNSUPPORTED, "PMI_PORT is (\"h:1\")", {PMI, "PMI_PORT=h:1"}},
        {RUEDA_ERR_INVALID,
         "SLURM_STEP_NODELIST (\"\") do not say where to meet",
         {STEP, "SLURM_JOB_ID=1", "SLURM_STEP_NUM_NODES=2"}},
        {RUEDA_ERR_INVALID,
         "SLURM_STEP_NODELIST (\"n[\")",
         {STEP, "SLURM_JOB_ID=1", "SLURM_STEP_NUM_NODES=2",
          "SLURM_STEP_NODELIST=n["}},
        {RUEDA_ERR_INVALID,
         "srun --mpi=pmi2",
         {STEP, "SLURM_JOB_ID=x", "SLURM_STEP_NUM_NODES=2",
          "SLURM_STEP_NODELIST=n"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_seat_query query = query_of(cases[i].table);

        refused(&query, cases[i].status, cases[i].words);
    }
}

static void beside_mpi_ranks_of_one_host_meet_at_a_socket(void **state)
{
    static const struct {
        const char *job;
        environment table;
    } cases[] = {
        {"openmpi-7",
         {MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=6", "PMIX_RANK=3",
          "PMIX_NAMESPACE=9", "OMPI_MCA_ess_base_jobid=7"}},
        {"openmpi-prterun-node-12@1",
         {MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=6", "PMIX_RANK=3",
          "PMIX_NAMESPACE=prterun-node-12@1"}},
        {"hydra-4711", {PMI, "PMI_FD=6", "MPI_LOCALNRANKS=7"}},
        {"mine", {PMI, "PMI_FD=6", "MPI_LOCALNRANKS=7", "RUEDA_JOB=mine"}},
        {"slurm-77.2",
         {STEP, "SLURM_JOB_ID=77", "PMI_FD=3", "SLURM_STEP_NUM_NODES=1"}},
        {"slurm-77.2",
         {STEP, "SLURM_JOB_ID=77", "PMIX_NAMESPACE=s", "SLURM_NODEID=0",
          "SLURM_STEP_TASKS_PER_NODE=8"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_seat_query query = query_of(cases[i].table);
        struct rueda_seat seat;

        query.has_mpi = true;
        seat = found(&query);
        assert_int_equal(seat.introduction, RUEDA_INTRODUCE_SOCKET);
        assert_string_equal(seat.job, cases[i].job);
        assert_non_null(strstr(seat.why.chars, "an MPI library is loaded"));
        query.has_mpi = false;
        seat = found(&query);
        assert_int_not_equal(seat.introduction, RUEDA_INTRODUCE_SOCKET);
        assert_null(strstr(seat.why.chars, "MPI library"));
    }
}

static void beside_mpi_ranks_of_several_hosts_need_a_store(void **state)
{
    static environment tables[] = {
        {MPI, "OMPI_COMM_WORLD_LOCAL_SIZE=3", "PMIX_RANK=3"},
        {MPI, "PMIX_RANK=3"}, /* not said to be on one */
        {PMI, "PMI_FD=6", "MPI_LOCALNRANKS=6"},
        {STEP, "SLURM_JOB_ID=77", "PMI_FD=3", "SLURM_STEP_NUM_NODES=2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct rueda_seat_query query = query_of(tables[i]);

        query.has_mpi = true;
        refused(&query, RUEDA_ERR_INVALID,
                "set RUEDA_STORE=host:port and RUEDA_KEY_FILE for all ranks");
        refused(&query, RUEDA_ERR_INVALID, "an MPI library is loaded");
        query.store = "a:1";
        assert_int_equal(found(&query).introduction, RUEDA_INTRODUCE_STORE);
        query.has_exchange = true;
        assert_int_equal(found(&query).introduction, RUEDA_INTRODUCE_CALLER);
    }
}

/* A rank that uses no exchange of the launcher has nothing to leave to MPI. */
static void other_launchers_do_not_care_about_mpi(void **state)
{
    static environment tables[] = {
        {RUEDA},
        {TORCH, "LOCAL_WORLD_SIZE=5"},
        {STEP, "SLURM_JOB_ID=1", "SLURM_STEP_NUM_NODES=2",
         "SLURM_STEP_NODELIST=n[1-2]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct rueda_seat_query query = query_of(tables[i]);
        rueda_introduction without = found(&query).introduction;

        query.has_mpi = true;
        assert_int_equal(found(&query).introduction, without);
        assert_null(strstr(found(&query).why.chars, "MPI library"));
    }
}

static void this_process_has_a_parent_and_no_mpi(void **state)
{
    struct rueda_seat_query query;

    (void)state;
    rueda_seat_query_init(&query);
    assert_false(query.has_mpi);
    assert_true(query.parent > 0);
}

static void a_store_is_a_host_and_a_port(void **state)
{
    static const char *const bad[] = {"node",   "node:",   ":1",
                                      "node:0", "node:1x", "node:65536"};
    static environment table = {RUEDA, NULL};
    struct rueda_seat_query query = query_of(table);
    char longest[RUEDA_CONFIG_STORE_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        query.store = bad[i];
        refused(&query, RUEDA_ERR_INVALID, "RUEDA_STORE) is \"");
    }
    memset(longest, 'h', sizeof(longest));
    memcpy(longest + RUEDA_CONFIG_STORE_BYTES - 3, ":80", 4);
    query.store = longest;
    refused(&query, RUEDA_ERR_INVALID, "up to 255 characters");
    query.store = longest + 1;
    assert_string_equal(found(&query).store, longest + 1);
}

static void a_name_that_is_too_long_is_refused_or_stays_apart(void **state)
{
    static char address[2][200];
    environment first = {HOROVOD, "HOROVOD_LOCAL_SIZE=4", address[0], NULL};
    environment second = {HOROVOD, "HOROVOD_LOCAL_SIZE=4", address[1], NULL};
    struct rueda_seat_query query = query_of(first);
    struct rueda_seat seats[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        memset(address[i], 'a', sizeof(address[i]) - 1);
        memcpy(address[i], "HOROVOD_GLOO_RENDEZVOUS_ADDR=", 29);
        address[i][150] = (char)('0' + i);
    }
    seats[0] = seat_in(first);
    seats[1] = seat_in(second);
    assert_int_equal(strlen(seats[0].job), RUEDA_CONFIG_NAME_BYTES - 1);
    assert_memory_equal(seats[0].job, "horovod-aaaaaaa", 15);
    assert_string_not_equal(seats[0].job, seats[1].job);
    assert_string_equal(seats[0].job, seat_in(first).job);

    query.job = address[0];
    refused(&query, RUEDA_ERR_INVALID, "over 63 characters");
    query.job = address[0] + sizeof(address[0]) - 1 - 63;
    assert_string_equal(found(&query).job, query.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_launcher_has_its_way),
        cmocka_unit_test(ports_of_slurm_are_below_those_of_linux),
        cmocka_unit_test(who_has_another_way_takes_it),
        cmocka_unit_test(ranks_of_several_hosts_need_a_place_to_meet),
        cmocka_unit_test(beside_mpi_ranks_of_one_host_meet_at_a_socket),
        cmocka_unit_test(beside_mpi_ranks_of_several_hosts_need_a_store),
        cmocka_unit_test(other_launchers_do_not_care_about_mpi),
        cmocka_unit_test(this_process_has_a_parent_and_no_mpi),
        cmocka_unit_test(a_store_is_a_host_and_a_port),
        cmocka_unit_test(a_name_that_is_too_long_is_refused_or_stays_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
