/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's networks from text. One that is accepted can be walked: every
 * message gets from one rank to another over links that there are. */
#include "fuzz/fuzz.h"
#include "transport/sim/net.h"

#define MOST_HOPS 6

static void check_way(const struct rueda_sim_net *net, int from, int to)
{
    int lanes = rueda_sim_net_ways(net);
    int hop = 0;
    int lane;

    while ((lane = rueda_sim_net_hop(net, from, to, hop)) >= 0) {
        struct rueda_sim_wire wire = rueda_sim_net_way(net, lane);

        must(lane < lanes);
        must(wire.bytes_per_s > 0.0);
        must(wire.latency_ns <= UINT64_C(2000000000000000));
        hop++;
        must(hop <= MOST_HOPS);
    }
    must(hop > 0);
    rueda_sim_net_latency(net, from, to);
}

static void check_net(const struct rueda_sim_net *net)
{
    struct rueda_text error = {{0}};
    int ranks = rueda_sim_net_ranks(net);

    must(rueda_sim_net_check(net, &error) == RUEDA_OK);
    must(ranks >= 1 && rueda_sim_net_racks(net) >= 1);
    must(rueda_sim_net_links(net, RUEDA_SIM_PORT) == ranks);
    if (ranks > 1) {
        check_way(net, 0, ranks - 1);
        check_way(net, ranks - 1, ranks / 2 - (ranks == 2));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rueda_sim_net net = {.hosts = -7};
    struct rueda_text error = {{0}};
    rueda_status status = rueda_sim_net_parse(text, &net, &error);

    must(rueda_text_is_empty(&error) == (status == RUEDA_OK));
    if (status == RUEDA_OK)
        check_net(&net);
    else
        must(status == RUEDA_ERR_INVALID && net.hosts == -7);
    free(text);
    return 0;
}
