/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mpirun, for each MPI. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/mpi.h"

/* With this many hosts or more, Open MPI is told not to pass the start on from
 * host to host, because a failure in the middle is then hard to find. */
#define MANY_HOSTS 64

/* Find the name of a known MPI in what `mpirun --version` prints. */
rueda_mpi rueda_mpi_whose(const char *version)
{
    static const struct {
        const char *mark;
        rueda_mpi whose;
    } marks[] = {
        {"Open MPI", RUEDA_MPI_OPEN_MPI},
        {"OpenRTE", RUEDA_MPI_OPEN_MPI},
        {"IBM Spectrum MPI", RUEDA_MPI_SPECTRUM},
        /* Intel's is made from Hydra, and may say so. */
        {"Intel(R) MPI", RUEDA_MPI_INTEL},
        {"MPICH", RUEDA_MPI_MPICH},
        {"HYDRA", RUEDA_MPI_MPICH},
    };

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (strstr(version, marks[i].mark) != NULL)
            return marks[i].whose;
    return RUEDA_MPI_UNKNOWN;
}

static void add(struct rueda_strings *out, const char *first,
                const char *second)
{
    rueda_strings_add(out, first);
    rueda_strings_add(out, second);
}

static void add_setting(struct rueda_strings *out, const char *name,
                        const char *value)
{
    rueda_strings_add(out, "-mca");
    add(out, name, value);
}

static void add_hosts(struct rueda_strings *out, const char *option,
                      const struct rueda_hosts *hosts, bool has_slots)
{
    char *list = rueda_hosts_text(hosts, has_slots);

    if (list != NULL)
        add(out, option, list);
    else
        out->is_short = true;
    free(list);
}

static void add_binding(struct rueda_strings *out,
                        const struct rueda_options *options,
                        const char *fallback)
{
    const char *binding = options->values[RUEDA_OPTION_BINDING_ARGS];

    rueda_strings_add_split(out, binding != NULL ? binding : fallback);
}

/* "-p 22 -i file", or nothing. */
static void write_ssh(const struct rueda_options *options, char *out,
                      size_t bytes)
{
    const char *port = options->values[RUEDA_OPTION_SSH_PORT];
    const char *identity = options->values[RUEDA_OPTION_SSH_IDENTITY];

    snprintf(out, bytes, "%s%s%s%s%.1000s", port != NULL ? "-p " : "",
             port != NULL ? port : "",
             port != NULL && identity != NULL ? " " : "",
             identity != NULL ? "-i " : "", identity != NULL ? identity : "");
}

/* ---- Open MPI, and IBM's Spectrum MPI, which is made from it ------------ */

/* How Open MPI reaches other hosts: network, ssh, and how it spreads the start.
 */
static void add_ways(const struct rueda_options *options,
                     const struct rueda_hosts *hosts, struct rueda_strings *out)
{
    const char *network = options->values[RUEDA_OPTION_NETWORK];
    char text[1200];

    if (network != NULL) {
        add_setting(out, "btl_tcp_if_include", network);
        add_setting(out, "oob_tcp_if_include", network);
    }
    write_ssh(options, text, sizeof(text));
    if (text[0] != '\0')
        add_setting(out, "plm_rsh_args", text);
    if (hosts->count >= MANY_HOSTS) {
        snprintf(text, sizeof(text), "%d", hosts->count);
        add_setting(out, "plm_rsh_no_tree_spawn", "true");
        add_setting(out, "plm_rsh_num_concurrent", text);
    }
}

/* The options of Open MPI and of Spectrum MPI, which is made from it. */
static void add_open_mpi(const struct rueda_options *options, rueda_mpi mpi,
                         const struct rueda_hosts *hosts,
                         const struct rueda_strings *variables,
                         struct rueda_strings *out)
{
    const char *folder = options->values[RUEDA_OPTION_OUTPUT];

    rueda_strings_add(out, "--allow-run-as-root");
    rueda_strings_add(out, "--tag-output");
    if (rueda_options_is_on(options, RUEDA_OPTION_TIMESTAMP))
        rueda_strings_add(out, "--timestamp-output");
    if (folder != NULL)
        add(out, "--output-filename", folder);
    add(out, "-np", options->values[RUEDA_OPTION_NP]);
    add_hosts(out, "-H", hosts, true);
    if (mpi == RUEDA_MPI_SPECTRUM) {
        add_binding(out, options,
                    "-bind-to socket -map-by socket -rank-by core");
        if (rueda_options_is_on(options, RUEDA_OPTION_TCP))
            rueda_strings_add(out, "-tcp");
    } else {
        add_binding(out, options, "-bind-to none -map-by slot");
        add_setting(out, "pml", "ob1");
        add_setting(out, "btl", "^openib");
    }
    add_ways(options, hosts, out);
    for (int i = 0; i < variables->count; i++) {
        rueda_strings_add(out, "-x");
        rueda_strings_add_bytes(out, variables->list[i],
                                strcspn(variables->list[i], "="));
    }
}

/* ---- MPICH, and Intel's ------------------------------------------------- */

/* Intel's takes one number of ranks for all hosts. */
static bool check_equal_slots(const struct rueda_hosts *hosts,
                              struct rueda_text *words)
{
    for (int i = 1; i < hosts->count; i++) {
        if (hosts->list[i].slots == hosts->list[0].slots)
            continue;
        rueda_text_set(words, "--mpi: Intel MPI wants the same number of slots "
                              "on every host");
        return false;
    }
    return true;
}

/* Options that MPICH and Intel MPI cannot fulfil are errors rather than
 * ignored. */
static bool check_mpich(const struct rueda_options *options, rueda_mpi mpi,
                        const struct rueda_hosts *hosts,
                        struct rueda_text *words)
{
    const char *network = options->values[RUEDA_OPTION_NETWORK];
    char ssh[1200];

    write_ssh(options, ssh, sizeof(ssh));
    if (network != NULL && strchr(network, ',') != NULL)
        rueda_text_set(words,
                       "--mpi: MPICH and Intel MPI take one network "
                       "interface, not '%.64s'",
                       network);
    else if (mpi == RUEDA_MPI_MPICH && ssh[0] != '\0')
        rueda_text_set(words, "--mpi: the mpirun of MPICH has no options for "
                              "ssh; say port and identity in ~/.ssh/config");
    return rueda_text_is_empty(words) &&
           (mpi == RUEDA_MPI_MPICH || check_equal_slots(hosts, words));
}

static void add_intel(const struct rueda_options *options,
                      const struct rueda_hosts *hosts,
                      struct rueda_strings *out)
{
    char text[1200];

    snprintf(text, sizeof(text), "%d", hosts->list[0].slots);
    add(out, "-ppn", text);
    add_hosts(out, "-hosts", hosts, false);
    write_ssh(options, text, sizeof(text));
    if (text[0] == '\0')
        return;
    rueda_strings_add(out, "-bootstrap=ssh");
    add(out, "-bootstrap-exec-args", text);
}

/* The environment goes along by itself. */
static bool add_mpich(const struct rueda_options *options, rueda_mpi mpi,
                      const struct rueda_hosts *hosts,
                      struct rueda_strings *out, struct rueda_text *words)
{
    const char *network = options->values[RUEDA_OPTION_NETWORK];
    const char *folder = options->values[RUEDA_OPTION_OUTPUT];

    if (!check_mpich(options, mpi, hosts, words))
        return false;
    rueda_strings_add(out, "-l");
    add(out, "-np", options->values[RUEDA_OPTION_NP]);
    if (mpi == RUEDA_MPI_INTEL) {
        add_intel(options, hosts, out);
    } else {
        add_hosts(out, "-hosts", hosts, true);
        add_binding(out, options, "-bind-to none");
    }
    if (network != NULL)
        add(out, "-iface", network);
    if (folder != NULL)
        add(out, "-outfile-pattern", folder);
    return true;
}

/* ---- All ---------------------------------------------------------------- */

/* The command line of mpirun, from ours. */
bool rueda_mpi_words(const struct rueda_options *options, rueda_mpi mpi,
                     const struct rueda_hosts *hosts,
                     const struct rueda_strings *variables,
                     struct rueda_strings *out, struct rueda_text *words)
{
    const char *more = options->values[RUEDA_OPTION_MPI_ARGS];

    rueda_strings_add(out, "mpirun");
    if (mpi == RUEDA_MPI_OPEN_MPI || mpi == RUEDA_MPI_SPECTRUM)
        add_open_mpi(options, mpi, hosts, variables, out);
    else if (!add_mpich(options, mpi, hosts, out, words))
        return false;
    if (more != NULL)
        rueda_strings_add_split(out, more);
    rueda_strings_add_all(out, options->command);
    return true;
}
