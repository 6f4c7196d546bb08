/* SPDX-License-Identifier: Apache-2.0 */
/* How the mpirun of each MPI is told what to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/mpi.h"

/* From so many hosts on Open MPI does not pass the start on from host to host,
 * where one failure in the middle is hard to find. */
#define MANY_HOSTS 64

#define BLANKS " \t\n"

rueda_mpi rueda_mpi_whose(const char *version)
{
    if (strstr(version, "Open MPI") != NULL ||
        strstr(version, "OpenRTE") != NULL)
        return RUEDA_MPI_OPEN_MPI;
    /* Hydra is also Intel's, whose options differ. */
    if (strstr(version, "HYDRA") != NULL && strstr(version, "Intel") == NULL)
        return RUEDA_MPI_MPICH;
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

/* Words that the user has written as one. */
static void add_split(struct rueda_strings *out, const char *text)
{
    while (text[strspn(text, BLANKS)] != '\0') {
        size_t len;

        text += strspn(text, BLANKS);
        len = strcspn(text, BLANKS);
        rueda_strings_add_bytes(out, text, len);
        text += len;
    }
}

static void add_hosts(struct rueda_strings *out, const char *option,
                      const struct rueda_hosts *hosts)
{
    char list[RUEDA_HOST_BYTES + 16];
    char *all = NULL;
    char *longer;

    for (int i = 0; i < hosts->count; i++) {
        snprintf(list, sizeof(list), "%s:%d", hosts->list[i].name,
                 hosts->list[i].slots);
        if (asprintf(&longer, "%s%s%s", all != NULL ? all : "",
                     all != NULL ? "," : "", list) < 0) {
            out->is_short = true;
            break;
        }
        free(all);
        all = longer;
    }
    if (all != NULL)
        add(out, option, all);
    free(all);
}

static void add_binding(struct rueda_strings *out,
                        const struct rueda_options *options,
                        const char *fallback)
{
    const char *binding = options->values[RUEDA_OPTION_BINDING_ARGS];

    add_split(out, binding != NULL ? binding : fallback);
}

/* How Open MPI is to call ssh. */
static void add_ssh(struct rueda_strings *out,
                    const struct rueda_options *options)
{
    const char *port = options->values[RUEDA_OPTION_SSH_PORT];
    const char *identity = options->values[RUEDA_OPTION_SSH_IDENTITY];
    char text[1200];

    if (port == NULL && identity == NULL)
        return;
    snprintf(text, sizeof(text), "%s%s%s%s%.1000s", port != NULL ? "-p " : "",
             port != NULL ? port : "",
             port != NULL && identity != NULL ? " " : "",
             identity != NULL ? "-i " : "", identity != NULL ? identity : "");
    add_setting(out, "plm_rsh_args", text);
}

static void add_open_mpi(const struct rueda_options *options,
                         const struct rueda_hosts *hosts,
                         const struct rueda_strings *variables,
                         struct rueda_strings *out)
{
    const char *network = options->values[RUEDA_OPTION_NETWORK];
    const char *folder = options->values[RUEDA_OPTION_OUTPUT];
    char count[16];

    rueda_strings_add(out, "--allow-run-as-root");
    rueda_strings_add(out, "--tag-output");
    if (rueda_options_is_on(options, RUEDA_OPTION_TIMESTAMP))
        rueda_strings_add(out, "--timestamp-output");
    if (folder != NULL)
        add(out, "--output-filename", folder);
    add(out, "-np", options->values[RUEDA_OPTION_NP]);
    add_hosts(out, "-H", hosts);
    add_binding(out, options, "-bind-to none -map-by slot");
    add_setting(out, "pml", "ob1");
    add_setting(out, "btl", "^openib");
    if (network != NULL) {
        add_setting(out, "btl_tcp_if_include", network);
        add_setting(out, "oob_tcp_if_include", network);
    }
    add_ssh(out, options);
    if (hosts->count >= MANY_HOSTS) {
        snprintf(count, sizeof(count), "%d", hosts->count);
        add_setting(out, "plm_rsh_no_tree_spawn", "true");
        add_setting(out, "plm_rsh_num_concurrent", count);
    }
    for (int i = 0; i < variables->count; i++) {
        rueda_strings_add(out, "-x");
        rueda_strings_add_bytes(out, variables->list[i],
                                strcspn(variables->list[i], "="));
    }
}

/* The environment goes along by itself. */
static void add_mpich(const struct rueda_options *options,
                      const struct rueda_hosts *hosts,
                      struct rueda_strings *out)
{
    const char *network = options->values[RUEDA_OPTION_NETWORK];

    rueda_strings_add(out, "-l");
    add(out, "-np", options->values[RUEDA_OPTION_NP]);
    add_hosts(out, "-hosts", hosts);
    add_binding(out, options, "-bind-to none");
    if (network != NULL)
        add(out, "-iface", network);
}

void rueda_mpi_words(const struct rueda_options *options, rueda_mpi mpi,
                     const struct rueda_hosts *hosts,
                     const struct rueda_strings *variables,
                     struct rueda_strings *out)
{
    const char *more = options->values[RUEDA_OPTION_MPI_ARGS];

    rueda_strings_add(out, "mpirun");
    if (mpi == RUEDA_MPI_OPEN_MPI)
        add_open_mpi(options, hosts, variables, out);
    else
        add_mpich(options, hosts, out);
    if (more != NULL)
        add_split(out, more);
    rueda_strings_add_all(out, options->command);
}
