/* SPDX-License-Identifier: Apache-2.0 */
/* What no library can be faster than: the least time of a training step on a
 * network. Pure; any thread. */
#ifndef RUEDA_PREDICT_BOUND_H
#define RUEDA_PREDICT_BOUND_H

#include "predict/model.h"
#include "transport/sim/net.h"

/*
 * The least time of a step in nanoseconds, where an element takes wire_bytes
 * between hosts and the computation compute_ns:
 *
 *     max(compute, max over i (ready(i) + bytes(i ...) / rate) + latency)
 *
 * Gradients i and later ones travel when gradient i is there, not sooner. Of n
 * parties that reduce a vector to all of them each sends 2 (n - 1) / n of it on
 * average (Patarasuk and Yuan 2009), and the last one takes log2(n) latencies.
 * Parties are the racks with their spines, the hosts with their uplinks, or the
 * ranks of a single host with their ports; the slowest of them counts.
 */
double rueda_bound_ns(const struct rueda_model *model,
                      const struct rueda_sim_net *net, double compute_ns,
                      double wire_bytes);

#endif /* RUEDA_PREDICT_BOUND_H */
