/* SPDX-License-Identifier: Apache-2.0 */
/* Lists on the command line of `rueda bench`: peers, and hosts with ranks. */
#include "tool/lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"

#define ALGO "algo:"

/* As in rueda_peer; "algo:" is not found as it is. */
static const char *const peer_names[] = {"openmpi", "mpich", "memcpy",
                                         "private", "raw",   NULL};

/* The next part of a list, cut to the room. A name that was cut matches none
 * that is known, and the message shows how it begins. False after the last. */
static bool next_part(const char **in_out_list, char *out, size_t room)
{
    const size_t len = strcspn(*in_out_list, ",");

    if (**in_out_list == '\0')
        return false;
    snprintf(out, room, "%.*s", (int)len, *in_out_list);
    *in_out_list += len;
    *in_out_list += **in_out_list == ',';
    return true;
}

bool rueda_peers_have(const struct rueda_bench_options *options,
                      rueda_peer peer)
{
    for (int i = 0; i < options->peer_count; i++)
        if (options->peers[i] == peer)
            return true;
    return false;
}

static bool is_named(const struct rueda_bench_options *options,
                     const char *name)
{
    for (int i = 0; i < options->peer_count; i++)
        if (strcmp(options->peer_names[i], name) == 0)
            return true;
    return false;
}

/* One name of --vs: a known peer, or "algo:NAME". */
static bool add_peer(struct rueda_bench_options *options, const char *word,
                     struct rueda_text *words)
{
    const bool is_algo = strncmp(word, ALGO, strlen(ALGO)) == 0;
    const char *name = is_algo ? word + strlen(ALGO) : word;
    int peer = RUEDA_PEER_ALGO;

    if (!is_algo)
        peer = rueda_near_find("peer", word, peer_names, words);
    if (peer < 0)
        return false;
    if (name[0] == '\0') {
        rueda_text_set(words, "--vs " ALGO " takes the name of an algorithm");
        return false;
    }
    if (is_named(options, name))
        return true;
    if (options->peer_count == RUEDA_PEERS_MAX) {
        rueda_text_set(words, "--vs takes at most %d peers", RUEDA_PEERS_MAX);
        return false;
    }
    snprintf(options->peer_names[options->peer_count], RUEDA_PEER_NAME, "%s",
             name);
    options->peers[options->peer_count++] = (rueda_peer)peer;
    return true;
}

bool rueda_peers_parse(struct rueda_bench_options *options, const char *list,
                       struct rueda_text *words)
{
    char word[RUEDA_PEER_NAME];

    while (next_part(&list, word, sizeof(word)))
        if (!add_peer(options, word, words))
            return false;
    return true;
}

/* One host of --hosts, with its number of ranks. */
static bool add_host(struct rueda_bench_options *options, char *word,
                     struct rueda_text *words)
{
    struct rueda_bench_host *host;
    char *colon = strrchr(word, ':');
    char *end = NULL;
    long ranks = 1;

    if (colon != NULL) {
        *colon = '\0';
        ranks = strtol(colon + 1, &end, 10);
    }
    if (word[0] == '\0' || ranks < 1 || ranks > RUEDA_NP_MAX ||
        (colon != NULL && (end == colon + 1 || *end != '\0'))) {
        rueda_text_set(words, "--hosts takes hosts with their numbers of ranks "
                              "such as a:2,b:2");
        return false;
    }
    if (options->host_count == RUEDA_BENCH_MOST_HOSTS) {
        rueda_text_set(words, "--hosts takes at most %d hosts",
                       RUEDA_BENCH_MOST_HOSTS);
        return false;
    }
    host = &options->hosts[options->host_count++];
    snprintf(host->name, sizeof(host->name), "%.63s", word);
    host->ranks = (int)ranks;
    return true;
}

/* The list of --hosts. */
bool rueda_bench_hosts_parse(struct rueda_bench_options *options,
                             const char *list, struct rueda_text *words)
{
    char word[80];

    options->host_count = 0;
    options->hosts_text = list;
    while (next_part(&list, word, sizeof(word)))
        if (!add_host(options, word, words))
            return false;
    if (options->host_count > 0 &&
        rueda_bench_hosts_ranks(options) <= RUEDA_NP_MAX)
        return true;
    rueda_text_set(words, "--hosts takes from 1 to %d ranks in all",
                   RUEDA_NP_MAX);
    return false;
}

int rueda_bench_hosts_ranks(const struct rueda_bench_options *options)
{
    int ranks = 0;

    for (int i = 0; i < options->host_count; i++)
        ranks += options->hosts[i].ranks;
    return ranks;
}

const char *rueda_bench_hosts_of(const struct rueda_bench_options *options,
                                 int rank)
{
    int i = 0;

    while (i < options->host_count - 1 && rank >= options->hosts[i].ranks)
        rank -= options->hosts[i++].ranks;
    return options->hosts[i].name;
}
