/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the ranks of torch.distributed meet: MASTER_ADDR and MASTER_PORT.
 *
 * torchrun's agent keeps that port open itself. We do not: rank 0 opens it if
 * its script calls init_process_group(), and jobs that never do have nothing
 * listening. So the launcher only chooses the port. On its own host it takes
 * one that is free now; on another host it cannot know, and the port follows
 * from the name of the job, so that jobs side by side rarely choose the same.
 *
 * While the job runs the launcher looks whether a process uses that port: ranks
 * that do not, and do not come to our store either, have joined no job, and
 * each has run as if it were alone.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/number.h"
#include "launch/launch_state.h"
#include "launch/port_use.h"

/* Below the ports that Linux gives to outgoing connections, and above those
 * that --tf-config uses. */
#define FIRST_PORT 30000
#define PORTS      2700
#define TRIES      64

/* Bound and never listened at: no connection can reach it. */
static bool is_free(int port)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port)};
    const int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int four = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = true;

    if (four >= 0)
        is_free = bind(four, (struct sockaddr *)&any4, sizeof(any4)) == 0;
    if (six >= 0) {
        const int only = 1;

        setsockopt(six, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
        is_free =
            is_free && bind(six, (struct sockaddr *)&any, sizeof(any)) == 0;
        close(six);
    }
    if (four >= 0)
        close(four);
    return is_free;
}

/* What the user has set counts. Beside RANK it is what another launcher has
 * set for the job that started us, and that job has the port. */
static bool find_users_port(int *out)
{
    uint64_t port;

    if (rueda_environment("RANK") != NULL ||
        !rueda_parse_whole(rueda_environment("MASTER_PORT"), 65535, &port) ||
        port == 0)
        return false;
    *out = (int)port;
    return true;
}

/* MASTER_PORT for programs that use torch.distributed: the user's, else one
 * that is free on the first host and depends on the job's name. */
void rueda_launch_choose_master_port(struct rueda_launch *launch)
{
    unsigned sum = 0;

    if (find_users_port(&launch->master_port))
        return;
    for (const char *at = launch->job; *at != '\0'; at++)
        sum = 31 * sum + (unsigned char)*at;
    for (unsigned i = 0; i < TRIES; i++) {
        launch->master_port = FIRST_PORT + (int)((sum + i) % PORTS);
        if (!launch->nodes[0].is_local || is_free(launch->master_port))
            return;
    }
}

/* The launcher's host has the store, so ranks reach rank 0 as they reach the
 * store; another host is reached by the name that the user gave it. */
void rueda_launch_master_address(const struct rueda_launch *launch,
                                 const char *store,
                                 char out[RUEDA_MASTER_BYTES])
{
    const char *users = rueda_environment("MASTER_ADDR");
    const char *text = launch->nodes[0].name;
    size_t len;

    if (users != NULL && users[0] != '\0' && rueda_environment("RANK") == NULL)
        text = users;
    else if (launch->nodes[0].is_local && store != NULL)
        text = store;
    len = strlen(text);
    if (text == store)
        len = (size_t)(strrchr(store, ':') - store);
    if (text[0] == '[' && len >= 2) {
        text++;
        len -= 2;
    }
    snprintf(out, RUEDA_MASTER_BYTES, "%.*s", (int)len, text);
}

/* ---- Does anything use it? ----------------------------------------------- */

/* Looks in a row, a quarter of a second apart; later ones are fewer, since the
 * list of connections of a busy host is long. */
#define PROBES_AT_FIRST 40
#define PROBES_APART    16

/* Nothing is to be found out, or it is known already. */
static bool is_settled(const struct rueda_launch *launch)
{
    return launch->placement.size < 2 || launch->was_used ||
           !launch->nodes[0].is_local || !launch->is_going ||
           rueda_keeper_has_met(launch->keeper);
}

void rueda_launch_probe_master_port(struct rueda_launch *launch)
{
    if (is_settled(launch))
        return;
    launch->probes++;
    if (launch->probes <= PROBES_AT_FIRST || launch->probes % PROBES_APART == 0)
        launch->was_used = rueda_port_use_is_there(launch->master_port);
}

void rueda_launch_tell_lone_ranks(struct rueda_launch *launch)
{
    /* Ranks of rueda.run() return results, and need no job for that. */
    if (launch->code != 0 || is_settled(launch) ||
        rueda_environment("RUEDA_RUN") != NULL)
        return;
    launch->was_used = rueda_port_use_is_there(launch->master_port);
    if (!launch->was_used)
        rueda_output_say(launch->output,
                         "none of the %d ranks joined a job, so each ran as if "
                         "it were alone; a script joins by init() of rueda or "
                         "horovod, or by init_process_group() of "
                         "torch.distributed",
                         launch->placement.size);
}
