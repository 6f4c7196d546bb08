/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines that ruedarun --mpi makes for each mpirun. */
#include "launch/mpi.h"
#include "unit/unit.h"

#define WORDS_MAX 32

/* The words, parted by bars, for a command line whose words are parted by
 * spaces. */
static void expect_words(const char *text, rueda_mpi mpi,
                         const char *hosts_text, const char *expected)
{
    struct rueda_strings variables = {.list = NULL};
    struct rueda_strings found = {.list = NULL};
    struct rueda_text words = {{0}};
    struct rueda_options options;
    struct rueda_hosts hosts;
    char *argv[WORDS_MAX + 1] = {NULL};
    char *copy = strdup(text);
    char line[2048] = "";
    int argc = 0;
    char *rest;

    assert_non_null(copy);
    for (char *word = strtok_r(copy, " ", &rest);
         word != NULL && argc < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    assert_true(rueda_options_parse(argc, argv, &options, &words));
    assert_true(rueda_hosts_parse(hosts_text, &hosts, &words));
    rueda_strings_add(&variables, "SECRET=dear");
    rueda_mpi_words(&options, mpi, &hosts, &variables, &found);
    assert_false(found.is_short);
    for (int i = 0; i < found.count; i++) {
        const size_t len = strlen(line);

        snprintf(line + len, sizeof(line) - len, "%s%s", i == 0 ? "" : "|",
                 found.list[i]);
    }
    assert_string_equal(line, expected);
    rueda_strings_fini(&found);
    rueda_strings_fini(&variables);
    rueda_hosts_fini(&hosts);
    rueda_options_fini(&options);
    free(copy);
}

static void versions_say_whose_they_are(void **state)
{
    (void)state;
    assert_int_equal(rueda_mpi_whose("mpirun (Open MPI) 4.0.5\n"),
                     RUEDA_MPI_OPEN_MPI);
    assert_int_equal(rueda_mpi_whose("mpirun.openmpi (OpenRTE) 4.1.4\n"),
                     RUEDA_MPI_OPEN_MPI);
    assert_int_equal(rueda_mpi_whose("HYDRA build details:\n  Version: 4\n"),
                     RUEDA_MPI_MPICH);
    assert_int_equal(rueda_mpi_whose("Intel(R) MPI Library, HYDRA\n"),
                     RUEDA_MPI_UNKNOWN);
    assert_int_equal(rueda_mpi_whose(""), RUEDA_MPI_UNKNOWN);
}

static void open_mpi_is_told_in_its_language(void **state)
{
    (void)state;
    expect_words("x --mpi -np 3 python t.py -np 9", RUEDA_MPI_OPEN_MPI,
                 "a:2,b:1",
                 "mpirun|--allow-run-as-root|--tag-output|-np|3|-H|a:2,b:1|"
                 "-bind-to|none|-map-by|slot|-mca|pml|ob1|-mca|btl|^openib|"
                 "-x|SECRET|python|t.py|-np|9");
    expect_words("x --mpi -np 1 -p 22 -i k --network-interfaces eth0 "
                 "-prefix-timestamp --output-filename d "
                 "--binding-args=-bind-to=core --mpi-args=--quiet c",
                 RUEDA_MPI_OPEN_MPI, "a:1",
                 "mpirun|--allow-run-as-root|--tag-output|--timestamp-output|"
                 "--output-filename|d|-np|1|-H|a:1|-bind-to=core|-mca|pml|ob1|"
                 "-mca|btl|^openib|-mca|btl_tcp_if_include|eth0|-mca|"
                 "oob_tcp_if_include|eth0|-mca|plm_rsh_args|-p 22 -i k|-x|"
                 "SECRET|--quiet|c");
}

static void mpich_is_told_in_its_language(void **state)
{
    (void)state;
    expect_words("x --mpi -np 3 --network-interface ib0 c", RUEDA_MPI_MPICH,
                 "a:2,b:1",
                 "mpirun|-l|-np|3|-hosts|a:2,b:1|-bind-to|none|-iface|ib0|c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_say_whose_they_are),
        cmocka_unit_test(open_mpi_is_told_in_its_language),
        cmocka_unit_test(mpich_is_told_in_its_language),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
