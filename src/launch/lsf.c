/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts and the number of ranks of an LSF job, from its variables and
 * files.
 */
#include "launch/lsf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "launch/jsrun.h"
#include "launch/user_file.h"

#define BLANKS   " \t\r\n"
#define FILE_MIB 4

bool rueda_lsf_is_job(void)
{
    return rueda_environment("LSB_JOBID") != NULL;
}

/* ---- Hosts -------------------------------------------------------------- */

/* The next word of *at, which moves on; false: there is none. */
static bool next_word(const char **at, char *out, size_t bytes)
{
    size_t len;

    *at += strspn(*at, BLANKS);
    len = strcspn(*at, BLANKS);
    if (len == 0)
        return false;
    snprintf(out, bytes, "%.*s", (int)len, *at);
    *at += len;
    return true;
}

/* Hosts as LSF writes them: names, each followed by its slots if they are
 * counted. */
static bool parse(const char *text, bool is_counted, struct rueda_hosts *out,
                  struct rueda_text *words)
{
    struct rueda_hosts hosts = {NULL, 0};
    char name[RUEDA_LAUNCH_HOST_BYTES + 1];
    char slots[32] = "1";
    bool is_good = true;

    while (is_good && next_word(&text, name, sizeof(name))) {
        if (is_counted && !next_word(&text, slots, sizeof(slots)))
            slots[0] = '\0';
        is_good = rueda_hosts_add(&hosts, name, slots, words);
    }
    if (is_good && hosts.count > 0) {
        *out = hosts;
        return true;
    }
    rueda_text_set(words, "no host is named");
    rueda_hosts_fini(&hosts);
    return false;
}

bool rueda_lsf_parse_counted(const char *text, struct rueda_hosts *out,
                             struct rueda_text *words)
{
    return parse(text, true, out, words);
}

bool rueda_lsf_parse_names(const char *text, struct rueda_hosts *out,
                           struct rueda_text *words)
{
    return parse(text, false, out, words);
}

void rueda_lsf_drop_launch_node(struct rueda_hosts *hosts)
{
    if (hosts->count < 2 || hosts->list[0].slots != 1)
        return;
    for (int i = 1; i < hosts->count; i++)
        if (hosts->list[i].slots == 1)
            return;
    hosts->count--;
    memmove(hosts->list, hosts->list + 1,
            (size_t)hosts->count * sizeof(*hosts->list));
}

/* From the first of LSF's variables that is set. */
static bool read_hosts(struct rueda_hosts *out, struct rueda_text *words)
{
    const char *counted = rueda_environment("LSB_MCPU_HOSTS");
    const char *names = rueda_environment("LSB_HOSTS");
    const char *file = rueda_environment("LSB_DJOB_HOSTFILE");
    char *text;
    bool is_good;

    if (counted != NULL)
        return rueda_lsf_parse_counted(counted, out, words);
    if (names != NULL)
        return rueda_lsf_parse_names(names, out, words);
    if (file == NULL) {
        rueda_text_set(words, "none of LSB_MCPU_HOSTS, LSB_HOSTS and "
                              "LSB_DJOB_HOSTFILE is set");
        return false;
    }
    text = rueda_user_file_read("LSB_DJOB_HOSTFILE", file, FILE_MIB, words);
    is_good = text != NULL && rueda_lsf_parse_names(text, out, words);
    free(text);
    return is_good;
}

/* The hosts of this LSF job. Jobs of jsrun include the node on which the script
 * runs, which has no ranks. */
bool rueda_lsf_hosts(bool is_jsrun, struct rueda_hosts *out,
                     struct rueda_text *words)
{
    struct rueda_text why = {{0}};

    if (!read_hosts(out, &why)) {
        rueda_text_set(words,
                       "the hosts of this LSF job are not known: %s; name them "
                       "with -H, their ranks with -np",
                       why.chars);
        return false;
    }
    if (is_jsrun)
        rueda_lsf_drop_launch_node(out);
    return true;
}

/* ---- Options ------------------------------------------------------------ */

static bool is_given(const struct rueda_options *options, rueda_option_id id)
{
    return options->values[id] != NULL;
}

static bool has_hosts(const struct rueda_options *options)
{
    return is_given(options, RUEDA_OPTION_HOSTS) ||
           is_given(options, RUEDA_OPTION_HOSTFILE) ||
           is_given(options, RUEDA_OPTION_DISCOVERY);
}

static bool give_hosts(struct rueda_options *options,
                       const struct rueda_hosts *hosts,
                       struct rueda_text *words)
{
    char *list = rueda_hosts_text(hosts, true);
    bool is_good = false;

    if (list == NULL)
        rueda_text_set(words, "no memory");
    else
        is_good = rueda_options_give(options, RUEDA_OPTION_HOSTS, "--hosts",
                                     list, words);
    free(list);
    return is_good;
}

/* May jsrun have it, and is it there? */
static bool is_jsruns(const struct rueda_options *options)
{
    return !is_given(options, RUEDA_OPTION_GLOO) &&
           !is_given(options, RUEDA_OPTION_MPI) &&
           !is_given(options, RUEDA_OPTION_CONTROLLER) &&
           rueda_options_only_ours(options) == NULL &&
           rueda_jsrun_is_installed();
}

/* In an LSF job, options that the user left out come from LSF. */
bool rueda_lsf_fill_in(struct rueda_options *options, struct rueda_text *words)
{
    struct rueda_hosts hosts;
    char size[16];
    bool is_good = true;

    if (!rueda_lsf_is_job())
        return true;
    if (is_jsruns(options) &&
        !rueda_options_give(options, RUEDA_OPTION_JSRUN, "--jsrun", "1", words))
        return false;
    if (is_given(options, RUEDA_OPTION_NP) && has_hosts(options))
        return true;
    if (!rueda_lsf_hosts(rueda_options_controller(options) ==
                             RUEDA_CONTROLLER_JSRUN,
                         &hosts, words))
        return false;
    snprintf(size, sizeof(size), "%d", rueda_hosts_slots(&hosts));
    if (!has_hosts(options))
        is_good = give_hosts(options, &hosts, words);
    if (is_good)
        is_good = rueda_options_give(options, RUEDA_OPTION_NP, "the LSF job",
                                     size, words);
    rueda_hosts_fini(&hosts);
    return is_good;
}
