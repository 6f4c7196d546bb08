/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines that ruedarun --mpi makes for each mpirun. */
#include "launch/mpi.h"
#include "unit/unit.h"

#define WORDS_MAX 32

/* The words, separated by bars, for a command line whose words are separated by
 * spaces. After "mpirun" alone: why there are none. */
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
    char line[4096] = "";
    int argc = 0;
    char *rest;

    assert_non_null(copy);
    for (char *word = strtok_r(copy, " ", &rest);
         word != NULL && argc < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    assert_true(rueda_options_parse(argc, argv, &options, &words));
    assert_true(rueda_hosts_parse(hosts_text, &hosts, &words));
    rueda_strings_add(&variables, "SECRET=dear");
    if (!rueda_mpi_words(&options, mpi, &hosts, &variables, &found, &words))
        rueda_strings_add(&found, words.chars);
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
                     RUEDA_MPI_INTEL);
    assert_int_equal(rueda_mpi_whose("mpirun (IBM Spectrum MPI) 10.4\n"),
                     RUEDA_MPI_SPECTRUM);
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

static void spectrum_mpi_is_told_in_its_language(void **state)
{
    (void)state;
    expect_words("x --mpi -np 3 --tcp c", RUEDA_MPI_SPECTRUM, "a:2,b:1",
                 "mpirun|--allow-run-as-root|--tag-output|-np|3|-H|a:2,b:1|"
                 "-bind-to|socket|-map-by|socket|-rank-by|core|-tcp|-x|SECRET|"
                 "c");
}

static void many_hosts_are_called_by_mpirun_itself(void **state)
{
    struct rueda_hosts hosts = {NULL, 0};
    struct rueda_text words = {{0}};
    char expected[2048];
    char name[16];
    char *list;

    (void)state;
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_true(rueda_hosts_add(&hosts, name, "1", &words));
    }
    list = rueda_hosts_text(&hosts, true);
    assert_non_null(list);
    snprintf(expected, sizeof(expected),
             "mpirun|--allow-run-as-root|--tag-output|-np|64|-H|%s|-bind-to|"
             "none|-map-by|slot|-mca|pml|ob1|-mca|btl|^openib|-mca|"
             "plm_rsh_no_tree_spawn|true|-mca|plm_rsh_num_concurrent|64|-x|"
             "SECRET|c",
             list);
    expect_words("x --mpi -np 64 c", RUEDA_MPI_OPEN_MPI, list, expected);
    free(list);
    rueda_hosts_fini(&hosts);
}

static void mpich_is_told_in_its_language(void **state)
{
    (void)state;
    expect_words("x --mpi -np 3 --network-interface ib0 --output-filename f c",
                 RUEDA_MPI_MPICH, "a:2,b:1",
                 "mpirun|-l|-np|3|-hosts|a:2,b:1|-bind-to|none|-iface|ib0|"
                 "-outfile-pattern|f|c");
}

static void intel_mpi_is_told_in_its_language(void **state)
{
    (void)state;
    expect_words("x --mpi -np 3 -p 22 -i k --mpi-args=-v c", RUEDA_MPI_INTEL,
                 "a:2,b:2",
                 "mpirun|-l|-np|3|-ppn|2|-hosts|a,b|-bootstrap=ssh|"
                 "-bootstrap-exec-args|-p 22 -i k|-v|c");
}

static void more_words_for_it_are_parted_as_by_a_shell(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"  ", ""},
        {" -x\tA\n", "-x|A|"},
        {"-x 'A=b  c' d", "-x|A=b  c|d|"},
        {"a\"b 'c\"' d'", "ab 'c d|"},
        {"\\\"a\\ b\\", "\"a b\\|"},
        {"\"\\\"\\a\" '\\'", "\"\\a|\\|"},
        {"'' \"\"", "||"},
        {"'not ended", "not ended|"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rueda_strings found = {.list = NULL};
        char line[64] = "";

        rueda_strings_add_split(&found, cases[i][0]);
        for (int k = 0; k < found.count; k++) {
            const size_t len = strlen(line);

            snprintf(line + len, sizeof(line) - len, "%s|", found.list[k]);
        }
        assert_string_equal(line, cases[i][1]);
        rueda_strings_fini(&found);
    }
}

static void what_an_mpirun_cannot_do_is_said(void **state)
{
    (void)state;
    expect_words("x --mpi -np 3 c", RUEDA_MPI_INTEL, "a:2,b:1",
                 "mpirun|--mpi: Intel MPI wants the same number of slots on "
                 "every host");
    expect_words("x --mpi -np 3 --network-interfaces a,b c", RUEDA_MPI_MPICH,
                 "a:3",
                 "mpirun|--mpi: MPICH and Intel MPI take one network "
                 "interface, not 'a,b'");
    expect_words("x --mpi -np 3 -p 22 c", RUEDA_MPI_MPICH, "a:3",
                 "mpirun|--mpi: the mpirun of MPICH has no options for ssh; "
                 "say port and identity in ~/.ssh/config");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_say_whose_they_are),
        cmocka_unit_test(open_mpi_is_told_in_its_language),
        cmocka_unit_test(spectrum_mpi_is_told_in_its_language),
        cmocka_unit_test(many_hosts_are_called_by_mpirun_itself),
        cmocka_unit_test(mpich_is_told_in_its_language),
        cmocka_unit_test(intel_mpi_is_told_in_its_language),
        cmocka_unit_test(more_words_for_it_are_parted_as_by_a_shell),
        cmocka_unit_test(what_an_mpirun_cannot_do_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
