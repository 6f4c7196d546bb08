/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `rueda info`: the machine, the library, the settings and the seat in the job.
 */
#include "tool/info.h"

#include <rueda/rueda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/horovod.h"
#include "base/near.h"
#include "job/network.h"
#include "job/seat.h"
#include "tool/help.h"
#include "tool/library.h"
#include "tool/machine.h"
#include "tool/size.h"

#ifndef RUEDA_BUILD_TYPE
#define RUEDA_BUILD_TYPE "unknown"
#endif

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void print_algos(void)
{
    for (int kind = 0; kind < RUEDA_KIND_COUNT; kind++) {
        const char *names[RUEDA_TOOL_LIBRARY_ALGOS + 1];

        rueda_tool_library_algos((rueda_kind)kind, true, true, names);
        printf("%-15s", rueda_kind_str((rueda_kind)kind));
        for (int i = 0; names[i] != NULL; i++)
            printf("%s %s", i == 0 ? "" : ",", names[i]);
        printf("\n");
    }
}

/* The settings that are set, by the name of the variable that was used. */
static void print_set(void)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);
    bool is_any = false;

    for (size_t i = 0; i < count; i++) {
        const char *name = rueda_setting_source(&table[i]);

        if (rueda_environment(name) == NULL)
            continue;
        printf("%s=%s\n", name, rueda_environment(name));
        is_any = true;
    }
    printf("%s; \"rueda info --config\" lists all\n",
           is_any ? "the others have their defaults" : "none is set");
}

/* Versions, this machine, and what the library can do here. */
static void print_info(void)
{
    struct rueda_tool_machine machine;
    char total[RUEDA_SIZE_TEXT];
    char left[RUEDA_SIZE_TEXT];

    rueda_tool_machine_read(&machine);
    printf("version         %s\n", rueda_version());
    printf("abi             %d\n", rueda_abi());
    printf("build           %s, %s\n", RUEDA_BUILD_TYPE, COMPILER);
    printf("\n");
    printf("cpu             %s\n", machine.cpu);
    printf("cores           %d, %d usable\n", machine.cpus, machine.usable);
    printf("caches          %s\n", machine.caches);
    printf("kernels         %s\n", rueda_tool_library_kernels());
    printf("memory          %s, %s free here and in the cgroup\n",
           rueda_size_words(machine.memory_total, total),
           rueda_size_words(machine.memory_free, left));
    if (machine.quota_cpus > 0)
        printf("cpu quota       %.2f\n", machine.quota_cpus);
    else
        printf("cpu quota       none\n");
    printf("\nalgorithms\n");
    print_algos();
    printf("\nsettings\n");
    print_set();
}

/* Set, and not one of ours. */
static void print_variables(void)
{
    size_t count;
    const struct rueda_horovod_variable *table =
        rueda_horovod_variables(&count);

    for (size_t i = 0; i < count; i++)
        if (rueda_environment(table[i].name) != NULL)
            printf("%s has no effect: %s\n", table[i].name, table[i].why);
}

/* All settings with their values, their defaults and where the value comes
 * from. */
static void print_config(void)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);

    printf("%-22s %-16s %-16s %s\n", "setting", "value", "default", "meaning");
    for (size_t i = 0; i < count; i++) {
        const char *value = rueda_setting_value(&table[i]);
        const char *fallback = table[i].fallback;
        const struct rueda_horovod_alias *alias =
            rueda_horovod_alias(table[i].name);

        printf("%-22s %-16s %-16s %s", table[i].name,
               value[0] != '\0' ? value : "-",
               fallback[0] != '\0' ? fallback : "-", table[i].help);
        if (alias != NULL)
            printf(" (or %s)", alias->name);
        printf("\n");
    }
    print_variables();
}

/* A bar would end the cell. */
static void print_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', stdout);
        fputc(*text, stdout);
    }
}

static void print_code(const char *text)
{
    fputc('`', stdout);
    print_cell(text);
    fputc('`', stdout);
}

/* The second half of docs/config.md. */
static void print_markdown_variables(void)
{
    size_t count;
    const struct rueda_horovod_variable *table =
        rueda_horovod_variables(&count);

    printf("\n## Horovod's variables without effect\n\n"
           "If one of them is set, rank 0 logs it once: at level `warn`, or "
           "`info` if the value is\nthe default or makes no difference. "
           "A value of `HOROVOD_CONTROLLER` (mpi, gloo) or\n"
           "`HOROVOD_CPU_OPERATIONS` (mpi, gloo, ccl) that Horovod does not "
           "know is an error.\n\n"
           "| variable | because |\n|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        printf("| ");
        print_code(table[i].name);
        printf(" | ");
        print_cell(table[i].why);
        printf(" |\n");
    }
}

/* The first half of docs/config.md. tests/python/test_docs.py compares that
 * page with what is printed here, so neither can be changed alone. */
static void print_markdown(void)
{
    size_t count;
    const struct rueda_setting *table = rueda_settings(&count);

    printf(
        "# Settings\n\n"
        "Settings are read from the environment when a context is made. If a "
        "setting is not set,\nHorovod's variable beside it is used. "
        "`rueda info --config --markdown` prints this page.\n\n"
        "| setting | default | Horovod's | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        const struct rueda_horovod_alias *alias =
            rueda_horovod_alias(table[i].name);

        printf("| `%s` | ", table[i].name);
        if (table[i].fallback[0] == '\0')
            printf("not set");
        else
            print_code(table[i].fallback);
        printf(" | ");
        if (alias != NULL)
            print_code(alias->name);
        printf(" | ");
        print_cell(table[i].help);
        printf(" |\n");
    }
    print_markdown_variables();
}

/* ---- The seat ----------------------------------------------------------- */

/* "1 of 4", where the launcher does not say it all "1 of ?". */
static void print_pair(const char *what, int rank, int size)
{
    if (rank < 0 && size < 0) {
        printf("%-15s the launcher does not say\n", what);
        return;
    }
    printf("%-15s ", what);
    if (rank < 0)
        printf("? of ");
    else
        printf("%d of ", rank);
    if (size < 0)
        printf("?\n");
    else
        printf("%d\n", size);
}

/* How messages between hosts would be protected. What the job decides takes all
 * ranks; this is what one of them knows. */
static void print_protection(const struct rueda_seat *seat)
{
    struct rueda_config config;
    struct rueda_text words = {{0}};

    if (rueda_config_load(&config, &words) == RUEDA_OK) {
        if (seat->size == 1)
            rueda_text_set(&words, "a job of one rank sends nothing");
        else
            rueda_network_tell_protection(&config, seat->rank, &words);
    }
    printf("protection      %s\n", words.chars);
}

/* As which rank a job would start here, and how that is known. */
static int print_job(void)
{
    struct rueda_text error = {{0}};
    struct rueda_seat_query query;
    struct rueda_seat seat;

    rueda_seat_query_init(&query);
    if (rueda_seat_find(&query, &seat, &error) != RUEDA_OK) {
        fprintf(stderr, "rueda: %s\n", error.chars);
        return EXIT_FAILURE;
    }
    printf("launcher        %s\n", rueda_launcher_str(seat.launcher));
    printf("why             %s\n", seat.why.chars);
    printf("rank            %d\n", seat.rank);
    printf("size            %d\n", seat.size);
    print_pair("local", seat.local_rank, seat.local_size);
    print_pair("cross", seat.cross_rank, seat.cross_size);
    printf("introduction    %s\n", rueda_introduction_str(seat.introduction));
    printf("job             %s\n", seat.job);
    if (seat.store[0] != '\0')
        printf("store           %s\n", seat.store);
    print_protection(&seat);
    return EXIT_SUCCESS;
}

/* ---- The words of the command line -------------------------------------- */

static int mistake(const char *word)
{
    static const char *const known[] = {"--config", "--job", "--markdown",
                                        "--help", NULL};
    const char *near = rueda_near_match(word, known);

    fprintf(stderr, "rueda: unknown option '%s'", word);
    if (near != NULL)
        fprintf(stderr, "; did you mean '%s'?", near);
    fprintf(stderr, " (see 'rueda info --help')\n");
    return 2;
}

/* `rueda info`. */
int rueda_info_main(int argc, char **argv)
{
    bool is_config = false;
    bool is_job = false;
    bool is_markdown = false;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0) {
            is_config = true;
        } else if (strcmp(argv[i], "--job") == 0) {
            is_job = true;
        } else if (strcmp(argv[i], "--markdown") == 0) {
            is_markdown = true;
        } else if (strcmp(argv[i], "--help") == 0 ||
                   strcmp(argv[i], "-h") == 0) {
            fputs(rueda_info_help(), stdout);
            return EXIT_SUCCESS;
        } else {
            return mistake(argv[i]);
        }
    }
    if (is_markdown && !is_config) {
        fprintf(stderr, "rueda: --markdown goes with --config\n");
        return 2;
    }
    if (is_job && is_config) {
        fprintf(stderr, "rueda: --job and --config do not go together\n");
        return 2;
    }
    if (is_job)
        return print_job();
    if (is_markdown)
        print_markdown();
    else if (is_config)
        print_config();
    else
        print_info();
    return EXIT_SUCCESS;
}
