/* SPDX-License-Identifier: Apache-2.0 */
/* Seats in tables of environments: no variable of this process counts. */
#include "unit/seats.h"
#include "unit/unit.h"

#define SLURM_STEP                                                             \
    "SLURM_STEP_ID=2", "SLURM_JOB_ID=77", "SLURM_PROCID=5", "SLURM_NTASKS=8"
#define SLURM_SHELL "SLURM_JOB_ID=77", "SLURM_PROCID=0", "SLURM_NTASKS=8"
#define HYDRA                                                                  \
    "PMI_RANK=4", "PMI_SIZE=7", "PMI_FD=6", "MPI_LOCALRANKID=0",               \
        "MPI_LOCALNRANKS=7"
#define OPENMPI                                                                \
    "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=6",                        \
        "OMPI_COMM_WORLD_LOCAL_SIZE=6"
#define TORCH                                                                  \
    "RANK=2", "WORLD_SIZE=5", "LOCAL_WORLD_SIZE=5", "MASTER_ADDR=h",           \
        "MASTER_PORT=1"
#define HOROVOD "HOROVOD_RANK=1", "HOROVOD_SIZE=4", "HOROVOD_LOCAL_SIZE=4"
#define RUEDA   "RUEDA_RANK=0", "RUEDA_SIZE=3"

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, text);
}

/* Refused with these words, and nothing is written. */
static void refused(const struct rueda_seat_query *query, rueda_status status,
                    const char *words)
{
    struct rueda_text error = {{0}};
    struct rueda_seat seat;
    struct rueda_seat before;

    memset(&seat, 0x5a, sizeof(seat));
    before = seat;
    assert_int_equal(rueda_seat_find(query, &seat, &error), status);
    has(error.chars, words);
    assert_memory_equal(&seat, &before, sizeof(seat));
}

static void refused_in(environment table, const char *words)
{
    struct rueda_seat_query query = query_of(table);

    refused(&query, RUEDA_ERR_INVALID, words);
}

static void check_numbers(const struct rueda_seat *seat, const int *wanted)
{
    assert_int_equal(seat->rank, wanted[0]);
    assert_int_equal(seat->size, wanted[1]);
    assert_int_equal(seat->local_rank, wanted[2]);
    assert_int_equal(seat->local_size, wanted[3]);
    assert_int_equal(seat->cross_rank, wanted[4]);
    assert_int_equal(seat->cross_size, wanted[5]);
}

/* ---- Each launcher ----------------------------------------------------- */

static void without_variables_a_job_has_one_rank(void **state)
{
    static environment none = {NULL};
    static environment empty = {"RUEDA_RANK=", "RUEDA_SIZE=", NULL};
    struct rueda_seat seat = seat_in(none);

    (void)state;
    assert_int_equal(seat.launcher, RUEDA_LAUNCHER_NONE);
    assert_int_equal(seat.introduction, RUEDA_INTRODUCE_NONE);
    check_numbers(&seat, (int[]){0, 1, 0, 1, 0, 1});
    assert_string_equal(seat.job, "rueda");
    assert_string_equal(seat.store, "");
    assert_int_equal(seat_in(empty).launcher, RUEDA_LAUNCHER_NONE);
}

static void every_launcher_says_what_it_can(void **state)
{
    static const struct {
        rueda_launcher launcher;
        environment table;
        int numbers[6];
    } cases[] = {
        {RUEDA_LAUNCHER_RUEDA,
         {"RUEDA_RANK=5", "RUEDA_SIZE=6", "RUEDA_LOCAL_RANK=1",
          "RUEDA_LOCAL_SIZE=2", "RUEDA_CROSS_RANK=2", "RUEDA_CROSS_SIZE=3"},
         {5, 6, 1, 2, 2, 3}},
        {RUEDA_LAUNCHER_RUEDA, {RUEDA}, {0, 3, -1, -1, -1, -1}},
        {RUEDA_LAUNCHER_HOROVOD,
         {"HOROVOD_RANK=5", "HOROVOD_SIZE=6", "HOROVOD_LOCAL_RANK=1",
          "HOROVOD_LOCAL_SIZE=2", "HOROVOD_CROSS_RANK=2",
          "HOROVOD_CROSS_SIZE=3", "RUEDA_STORE=a:1"},
         {5, 6, 1, 2, 2, 3}},
        {RUEDA_LAUNCHER_TORCHRUN,
         {"TORCHELASTIC_RUN_ID=x", "RANK=5", "WORLD_SIZE=6", "LOCAL_RANK=1",
          "LOCAL_WORLD_SIZE=2", "GROUP_RANK=2", "GROUP_WORLD_SIZE=3",
          "RUEDA_STORE=a:1"},
         {5, 6, 1, 2, 2, 3}},
        {RUEDA_LAUNCHER_TORCHRUN, {TORCH}, {2, 5, -1, 5, -1, -1}},
        {RUEDA_LAUNCHER_OPENMPI,
         {OPENMPI, "OMPI_COMM_WORLD_LOCAL_RANK=3"},
         {3, 6, 3, 6, -1, -1}},
        {RUEDA_LAUNCHER_HYDRA, {HYDRA}, {4, 7, 0, 7, -1, -1}},
        {RUEDA_LAUNCHER_HYDRA,
         {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=3"},
         {1, 2, -1, -1, -1, -1}},
        {RUEDA_LAUNCHER_SLURM,
         {SLURM_STEP, "SLURM_LOCALID=1", "SLURM_NODEID=1",
          "SLURM_STEP_TASKS_PER_NODE=4(x1),2(x2)", "RUEDA_STORE=a:1"},
         {5, 8, 1, 2, -1, -1}},
        {RUEDA_LAUNCHER_SLURM,
         {"SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=3",
          "SLURM_NTASKS=9", "SLURM_STEP_NUM_NODES=1"},
         {1, 3, -1, -1, -1, -1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_seat seat = seat_in(cases[i].table);

        assert_int_equal(seat.launcher, cases[i].launcher);
        check_numbers(&seat, cases[i].numbers);
    }
}

static void the_caller_may_say_it_itself(void **state)
{
    static environment table = {RUEDA, NULL};
    struct rueda_seat_query query = query_of(table);
    struct rueda_seat seat;

    (void)state;
    query.rank = 1;
    query.size = 2;
    query.local_rank = 0;
    query.local_size = 1;
    query.cross_rank = 1;
    query.cross_size = 2;
    seat = found(&query);
    assert_int_equal(seat.launcher, RUEDA_LAUNCHER_OPTIONS);
    check_numbers(&seat, (int[]){1, 2, 0, 1, 1, 2});
    assert_int_equal(seat.introduction, RUEDA_INTRODUCE_SOCKET);
    assert_string_equal(seat.job, "rueda");
}

/* ---- One inside the other ---------------------------------------------- */

/* Every launcher inside all that come after it. */
static void the_nearest_launcher_wins(void **state)
{
    static const struct {
        rueda_launcher launcher;
        const char *const variables[6];
    } order[] = {
        {RUEDA_LAUNCHER_RUEDA, {RUEDA}},
        {RUEDA_LAUNCHER_HOROVOD, {HOROVOD}},
        {RUEDA_LAUNCHER_TORCHRUN, {TORCH}},
        {RUEDA_LAUNCHER_OPENMPI, {OPENMPI}},
        {RUEDA_LAUNCHER_HYDRA, {HYDRA}},
        {RUEDA_LAUNCHER_SLURM, {SLURM_STEP, "SLURM_STEP_NUM_NODES=1"}},
    };
    const int count = (int)(sizeof(order) / sizeof(order[0]));

    (void)state;
    for (int inner = 0; inner < count; inner++) {
        for (int outer = inner; outer < count; outer++) {
            const char *table[16] = {NULL};
            int used = 0;

            for (int i = 0; order[inner].variables[i] != NULL; i++)
                table[used++] = order[inner].variables[i];
            for (int i = 0; order[outer].variables[i] != NULL; i++)
                table[used++] = order[outer].variables[i];
            assert_int_equal(seat_in(table).launcher, order[inner].launcher);
            assert_int_equal(seat_in(table).rank, inner);
            assert_int_equal(seat_in(table).size, inner + 3);
        }
    }
}

static void slurm_counts_only_in_a_step_of_srun(void **state)
{
    static environment batch = {SLURM_SHELL, NULL};
    static environment salloc = {SLURM_SHELL, "SLURM_STEP_ID=4294967290", NULL};
    struct rueda_seat seat = seat_in(batch);

    (void)state;
    assert_int_equal(seat.launcher, RUEDA_LAUNCHER_NONE);
    has(seat.why.chars, "SLURM_PROCID is there, but does not count");
    has(seat.why.chars, "SLURM_STEP_ID");
    assert_int_equal(seat_in(salloc).launcher, RUEDA_LAUNCHER_NONE);
}

static void pmi_in_a_step_of_slurm_is_slurms(void **state)
{
    static environment slurms = {SLURM_STEP, "PMI_RANK=5", "PMI_SIZE=8",
                                 "PMI_FD=9", NULL};
    static environment shell = {SLURM_SHELL, "PMI_RANK=1", "PMI_SIZE=2",
                                "PMI_FD=9", NULL};
    static environment control = {SLURM_STEP, "PMI_RANK=1",        "PMI_SIZE=2",
                                  "PMI_FD=9", "HYDI_CONTROL_FD=7", NULL};
    struct rueda_seat seat = seat_in(slurms);

    (void)state;
    assert_int_equal(seat.launcher, RUEDA_LAUNCHER_SLURM);
    assert_int_equal(seat.introduction, RUEDA_INTRODUCE_PMI2);
    assert_null(strstr(seat.why.chars, "PMI_RANK"));
    assert_int_equal(seat_in(shell).launcher, RUEDA_LAUNCHER_HYDRA);
    assert_int_equal(seat_in(control).launcher, RUEDA_LAUNCHER_HYDRA);
}

static void common_names_alone_are_not_torchruns(void **state)
{
    static environment one = {"RANK=3", NULL};
    static environment two = {"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=h", NULL};
    static environment sruns = {SLURM_STEP, "WORLD_SIZE=4",
                                "SLURM_STEP_NUM_NODES=1", NULL};

    (void)state;
    assert_int_equal(seat_in(one).launcher, RUEDA_LAUNCHER_NONE);
    has(seat_in(one).why.chars, "RANK is there, but does not count");
    assert_int_equal(seat_in(two).launcher, RUEDA_LAUNCHER_NONE);
    assert_int_equal(seat_in(sruns).launcher, RUEDA_LAUNCHER_SLURM);
}

static void why_tells_who_was_chosen_and_who_was_not(void **state)
{
    static environment nested = {OPENMPI, SLURM_SHELL, "PMIX_RANK=3", NULL};
    static environment ours = {RUEDA, TORCH, HYDRA, NULL};
    struct rueda_seat seat = seat_in(nested);

    (void)state;
    has(seat.why.chars,
        "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE say rank 3 of 6");
    has(seat.why.chars, "SLURM_PROCID is there too, but mpirun is nearer");
    has(seat.why.chars, "PMIx");
    seat = seat_in(ours);
    has(seat.why.chars, "RUEDA_RANK and RUEDA_SIZE say rank 0 of 3");
    has(seat.why.chars,
        "RANK is there too, but Rueda's own variables come first");
    has(seat.why.chars, "PMI_RANK is there too");
    has(seat.why.chars, "socket \"rueda\"");
    assert_null(strchr(seat.why.chars, '\n'));
}

/* ---- What cannot be ---------------------------------------------------- */

static void a_seat_that_is_half_said_is_refused(void **state)
{
    static const struct {
        environment table;
        const char *words;
    } cases[] = {
        {{"RUEDA_SIZE=4"},
         "RUEDA_SIZE is set (4) and RUEDA_RANK is not; a rank needs both, or "
         "neither for a job of one"},
        {{"RUEDA_RANK=1", HOROVOD},
         "RUEDA_RANK is set (1) and RUEDA_SIZE is not"},
        {{"RUEDA_LOCAL_RANK=1"},
         "RUEDA_LOCAL_RANK is set (1) and RUEDA_RANK and RUEDA_SIZE are not"},
        {{"HOROVOD_RANK=1", "HOROVOD_LOCAL_RANK=0"},
         "Horovod's HOROVOD_RANK is set (1), HOROVOD_LOCAL_RANK is set (0) and "
         "HOROVOD_SIZE is not; horovodrun sets both"},
        {{"OMPI_COMM_WORLD_RANK=3"},
         "Open MPI's OMPI_COMM_WORLD_RANK is set (3) and OMPI_COMM_WORLD_SIZE "
         "is not; mpirun sets both"},
        {{"TORCHELASTIC_RUN_ID=a", "RANK=3"},
         "torchrun's TORCHELASTIC_RUN_ID is set (a), RANK is set (3) and "
         "WORLD_SIZE is not"},
        {{"PMI_SIZE=3"}, "Hydra's PMI_SIZE is set (3) and PMI_RANK is not"},
        {{"PMI_RANK=3", "MPI_LOCALRANKID=0", SLURM_STEP},
         "and PMI_SIZE is not; mpiexec sets both"},
        {{"SLURM_STEP_ID=0", "SLURM_PROCID=3"},
         "Slurm's SLURM_STEP_ID is set (0), SLURM_PROCID is set (3) and "
         "SLURM_STEP_NUM_TASKS and SLURM_NTASKS are not; srun sets both"},
        {{"SLURM_STEP_ID=0", "SLURM_NTASKS=3"},
         "SLURM_NTASKS is set (3) and SLURM_PROCID is not"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused_in(cases[i].table, cases[i].words);
}

static void half_of_the_callers_options_are_refused(void **state)
{
    static environment table = {RUEDA, NULL};
    struct rueda_seat_query query = query_of(table);

    (void)state;
    query.size = 2;
    refused(&query, RUEDA_ERR_INVALID,
            "the caller's size is set (2) and rank is not");
    query.size = -1;
    query.local_rank = 1;
    refused(&query, RUEDA_ERR_INVALID,
            "local_rank is set (1) and rank and "
            "size are not");
    query.size = 2;
    query.rank = 2;
    refused(&query, RUEDA_ERR_INVALID,
            "rank 2 in a job of 2; ranks go from 0 to 1");
    query.rank = -2;
    refused(&query, RUEDA_ERR_INVALID, "the caller's rank is \"-2\"");
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    static const struct {
        environment table;
        const char *words;
    } cases[] = {
        {{"RUEDA_RANK=one", "RUEDA_SIZE=4"}, "RUEDA_RANK is \"one\""},
        {{"RUEDA_RANK=-1", "RUEDA_SIZE=4"}, "RUEDA_RANK is \"-1\""},
        {{"RUEDA_RANK=1", "RUEDA_SIZE= 4"}, "RUEDA_SIZE is \" 4\""},
        {{"RUEDA_RANK=1", "RUEDA_SIZE=4.0"}, "RUEDA_SIZE is \"4.0\""},
        {{"RUEDA_RANK=1", "RUEDA_SIZE=2147483648"}, "is \"2147483648\""},
        {{"RUEDA_RANK=1", "RUEDA_SIZE=99999999999999999999999"}, "is \"9999"},
        {{"RUEDA_RANK=0", "RUEDA_SIZE=0"}, "RUEDA_SIZE is 0; a job has"},
        {{"RUEDA_RANK=4", "RUEDA_SIZE=4"},
         "RUEDA_RANK is 4 and RUEDA_SIZE is 4: rank 4 in a job of 4; ranks go "
         "from 0 to 3"},
        {{RUEDA, "RUEDA_LOCAL_RANK=x"}, "RUEDA_LOCAL_RANK is \"x\""},
        {{RUEDA, "RUEDA_LOCAL_RANK=3"}, "RUEDA_LOCAL_RANK is 3 and RUEDA_SIZE"},
        {{RUEDA, "RUEDA_LOCAL_SIZE=0"}, "RUEDA_LOCAL_SIZE is 0"},
        {{RUEDA, "RUEDA_LOCAL_SIZE=4"},
         "RUEDA_LOCAL_SIZE is 4 and RUEDA_SIZE is 3"},
        {{RUEDA, "RUEDA_LOCAL_RANK=2", "RUEDA_LOCAL_SIZE=2"},
         "RUEDA_LOCAL_RANK is 2 and RUEDA_LOCAL_SIZE is 2"},
        {{RUEDA, "RUEDA_CROSS_RANK=1", "RUEDA_CROSS_SIZE=1"},
         "RUEDA_CROSS_RANK is 1 and RUEDA_CROSS_SIZE is 1"},
        {{OPENMPI, "OMPI_COMM_WORLD_LOCAL_RANK=6"},
         "Open MPI's OMPI_COMM_WORLD_LOCAL_RANK is 6 and "},
        {{TORCH, "GROUP_WORLD_SIZE=6"}, "torchrun's GROUP_WORLD_SIZE is 6"},
        {{"SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_NTASKS=3"},
         "Slurm's SLURM_PROCID is 3 and SLURM_NTASKS is 3"},
        {{SLURM_STEP, "SLURM_NODEID=0", "SLURM_STEP_TASKS_PER_NODE=9"},
         "Slurm's SLURM_STEP_TASKS_PER_NODE is 9 and SLURM_NTASKS is 8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused_in(cases[i].table, cases[i].words);
}

static void a_list_of_tasks_that_says_nothing_is_no_failure(void **state)
{
    static environment no_node = {SLURM_STEP, "SLURM_STEP_NUM_NODES=1",
                                  "SLURM_STEP_TASKS_PER_NODE=8", NULL};
    static environment broken = {SLURM_STEP, "SLURM_STEP_NUM_NODES=1",
                                 "SLURM_STEP_TASKS_PER_NODE=(x", NULL};

    (void)state;
    assert_int_equal(seat_in(no_node).local_size, -1);
    assert_int_equal(seat_in(broken).local_size, -1);
}

static void every_launcher_and_introduction_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(rueda_launcher_str(RUEDA_LAUNCHER_NONE), "none");
    assert_string_equal(rueda_launcher_str(RUEDA_LAUNCHER_SLURM), "slurm");
    assert_string_equal(rueda_launcher_str(RUEDA_LAUNCHER_COUNT), "unknown");
    assert_string_equal(rueda_introduction_str(RUEDA_INTRODUCE_PMI2), "pmi2");
    assert_string_equal(rueda_introduction_str(RUEDA_INTRODUCE_CALLER),
                        "caller");
    assert_string_equal(rueda_introduction_str(RUEDA_INTRODUCE_COUNT),
                        "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_variables_a_job_has_one_rank),
        cmocka_unit_test(every_launcher_says_what_it_can),
        cmocka_unit_test(the_caller_may_say_it_itself),
        cmocka_unit_test(the_nearest_launcher_wins),
        cmocka_unit_test(slurm_counts_only_in_a_step_of_srun),
        cmocka_unit_test(pmi_in_a_step_of_slurm_is_slurms),
        cmocka_unit_test(common_names_alone_are_not_torchruns),
        cmocka_unit_test(why_tells_who_was_chosen_and_who_was_not),
        cmocka_unit_test(a_seat_that_is_half_said_is_refused),
        cmocka_unit_test(half_of_the_callers_options_are_refused),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(a_list_of_tasks_that_says_nothing_is_no_failure),
        cmocka_unit_test(every_launcher_and_introduction_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
