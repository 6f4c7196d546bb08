/* SPDX-License-Identifier: Apache-2.0 */
/* The assignments: what each agent runs, and where the store is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "job/rendezvous.h"
#include "launch/elastic_run.h"
#include "launch/launch_state.h"
#include "launch/locality.h"
#include "launch/repair.h"
#include "launch/variables.h"
#include "os/interface.h"

/* Ports below those that Linux gives to connections, for TF_CONFIG. */
#define TF_FIRST_PORT 20000
#define TF_PORTS      10000

#define LOCALITY_MS 1000

/* Processes at the store at a time, each of which may come twice. */
#define RUEDA_ELASTIC_MOST_GUESTS 2048

/* Whatever names the host has. */
static bool is_one_host(const struct rueda_launch *launch)
{
    for (int i = 0; i < launch->node_count; i++)
        if (!launch->nodes[i].is_local)
            return false;
    return true;
}

/* ---- The store ---------------------------------------------------------- */

/* Will all hosts of an elastic job be this one? A script may name any, and
 * any may come by itself. */
static bool is_one_listed_host(const struct rueda_launch *launch)
{
    const char *list = launch->options->values[RUEDA_OPTION_HOSTS];
    struct rueda_text ignored = {{0}};
    struct rueda_hosts hosts = {.list = NULL};
    bool *is_local = NULL;
    bool is_one = true;

    if (launch->options->values[RUEDA_OPTION_DISCOVERY] != NULL ||
        launch->options->values[RUEDA_OPTION_LISTEN] != NULL ||
        launch->options->values[RUEDA_OPTION_HOSTFILE] != NULL)
        return false;
    if (list == NULL)
        return true;
    if (rueda_hosts_parse(list, &hosts, &ignored))
        is_local = calloc((size_t)hosts.count, sizeof(*is_local));
    if (is_local != NULL)
        rueda_locality_find(&hosts, hosts.count, LOCALITY_MS, is_local);
    for (int i = 0; i < hosts.count; i++)
        is_one = is_one && is_local != NULL && is_local[i];
    free(is_local);
    rueda_hosts_fini(&hosts);
    return is_one;
}

/* Also a job of one host is told that the network it names is not there. */
static bool is_network_here(const char *network, struct rueda_text *words)
{
    char names[256];

    if (!rueda_variables_is_network(network) || strcmp(network, "lo") == 0 ||
        rueda_interfaces_own(network, names, sizeof(names)))
        return true;
    rueda_text_set(words,
                   "this host has no address that others could reach at "
                   "--network-interfaces %.200s",
                   network);
    return false;
}

/* Ranks of this host alone need no other address than loopback. */
static int choose_addresses(const struct rueda_launch *launch,
                            struct rueda_address *out, struct rueda_text *words)
{
    const char *network = launch->options->values[RUEDA_OPTION_NETWORK];
    const bool is_elastic = launch->elastic != NULL;
    int count;

    if (!is_network_here(network, words))
        return 0;
    if (is_elastic ? is_one_listed_host(launch) : is_one_host(launch))
        return rueda_address_find("127.0.0.1:1", out, 1, words);
    count = rueda_address_own(network, out, RUEDA_KEEPER_MOST_ADDRESSES);
    /* The hosts may all turn out to be this one. */
    if (count == 0 && is_elastic && network == NULL)
        return rueda_address_find("127.0.0.1:1", out, 1, words);
    if (count == 0)
        rueda_text_set(words,
                       "this host has no address that others could reach%s%s",
                       network != NULL ? " at --network-interfaces " : "",
                       network != NULL ? network : "");
    return count;
}

/* Serve the store of the job, at addresses that the hosts of all ranks can
 * reach. */
rueda_status rueda_launch_open_store(struct rueda_launch *launch,
                                     struct rueda_text *words)
{
    struct rueda_address addresses[RUEDA_KEEPER_MOST_ADDRESSES];
    struct rueda_keeper_args args = {.size = launch->placement.size,
                                     .key = &launch->key,
                                     .addresses = addresses};

    if (launch->elastic != NULL) {
        args.size = 0;
        args.most = RUEDA_ELASTIC_MOST_GUESTS;
        args.watched = RUEDA_RENDEZVOUS_READY;
        args.changed = rueda_elastic_on_key;
        args.arg = launch->elastic;
    } else if (!rueda_repair_open(launch->placement.size, &args,
                                  &launch->repair)) {
        rueda_text_set(words, "no memory for %d ranks", launch->placement.size);
        return RUEDA_ERR_NOMEM;
    }
    args.address_count = choose_addresses(launch, addresses, words);
    if (args.address_count == 0)
        return launch->options->values[RUEDA_OPTION_NETWORK] != NULL
                   ? RUEDA_ERR_INVALID
                   : RUEDA_ERR_IO;
    for (int i = 0; i < args.address_count; i++)
        rueda_address_set_port(&addresses[i], 0);
    return rueda_keeper_open(&args, &launch->keeper, words);
}

/* Our address as the host sees it. A host that does not see one, such as this
 * one, gets that of the first host that does. */
static bool find_way(const struct rueda_node *node, struct rueda_address *out)
{
    const struct rueda_launch *launch = node->launch;

    if (rueda_address_read(node->way, out))
        return true;
    for (int i = 0; i < launch->node_count; i++)
        if (rueda_address_read(launch->nodes[i].way, out))
            return true;
    return false;
}

/* Addresses that can probably be reached come first. */
static void list_stores(const struct rueda_node *node,
                        struct rueda_strings *out)
{
    char text[RUEDA_ADDRESS_TEXT];
    const struct rueda_address *list;
    struct rueda_address way;
    const bool has_way = find_way(node, &way);
    int count;

    list = rueda_keeper_addresses(node->launch->keeper, &count);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < count; i++) {
            const bool is_likely =
                has_way && rueda_address_is_same_host(&list[i], &way);

            if (is_likely != (round == 0))
                continue;
            rueda_address_text(&list[i], text, sizeof(text));
            rueda_strings_add(out, text);
        }
    }
}

/* ---- Assignments --------------------------------------------------------- */

static int tf_port(const struct rueda_launch *launch)
{
    unsigned sum = 0;

    for (const char *at = launch->job; *at != '\0'; at++)
        sum = 31 * sum + (unsigned char)*at;
    return TF_FIRST_PORT + (int)(sum % TF_PORTS);
}

static rueda_bind bind_of(const struct rueda_options *options)
{
    const char *bind = options->values[RUEDA_OPTION_BIND];

    if (bind == NULL || strcmp(bind, "none") == 0)
        return RUEDA_BIND_NONE;
    return strcmp(bind, "auto") == 0 ? RUEDA_BIND_AUTO : RUEDA_BIND_CORE;
}

/* The variables of each rank of a node. */
static void fill_in_ranks(const struct rueda_node *node,
                          struct rueda_assignment *assignment)
{
    const struct rueda_launch *launch = node->launch;
    char master[RUEDA_MASTER_BYTES];

    rueda_launch_master_address(
        launch,
        assignment->stores.count > 0 ? assignment->stores.list[0] : NULL,
        master);
    assignment->ranks = calloc((size_t)node->count, sizeof(*assignment->ranks));
    for (int i = 0; assignment->ranks != NULL && launch->elastic == NULL &&
                    i < node->count;
         i++) {
        const int rank = node->first_rank + i;

        rueda_variables_rank(&launch->placement.ranks[rank],
                             launch->placement.size, node->name,
                             &assignment->ranks[i]);
        rueda_variables_torch(&launch->placement.ranks[rank],
                              launch->placement.size, master,
                              launch->master_port, &assignment->ranks[i]);
        if (rueda_options_is_on(launch->options, RUEDA_OPTION_TF_CONFIG))
            rueda_variables_tf_config(&launch->placement, &launch->hosts, rank,
                                      tf_port(launch), &assignment->ranks[i]);
    }
}

/* Ranks see no terminal, and what draws bars takes the width from variables. */
static void set_room(const struct rueda_launch *launch,
                     struct rueda_strings *out)
{
    int columns;
    int rows;

    rueda_output_room(launch->output, &columns, &rows);
    if (columns == 0 || launch->terminal_rank >= 0)
        return;
    rueda_strings_set_number(out, "COLUMNS", columns);
    rueda_strings_set_number(out, "LINES", rows);
}

/* The agent of this host has our environment anyway. */
static void fill_in_variables(const struct rueda_node *node,
                              struct rueda_strings *out)
{
    const struct rueda_launch *launch = node->launch;

    if (!node->is_local)
        rueda_variables_forward(environ, out);
    rueda_variables_common(launch->options, out);
    set_room(launch, out);
    rueda_strings_set(out, "RUEDA_JOB", launch->job);
    rueda_strings_set_number(out, "RUEDA_RESTART", launch->restarts);
}

/* As the user calls it, which may be the better name on other hosts, if that is
 * where we are. */
bool rueda_launch_find_folder(struct rueda_launch *launch,
                              struct rueda_text *words)
{
    const char *name = rueda_environment("PWD");
    struct stat named;
    struct stat here;

    if (name != NULL && name[0] == '/' &&
        strlen(name) < sizeof(launch->folder) && stat(name, &named) == 0 &&
        stat(".", &here) == 0 && named.st_dev == here.st_dev &&
        named.st_ino == here.st_ino) {
        snprintf(launch->folder, sizeof(launch->folder), "%s", name);
        return true;
    }
    if (getcwd(launch->folder, sizeof(launch->folder)) != NULL)
        return true;
    rueda_text_set(words, "the folder we are in cannot be found: %s",
                   strerror(errno));
    return false;
}

static bool is_whole(const struct rueda_assignment *assignment)
{
    bool is_whole =
        assignment->ranks != NULL && !assignment->command.is_short &&
        !assignment->variables.is_short && !assignment->stores.is_short;

    for (int i = 0; is_whole && i < assignment->count; i++)
        is_whole = !assignment->ranks[i].is_short;
    return is_whole;
}

/* 1 + the local number of the rank that has the terminal, or 0. */
static int terminal_of(const struct rueda_node *node)
{
    const int local = node->launch->terminal_rank - node->first_rank;

    return node->launch->terminal_rank >= 0 && local >= 0 && local < node->count
               ? local + 1
               : 0;
}

/* Send a node what it is to run. False: there is no memory for it. */
bool rueda_launch_send_assignment(struct rueda_node *node)
{
    const struct rueda_launch *launch = node->launch;
    struct rueda_assignment assignment = {
        .size = launch->elastic != NULL ? node->count : launch->placement.size,
        .first_rank = node->first_rank,
        .count = node->count,
        .is_elastic = launch->elastic != NULL,
        .has_input = launch->has_input && node->first_rank == 0,
        .bind = bind_of(launch->options),
        .terminal = terminal_of(node),
        .grace_ms = (int)(1000 * rueda_options_decimal(launch->options,
                                                       RUEDA_OPTION_GRACE, 5)),
    };
    struct rueda_packer packer;
    bool is_good;

    rueda_output_room(launch->output, &assignment.columns, &assignment.rows);
    memcpy(assignment.folder, launch->folder, sizeof(assignment.folder));
    rueda_strings_add_all(&assignment.command, launch->options->command);
    list_stores(node, &assignment.stores);
    fill_in_variables(node, &assignment.variables);
    fill_in_ranks(node, &assignment);
    is_good = is_whole(&assignment);
    if (is_good) {
        rueda_packer_begin(&packer, RUEDA_FRAME_START);
        rueda_assignment_pack(&assignment, &packer);
        rueda_link_send(&node->link, &packer);
    }
    rueda_assignment_fini(&assignment);
    return is_good;
}
