/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated network looks like: hosts with ranks, racks with hosts, and
 * the links between them. docs/simulator.md has the text form and the picture.
 *
 *     rank --port-- host --uplink-- rack --spine-- all racks
 *
 * A message inside a host passes the sender's and the receiver's port; between
 * hosts both uplinks; between racks both uplinks and both spines. Every link
 * has two directions that do not disturb each other. Pure; any thread.
 */
#ifndef RUEDA_TRANSPORT_SIM_NET_H
#define RUEDA_TRANSPORT_SIM_NET_H

#include <rueda/rueda.h>

#include "base/text.h"

/* What one kind of link costs. The latency is that of the whole way between
 * two ports or two uplinks; a spine adds its own to that of the uplinks. */
struct rueda_sim_wire {
    uint64_t latency_ns;
    uint64_t jitter_ns; /* up to so much more, at random */
    double bytes_per_s; /* of each direction */
};

struct rueda_sim_net {
    int hosts;
    int ranks_per_host;
    int hosts_per_rack; /* the last rack may have fewer */

    /* A spine carries what the uplinks of a full rack do, divided by this. */
    double oversubscription;

    struct rueda_sim_wire port;
    struct rueda_sim_wire uplink;
    struct rueda_sim_wire spine; /* bytes_per_s is not looked at */
};

typedef enum rueda_sim_link {
    RUEDA_SIM_PORT,   /* of a rank */
    RUEDA_SIM_UPLINK, /* of a host */
    RUEDA_SIM_SPINE,  /* of a rack */
} rueda_sim_link;

/* One rank on each of `hosts` hosts, in one rack, joined by this wire. */
struct rueda_sim_net rueda_sim_net_flat(int hosts, struct rueda_sim_wire wire);

/* Can it be? Otherwise RUEDA_ERR_INVALID, and why in error. */
rueda_status rueda_sim_net_check(const struct rueda_sim_net *net,
                                 struct rueda_text *error);

/* From text, checked; error names the line. What is not said is one host of
 * one rank, and fast links. */
rueda_status rueda_sim_net_parse(const char *text, struct rueda_sim_net *out,
                                 struct rueda_text *error);

/* A time such as "10us" in nanoseconds, a rate such as "25Gbit/s", "25gbit" or
 * "10GB/s" in bytes a second. False: it is none, and out is as it was. */
bool rueda_sim_time_parse(const char *text, double *out_ns);
bool rueda_sim_rate_parse(const char *text, double *out_bytes_per_s);

/* From a file; error names it. */
rueda_status rueda_sim_net_read(const char *path, struct rueda_sim_net *out,
                                struct rueda_text *error);

static inline int rueda_sim_net_ranks(const struct rueda_sim_net *net)
{
    return net->hosts * net->ranks_per_host;
}

static inline int rueda_sim_net_racks(const struct rueda_sim_net *net)
{
    return (net->hosts - 1) / net->hosts_per_rack + 1;
}

static inline int rueda_sim_net_host(const struct rueda_sim_net *net, int rank)
{
    return rank / net->ranks_per_host;
}

static inline int rueda_sim_net_rack(const struct rueda_sim_net *net, int rank)
{
    return rueda_sim_net_host(net, rank) / net->hosts_per_rack;
}

/* How many links of this kind there are. */
int rueda_sim_net_links(const struct rueda_sim_net *net, rueda_sim_link link);

/* Does what passes between these two ranks pass that link? */
bool rueda_sim_net_uses(const struct rueda_sim_net *net, rueda_sim_link link,
                        int index, int rank_a, int rank_b);

/* ---- One-way links, numbered ------------------------------------------ */

/* Their number: two for each port, uplink and spine. */
int rueda_sim_net_ways(const struct rueda_sim_net *net);

/* What way i costs. The latency is that of the way in; the way out has none.
 */
struct rueda_sim_wire rueda_sim_net_way(const struct rueda_sim_net *net,
                                        int way);

/* The way that a message takes as its hop 0, 1, ...; -1: it is there. */
int rueda_sim_net_hop(const struct rueda_sim_net *net, int from, int to,
                      int hop);

/* Latency from one rank to another, without jitter. */
uint64_t rueda_sim_net_latency(const struct rueda_sim_net *net, int from,
                               int to);

#endif /* RUEDA_TRANSPORT_SIM_NET_H */
