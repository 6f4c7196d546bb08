/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated network as arithmetic: which links there are, over which ones a
 * message from one rank to another passes, and how long each takes. Hosts are
 * in racks; each host has a port, each rack an uplink, and the spine joins the
 * racks.
 */
#include "transport/sim/net.h"

#include <limits.h>
#include <math.h>

#define MOST_RANKS (1 << 16)

struct rueda_sim_net rueda_sim_net_flat(int hosts, struct rueda_sim_wire wire)
{
    return (struct rueda_sim_net){
        .hosts = hosts,
        .ranks_per_host = 1,
        .hosts_per_rack = hosts,
        .oversubscription = 1.0,
        .port = wire,
        .uplink = wire,
        .spine = wire,
    };
}

static bool is_wire(const struct rueda_sim_wire *wire)
{
    return isfinite(wire->bytes_per_s) && wire->bytes_per_s >= 1.0;
}

rueda_status rueda_sim_net_check(const struct rueda_sim_net *net,
                                 struct rueda_text *error)
{
    if (net->hosts < 1 || net->ranks_per_host < 1 || net->hosts_per_rack < 1 ||
        (int64_t)net->hosts * net->ranks_per_host > MOST_RANKS)
        rueda_text_set(error,
                       "%d hosts of %d ranks, %d hosts a rack: at least 1 of "
                       "each, and at most %d ranks",
                       net->hosts, net->ranks_per_host, net->hosts_per_rack,
                       MOST_RANKS);
    else if (!is_wire(&net->port) || !is_wire(&net->uplink))
        rueda_text_set(error, "a bandwidth is not above 1 B/s");
    else if (!isfinite(net->oversubscription) || net->oversubscription <= 0.0)
        rueda_text_set(error, "an oversubscription of %g is not above 0",
                       net->oversubscription);
    else
        return RUEDA_OK;
    return RUEDA_ERR_INVALID;
}

int rueda_sim_net_links(const struct rueda_sim_net *net, rueda_sim_link link)
{
    switch (link) {
    case RUEDA_SIM_PORT:
        return rueda_sim_net_ranks(net);
    case RUEDA_SIM_UPLINK:
        return net->hosts;
    case RUEDA_SIM_SPINE:
        return rueda_sim_net_racks(net);
    }
    return 0;
}

/* The link of this kind that a rank's messages take. */
static int link_of(const struct rueda_sim_net *net, rueda_sim_link link,
                   int rank)
{
    switch (link) {
    case RUEDA_SIM_PORT:
        return rank;
    case RUEDA_SIM_UPLINK:
        return rueda_sim_net_host(net, rank);
    case RUEDA_SIM_SPINE:
        return rueda_sim_net_rack(net, rank);
    }
    return -1;
}

bool rueda_sim_net_uses(const struct rueda_sim_net *net, rueda_sim_link link,
                        int index, int rank_a, int rank_b)
{
    const bool is_inside =
        rueda_sim_net_host(net, rank_a) == rueda_sim_net_host(net, rank_b);
    const int a = link_of(net, link, rank_a);
    const int b = link_of(net, link, rank_b);

    if (is_inside != (link == RUEDA_SIM_PORT) || a == b)
        return false;
    return a == index || b == index;
}

/* ---- Lanes ------------------------------------------------------------ */

/*
 * In this order: into the network by the port of each rank, out of it by the
 * port of each rank; the same for uplinks, then for spines.
 */
static int way_of(const struct rueda_sim_net *net, rueda_sim_link link,
                  bool is_out, int rank)
{
    int first = 0;

    for (int l = 0; l < (int)link; l++)
        first += 2 * rueda_sim_net_links(net, (rueda_sim_link)l);
    if (is_out)
        first += rueda_sim_net_links(net, link);
    return first + link_of(net, link, rank);
}

int rueda_sim_net_ways(const struct rueda_sim_net *net)
{
    return 2 * (rueda_sim_net_links(net, RUEDA_SIM_PORT) +
                rueda_sim_net_links(net, RUEDA_SIM_UPLINK) +
                rueda_sim_net_links(net, RUEDA_SIM_SPINE));
}

static struct rueda_sim_wire wire_of(const struct rueda_sim_net *net,
                                     rueda_sim_link link)
{
    struct rueda_sim_wire wire = net->port;

    if (link == RUEDA_SIM_UPLINK)
        wire = net->uplink;
    if (link == RUEDA_SIM_SPINE) {
        wire = net->spine;
        wire.bytes_per_s = net->uplink.bytes_per_s * net->hosts_per_rack /
                           net->oversubscription;
    }
    return wire;
}

struct rueda_sim_wire rueda_sim_net_way(const struct rueda_sim_net *net,
                                        int way)
{
    struct rueda_sim_wire wire;
    int link = RUEDA_SIM_PORT;
    int count = rueda_sim_net_links(net, RUEDA_SIM_PORT);

    while (link < RUEDA_SIM_SPINE && way >= 2 * count) {
        way -= 2 * count;
        link++;
        count = rueda_sim_net_links(net, (rueda_sim_link)link);
    }
    wire = wire_of(net, (rueda_sim_link)link);
    if (way >= count) {
        wire.latency_ns = 0;
        wire.jitter_ns = 0;
    }
    return wire;
}

int rueda_sim_net_hop(const struct rueda_sim_net *net, int from, int to,
                      int hop)
{
    const bool is_inside =
        rueda_sim_net_host(net, from) == rueda_sim_net_host(net, to);
    const bool is_near =
        rueda_sim_net_rack(net, from) == rueda_sim_net_rack(net, to);
    const rueda_sim_link edge = is_inside ? RUEDA_SIM_PORT : RUEDA_SIM_UPLINK;
    const int last = is_near ? 1 : 3;

    if (hop > last)
        return -1;
    if (hop == 0)
        return way_of(net, edge, false, from);
    if (hop == last)
        return way_of(net, edge, true, to);
    return hop == 1 ? way_of(net, RUEDA_SIM_SPINE, false, from)
                    : way_of(net, RUEDA_SIM_SPINE, true, to);
}

uint64_t rueda_sim_net_latency(const struct rueda_sim_net *net, int from,
                               int to)
{
    uint64_t latency_ns = net->uplink.latency_ns;

    if (rueda_sim_net_host(net, from) == rueda_sim_net_host(net, to))
        return net->port.latency_ns;
    if (rueda_sim_net_rack(net, from) != rueda_sim_net_rack(net, to))
        latency_ns += net->spine.latency_ns;
    return latency_ns;
}
