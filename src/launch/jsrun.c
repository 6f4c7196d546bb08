/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handing the job over to IBM's jsrun: its command line, and the resource file
 * that places the ranks.
 */
#include "launch/jsrun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "launch/erf.h"
#include "launch/lsf.h"
#include "launch/spawn.h"
#include "launch/takeover.h"

#define PATH_BYTES 4096

static bool find_jsrun(char *out, size_t bytes)
{
    struct rueda_text why = {{0}};

    return rueda_spawn_find("jsrun", rueda_environment("PATH"), out, bytes,
                            &why);
}

bool rueda_jsrun_is_installed(void)
{
    char program[PATH_BYTES];

    return find_jsrun(program, sizeof(program));
}

/* ---- The command -------------------------------------------------------- */

/* What jsrun passes on to the ranks' MPI, which is IBM's. */
static void add_smpiargs(const struct rueda_options *options,
                         struct rueda_strings *out)
{
    const char *more = options->values[RUEDA_OPTION_MPI_ARGS];
    const bool is_tcp = rueda_options_is_on(options, RUEDA_OPTION_TCP);
    char *text = NULL;

    if (more == NULL && !is_tcp)
        return;
    if (asprintf(&text, "%s%s%s", is_tcp ? "-tcp" : "",
                 is_tcp && more != NULL ? " " : "",
                 more != NULL ? more : "") < 0) {
        out->is_short = true;
        return;
    }
    rueda_strings_add(out, "--smpiargs");
    rueda_strings_add(out, text);
    free(text);
}

/* The command line of jsrun. Users that give their own binding arguments decide
 * about placement themselves. */
void rueda_jsrun_words(const struct rueda_options *options, const char *erf,
                       struct rueda_strings *out)
{
    const char *binding = options->values[RUEDA_OPTION_BINDING_ARGS];
    const char *folder = options->values[RUEDA_OPTION_OUTPUT];

    rueda_strings_add(out, "jsrun");
    if (binding != NULL) {
        rueda_strings_add_split(out, binding);
    } else {
        rueda_strings_add(out, "--erf_input");
        rueda_strings_add(out, erf);
    }
    if (folder != NULL) {
        rueda_strings_add(out, "--stdio_stderr");
        rueda_strings_add(out, folder);
        rueda_strings_add(out, "--stdio_stdout");
        rueda_strings_add(out, folder);
    }
    add_smpiargs(options, out);
    rueda_strings_add_all(out, options->command);
}

/* ---- The file ----------------------------------------------------------- */

/* The text as a file without a name, so that none is left behind: jsrun, which
 * has our number, keeps it open. */
static bool write_erf(const char *text, char *path, size_t bytes,
                      struct rueda_text *words)
{
    const size_t len = strlen(text);
    const int fd = memfd_create("rueda-erf", 0);

    if (fd >= 0 && write(fd, text, len) == (ssize_t)len) {
        snprintf(path, bytes, "/proc/%d/fd/%d", (int)getpid(), fd);
        return true;
    }
    rueda_text_set(words, "no file for the places of the ranks: %s",
                   strerror(errno));
    return false;
}

/* Write the explicit resource file to a temporary file, whose path is returned.
 */
static bool make_erf(const struct rueda_options *options, char *path,
                     size_t bytes, struct rueda_text *words)
{
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 1);
    struct rueda_placement placement = {.ranks = NULL};
    struct rueda_hosts hosts = {NULL, 0};
    struct rueda_hosts cores = {NULL, 0};
    char *text = NULL;
    bool is_good;

    is_good = rueda_hosts_find(options->values[RUEDA_OPTION_HOSTS],
                               options->values[RUEDA_OPTION_HOSTFILE], size,
                               &hosts, words) &&
              rueda_placement_make(&hosts, size, &placement, words) &&
              rueda_lsf_hosts(true, &cores, words);
    if (is_good)
        text = rueda_erf_text(&placement, &hosts, &cores, words);
    if (text != NULL && rueda_options_is_on(options, RUEDA_OPTION_VERBOSE))
        fputs(text, stderr);
    is_good = text != NULL && write_erf(text, path, bytes, words);
    free(text);
    rueda_placement_fini(&placement);
    rueda_hosts_fini(&cores);
    rueda_hosts_fini(&hosts);
    return is_good;
}

/* ---- Becoming it -------------------------------------------------------- */

/* Replace this process by jsrun, which starts the ranks. Returns only if that
 * fails, with the exit code. */
int rueda_jsrun_run(const struct rueda_options *options,
                    struct rueda_text *words)
{
    struct rueda_strings variables = {.list = NULL};
    struct rueda_strings command = {.list = NULL};
    char program[PATH_BYTES];
    char erf[64] = "";
    int code;

    if (!find_jsrun(program, sizeof(program))) {
        rueda_text_set(words, "--jsrun: there is no jsrun on the PATH; without "
                              "--jsrun none is needed");
        return 2;
    }
    if (!rueda_lsf_is_job()) {
        rueda_text_set(
            words, "--jsrun: this is not an LSF job (LSB_JOBID is not set), "
                   "and jsrun works only in one");
        return 2;
    }
    if (options->values[RUEDA_OPTION_BINDING_ARGS] == NULL &&
        !make_erf(options, erf, sizeof(erf), words))
        return 2;
    rueda_takeover_variables(options, &variables);
    rueda_jsrun_words(options, erf, &command);
    code = rueda_takeover(options, program, &command, &variables, words);
    rueda_strings_fini(&variables);
    rueda_strings_fini(&command);
    return code;
}
