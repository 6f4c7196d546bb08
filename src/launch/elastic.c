/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/elastic.h"

#include <stdlib.h>

#include "launch/hosts.h"

/* Elastic jobs outlive the loss of a host, so they need a second one. */
#define LEAST_HOSTS 2

static bool is_given(const struct rueda_options *options, rueda_option_id id)
{
    return options->values[id] != NULL;
}

static void note_useless(struct rueda_options *options, rueda_option_id id,
                         const char *without)
{
    if (is_given(options, id))
        rueda_text_add(&options->notes, "%s has no effect without %s\n",
                       rueda_options_table[id].name, without);
}

static void note_all_useless(struct rueda_options *options)
{
    static const rueda_option_id ids[] = {
        RUEDA_OPTION_MAX_NP, RUEDA_OPTION_ELASTIC_TIMEOUT,
        RUEDA_OPTION_RESET_LIMIT, RUEDA_OPTION_COOLDOWN};

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        note_useless(options, ids[i], "--min-np or --host-discovery-script");
}

/* Mistakes in the numbers alone. */
static bool check_numbers(const struct rueda_options *options,
                          struct rueda_text *words)
{
    const char *cooldown = options->values[RUEDA_OPTION_COOLDOWN];
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 0);
    const int least = rueda_options_whole(options, RUEDA_OPTION_MIN_NP, size);
    const int most = rueda_options_whole(options, RUEDA_OPTION_MAX_NP, size);
    char *rest = NULL;

    if (least > size)
        rueda_text_set(words, "--min-np %d is more than the %d ranks of -np",
                       least, size);
    else if (most < size)
        rueda_text_set(words, "--max-np %d is less than the %d ranks of -np",
                       most, size);
    else if (cooldown != NULL && strtod(cooldown, &rest) > strtod(rest, NULL))
        rueda_text_set(words,
                       "--blacklist-cooldown-range %s: the first number is the "
                       "smaller one",
                       cooldown);
    return rueda_text_is_empty(words);
}

/* An elastic job that may lose a host needs two of them from the start. */
static bool check_hosts(const struct rueda_options *options,
                        struct rueda_text *words)
{
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 1);
    struct rueda_hosts hosts = {.list = NULL};
    bool is_good;

    if (is_given(options, RUEDA_OPTION_DISCOVERY) ||
        rueda_elastic_is_joined(options))
        return true;
    if (!rueda_hosts_find(options->values[RUEDA_OPTION_HOSTS],
                          options->values[RUEDA_OPTION_HOSTFILE], size, &hosts,
                          words))
        return false;
    /* Horovod bars the host of a failed process; on one host, that is all. */
    is_good = hosts.count >= LEAST_HOSTS || !options->is_horovodrun;
    if (!is_good)
        rueda_text_set(words, "--min-np takes at least two hosts in -H or "
                              "--hostfile, or a --host-discovery-script");
    rueda_hosts_fini(&hosts);
    return is_good;
}

bool rueda_elastic_is_joined(const struct rueda_options *options)
{
    return is_given(options, RUEDA_OPTION_LISTEN) &&
           is_given(options, RUEDA_OPTION_MIN_NP) &&
           !is_given(options, RUEDA_OPTION_HOSTS) &&
           !is_given(options, RUEDA_OPTION_HOSTFILE) &&
           !is_given(options, RUEDA_OPTION_DISCOVERY);
}

static bool is_fixed(const struct rueda_options *options)
{
    const int size = rueda_options_whole(options, RUEDA_OPTION_NP, 0);

    return !is_given(options, RUEDA_OPTION_DISCOVERY) &&
           !rueda_elastic_is_joined(options) &&
           rueda_options_whole(options, RUEDA_OPTION_MIN_NP, 0) == size &&
           rueda_options_whole(options, RUEDA_OPTION_MAX_NP, 0) == size;
}

/* The options of elastic jobs, which are checked here and otherwise refused:
 * options that mean nothing in this combination are noted, wrong numbers are
 * errors. */
bool rueda_elastic_check(struct rueda_options *options,
                         struct rueda_text *words)
{
    if (!is_given(options, RUEDA_OPTION_DISCOVERY))
        note_useless(options, RUEDA_OPTION_SLOTS, "--host-discovery-script");
    if (!is_given(options, RUEDA_OPTION_MIN_NP) &&
        !is_given(options, RUEDA_OPTION_DISCOVERY)) {
        note_all_useless(options);
        return true;
    }
    if (!check_numbers(options, words))
        return false;
    if (!is_fixed(options) && is_given(options, RUEDA_OPTION_RESTARTS))
        rueda_text_add(&options->notes,
                       "--restarts has no effect in an elastic job, which goes "
                       "on without the ranks that fail\n");
    return is_fixed(options) || check_hosts(options, words);
}

bool rueda_elastic_is_wanted(const struct rueda_options *options)
{
    return (is_given(options, RUEDA_OPTION_MIN_NP) ||
            is_given(options, RUEDA_OPTION_DISCOVERY)) &&
           !is_fixed(options);
}
